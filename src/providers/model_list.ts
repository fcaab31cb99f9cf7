import { isObject, jsonOr } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";
import { BackendError, type Peer, statusFailure } from "./failure.ts";
import { type HttpAnswer, isOk, readText } from "./http.ts";

/** Bytes read of a list of models. */
const MAX_MODEL_LIST = 8 * 1024 * 1024;

/**
 * The model ids in an answer to `GET /v1/models`: `{data: [{id}]}`, or the plain array that some backends
 * send.
 *
 * @throws BackendError
 */
export async function readModelList(answer: HttpAnswer, peer: Peer): Promise<string[]> {
  const body = await readText(answer, MAX_MODEL_LIST);
  if (!isOk(answer)) {
    throw statusFailure({ ...answer, body }, peer);
  }
  const ids = modelIds(body);
  if (ids !== undefined) return ids;
  throw new BackendError(
    0,
    `${peer.name} answered, but not with a list of models.`,
    "Check the base URL.",
  );
}

/**
 * The context window of a model in tokens, as its entry in the list of models names it, else the document in which some
 * local servers do; undefined when neither does.
 *
 * @param read returns the JSON of an endpoint: one of the protocol, or the path of one on the server
 */
export async function contextWindow(
  model: string,
  read: (endpoint: "/models" | NativeEndpoint) => Promise<unknown>,
): Promise<number | undefined> {
  const entry = entryOf(await read("/models"), model);
  const native = NATIVE[String(entry?.owned_by)];
  const found = windowIn(entry);
  if (native === undefined) return found;
  const document = await read(native).catch(() => undefined);
  return windowIn(entryOf(document, model) ?? document) ?? found;
}

/** The endpoints of local servers that know the window of the loaded model, by the owner that their list names. */
const NATIVE: Record<string, NativeEndpoint> = {
  llamacpp: { path: "/props" },
  library: { path: "/api/show", post: true },
  organization_owner: { path: "/api/v0/models" },
};

/** A path on the server; `post`: it takes the model in a POST request. */
export interface NativeEndpoint {
  path: string;
  post?: true;
}

/** Where windows are named, the most exact first: the loaded model's, the backend's, the model's own. */
const WINDOW_FIELDS = [
  /(^|\.)(loaded_context_length|n_ctx|num_ctx)$/,
  /^top_provider\.context_length$/,
  /(^|\.)(context_length|context_window|max_model_len|max_context_length|max_context_window_tokens)$/,
  /(^|\.)(max_input_tokens|max_prompt_tokens|inputTokenLimit|max_sequence_length|n_ctx_train)$/,
];

function windowIn(entry: unknown): number | undefined {
  const fields = [...numbers(entry)].filter(([, value]) => value > 0);
  for (const pattern of WINDOW_FIELDS) {
    const found = fields.find(([path]) => pattern.test(path));
    if (found !== undefined) return found[1];
  }
  return undefined;
}

/** The numbers of a document with their paths, those of settings in a text (`num_ctx 8192`) among them. */
function* numbers(value: unknown, path = ""): Generator<[path: string, value: number]> {
  if (typeof value === "number") yield [path, value];
  else if (typeof value === "string") {
    const size = /^num_ctx\s+(\d+)$/m.exec(value)?.[1];
    if (size !== undefined) yield ["num_ctx", Number(size)];
  } else if (isObject(value)) {
    for (const [key, each] of Object.entries(value)) {
      yield* numbers(each, path === "" ? key : `${path}.${key}`);
    }
  }
}

type Entry = Record<string, unknown>;

/** The entry of a model in a list, under its id or its name, with or without a vendor or a tag. */
function entryOf(document: unknown, model: string): Entry | undefined {
  const named = (entry: Entry) => [entry.id, entry.name, entry.model].map(String);
  const same = (name: string) => name === model || name === `${model}:latest`;
  return listOf(document)?.find((entry) => named(entry).some(same)) ??
    listOf(document)?.find((entry) => named(entry).some((name) => name.endsWith(`/${model}`)));
}

/** The entries of `{data: [...]}`, `{models: [...]}` or a plain array. */
function listOf(document: unknown): Entry[] | undefined {
  const { data, models } = (document ?? {}) as Entry;
  const list = [data, models, document].find(Array.isArray);
  return list?.filter((entry) => typeof entry === "object" && entry !== null);
}

function modelIds(body: string): string[] | undefined {
  const ids = listOf(jsonOr(body, undefined))?.map(({ id }) => stripControl(String(id ?? "")));
  return ids?.filter((id) => id !== "");
}
