import { extname, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type {
  SourceHost,
  ToolArguments,
  ToolContext,
  ToolDefinition,
  ToolRegistrar,
  ToolSource,
} from "../../../src/plugins/api.ts";
import { type Diagnostic, LanguageServer, type Location, type ServerSettings } from "./server.ts";

export function register_tools(registry: ToolRegistrar): void {
  const servers = registry.source((host) => new Servers(host));
  registry.register(diagnostics(servers));
  registry.register(references(servers));
}

/** Lines of a result at most. */
const MAX_LINES = 100;

const COMMON = {
  permission: "dev",
  path_arg: "path",
  read_only: true,
  confirm: false, // the settings name the program, and a call changes nothing
  needs_setting: "lsp.servers",
} as const;

function diagnostics(servers: Servers): ToolDefinition {
  return {
    ...COMMON,
    name: "diagnostics",
    description: "What the language server reports on a file: errors and warnings.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    note: (result) => result === NONE ? NONE : "",
    handler: async ({ path }, context) => {
      const { server, file, text } = await servers.open(path, context);
      const found = await server.diagnostics(pathToFileURL(file).href, text, callOf(context));
      found.sort((a, b) => a.range.start.line - b.range.start.line);
      const shown = relative(context.paths.worktree, file);
      return limited(found.map((each) => diagnosticLine(shown, each))) || NONE;
    },
  };
}

const NONE = "no diagnostics";
const SEVERITY = ["", "error", "warning", "information", "hint"];

function diagnosticLine(path: string, { range, severity, message, code, source }: Diagnostic) {
  const { line, character } = range.start;
  const name = [source, code].filter((each) => each !== undefined).join(" ");
  return `${path}:${line + 1}:${character + 1}: ${SEVERITY[severity ?? 1] ?? "error"}: ` +
    `${message.replace(/\s*\n\s*/g, " ")}${name === "" ? "" : ` (${name})`}`;
}

function references(servers: Servers): ToolDefinition {
  return {
    ...COMMON,
    name: "references",
    description:
      "Where a symbol is used, by the language server. `line` (from 1) of `path` has the symbol.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string" },
        line: { type: "integer" },
        symbol: { type: "string" },
      },
      required: ["path", "line", "symbol"],
    },
    key_arg: "symbol",
    handler: async ({ path, line, symbol }, context) => {
      const { server, file, text } = await servers.open(path, context);
      const character = columnOf(text.split(/\r?\n/)[line - 1] ?? "", symbol);
      if (character < 0) return `Error: line ${line} of ${path} does not have ${symbol}.`;
      const uri = pathToFileURL(file).href;
      const position = { line: line - 1, character };
      const found = await server.references(uri, text, position, callOf(context));
      return limited(await locationLines(found, context)) || "no references";
    },
  };
}

/** The column of a symbol as a whole word, or else of the text; -1 when the line does not have it. */
function columnOf(line: string, symbol: string): number {
  for (let at = -1; (at = line.indexOf(symbol, at + 1)) >= 0;) {
    const around = `${line[at - 1] ?? " "}${line[at + symbol.length] ?? " "}`;
    if (!/[\p{L}\p{N}_$]/u.test(around)) return at;
  }
  return line.indexOf(symbol);
}

/** `path:line:column: text` of each place, sorted; a place outside of the worktree has no text. */
async function locationLines(found: Location[], context: ToolContext): Promise<string[]> {
  const { paths, reads } = context;
  const places = found.filter(({ uri }) => uri.startsWith("file:")).map(({ uri, range }) => ({
    file: fileURLToPath(uri),
    ...range.start,
  })).sort((a, b) =>
    a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line || a.character - b.character
  );
  const texts = new Map<string, string[]>();
  return await Promise.all(
    places.slice(0, MAX_LINES + 1).map(async ({ file, line, character }) => {
      const inside = paths.contains(file);
      if (inside && reads !== false && !texts.has(file)) {
        texts.set(
          file,
          await readText(file, context).then((text) => text.split(/\r?\n/), () => []),
        );
      }
      const text = texts.get(file)?.[line]?.trim().slice(0, 200) ?? "";
      const shown = inside ? relative(paths.worktree, file) : file;
      return `${shown}:${line + 1}:${character + 1}${text === "" ? "" : `: ${text}`}`;
    }),
  );
}

function limited(lines: string[]): string {
  const more = lines.length > MAX_LINES ? ["... and more"] : [];
  return [...lines.slice(0, MAX_LINES), ...more].join("\n");
}

function callOf(context: ToolContext) {
  return { signal: context.signal, read: (path: string) => readText(path, context) };
}

/** Bytes of the largest file that a server is sent. */
const MAX_FILE = 2_000_000;

async function readText(path: string, { paths }: ToolContext): Promise<string> {
  using file = await paths.open(path, { read: true });
  const { size, isFile } = await file.stat();
  if (!isFile || size > MAX_FILE) throw new Error(`${path} is no file of at most 2 MB.`);
  return await new Response(file.readable).text();
}

/** The servers that run, each since the first call that needed it. A source without tools, to be closed with svc. */
class Servers implements ToolSource {
  readonly permission = COMMON.permission;
  readonly #host: SourceHost;
  readonly #running = new Map<string, Promise<LanguageServer>>();

  constructor(host: SourceHost) {
    this.#host = host;
  }

  tools(): Promise<ToolDefinition[]> {
    return Promise.resolve([]);
  }

  /** The server for a file, and the file's text. */
  async open(path: ToolArguments[string], context: ToolContext) {
    const file = context.paths.resolve(path);
    const configured: ServerSettings[] = this.#host.config.get("lsp.servers");
    const ending = extname(file);
    const settings = configured.find(({ extensions }) =>
      extensions.some((each) => `.${each.replace(/^\./, "")}` === ending)
    );
    if (settings === undefined) {
      const all = configured.flatMap(({ extensions }) => extensions).join(", ");
      throw new Error(`no language server is configured for ${path} (there are some for: ${all})`);
    }
    const text = await readText(file, context);
    return { file, text, server: await this.#server(settings, context) };
  }

  async #server(settings: ServerSettings, { paths: { worktree } }: ToolContext) {
    const key = JSON.stringify(settings);
    while (true) {
      const known = this.#running.get(key);
      const running = await known?.catch(() => undefined);
      if (running?.alive) return running;
      if (this.#running.get(key) !== known) continue; // another call has started it meanwhile
      const started = LanguageServer.start(settings, worktree, this.#host);
      this.#running.set(key, started);
      return await started;
    }
  }

  async close(): Promise<void> {
    const all = [...this.#running.values()];
    this.#running.clear();
    await Promise.all(all.map((each) => each.then((server) => server.stop(), () => {})));
  }
}
