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

function modelIds(body: string): string[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof list === "object" && list !== null && "data" in list) list = list.data;
  if (!Array.isArray(list)) return undefined;
  return list.map((entry) => stripControl(String(entry?.id ?? ""))).filter((id) => id !== "");
}
