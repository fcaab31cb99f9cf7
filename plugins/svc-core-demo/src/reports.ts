import type { Intent } from "./intent.ts";

/** A call and what came of it. */
export interface Exchange {
  id: unknown;
  tool: string;
  args: Record<string, unknown>;
  result: string;
  failed: boolean;
}

/** Most lines of a result that an answer repeats. */
const SHOWN = 20;

/** A few sentences on what a call brought, in the light of what was asked. */
export function report(exchange: Exchange, intent: Intent | undefined): string {
  const { tool, args, result, failed } = exchange;
  if (failed) return failure(exchange);
  switch (tool) {
    case "file_read":
      return intent?.kind === "count" ? count(exchange) : reading(exchange);
    case "list_dir":
      return listing(exchange);
    case "glob":
      return matches(result, `match ${args.pattern}`, "file", "files");
    case "grep":
      return search(exchange, intent?.kind === "find" ? intent.text : String(args.pattern));
    case "file_write":
      return `Done. ${capital(result.split("\n")[0]!)}.`;
    case "file_edit":
      return `Done. ${result.split("\n").map(capital).join(". ").replace(/\.?$/, ".")}`;
    case "run_command":
      return command(exchange);
    default:
      return `${tool} answered:\n\n${block(result.split("\n"))}`;
  }
}

function failure({ tool, args, result }: Exchange): string {
  const what = args.path ?? args.command ?? args.pattern;
  const target = what === undefined ? "" : ` for ${what}`;
  const reason = result.replace(/^Error:\s*/, "").trim();
  const refused = /^permission denied|declined/i.test(reason);
  // What follows the first sentence of a refusal is advice to a model.
  const said = (refused ? reason.split(". ")[0]! : reason).replace(/\.$/, "");
  const kind = refused ? "was not permitted" : "did not work";
  return `That ${kind}: the call of ${tool}${target} came back with "${said}". I left it at that.`;
}

interface Header {
  lines: number;
  chars: number;
}

function header(result: string): Header | undefined {
  const match = /^# .* - (\d+) lines?, (\d+) chars?/.exec(result);
  return match === null ? undefined : { lines: Number(match[1]), chars: Number(match[2]) };
}

function count({ args, result }: Exchange): string {
  const size = header(result);
  if (size === undefined) return `I could not count ${args.path}: ${result.split("\n")[0]}`;
  return `${args.path} has ${plural(size.lines, "line", "lines")} (${
    plural(size.chars, "character", "characters")
  }).`;
}

function reading({ args, result }: Exchange): string {
  const size = header(result);
  const [first, ...rest] = result.split("\n");
  if (size === undefined) {
    return `This is what ${args.path} gave:\n\n${block([first!, ...rest])}`;
  }
  const facts = `${args.path} has ${plural(size.lines, "line", "lines")} and ${
    plural(size.chars, "character", "characters")
  }.`;
  const lines = rest.map((line) => line.replace(/^\d+\|/, ""));
  if (size.chars === 0 || lines.length === 0) return facts;
  const window = / \(showing (\d+)-(\d+)\)$/.exec(first!);
  const begin = window ? ` Lines ${window[1]} to ${window[2]}` : " It";
  const verb = window ? "read" : lines.length > SHOWN ? "begins" : "reads";
  return `${facts}${begin} ${verb}:\n\n${block(lines)}`;
}

function listing({ args, result }: Exchange): string {
  const lines = result.split("\n").filter((line) => line.trim() !== "");
  const where = args.path === "." ? "This folder" : String(args.path);
  if (result.startsWith("(empty")) return `${where} is empty.`;
  const entries = lines.filter((line) => !line.startsWith("... ("));
  const folders = entries.filter((line) => line.endsWith("/")).length;
  const files = entries.length - folders;
  return `${where} holds ${plural(folders, "folder", "folders")} and ${
    plural(files, "file", "files")
  }:\n\n${block(lines)}`;
}

function search({ args, result }: Exchange, text: string): string {
  const where = args.path === undefined ? "" : ` in ${args.path}`;
  const lines = result.split("\n").filter((line) => /:\d+: /.test(line));
  if (lines.length === 0) return `"${text}" is mentioned nowhere${where}.`;
  const files = new Set(lines.map((line) => line.slice(0, line.search(/:\d+: /))));
  return `"${text}" is on ${plural(lines.length, "line", "lines")} of ${
    plural(files.size, "file", "files")
  }${where}:\n\n${block(result.split("\n"))}`;
}

function matches(result: string, what: string, one: string, many: string): string {
  if (result.startsWith("(no matches")) return `No ${many} ${what}.`;
  const lines = result.split("\n").filter((line) => !line.startsWith("... ("));
  return `${plural(lines.length, one, many)} ${what.replace(/^match/, "matching")}:\n\n${
    block(result.split("\n"))
  }`;
}

function command({ args, result }: Exchange): string {
  const lines = result.split("\n");
  const exit = lines.findIndex((line) => /^exit \d+$/.test(line));
  const code = lines[exit]?.slice(5);
  const output = lines.slice(exit + 1);
  const outcome = code === undefined
    ? ""
    : code === "0"
    ? " ran and ended well (exit 0)"
    : ` ran and failed (exit ${code})`;
  const printed = output.join("\n").trim();
  const silent = printed === "" || printed === "(no output)";
  return `\`${args.command}\`${outcome}${
    silent ? ", without any output." : `:\n\n${block(output)}`
  }`;
}

/** Lines as a code block, cut to a bearable length. */
function block(lines: string[]): string {
  const shown = lines.slice(0, SHOWN).join("\n");
  const more = lines.length > SHOWN ? `\n… and ${lines.length - SHOWN} more lines` : "";
  // The fence is longer than any in the text itself.
  const longest = Math.max(2, ...(shown.match(/`{3,}/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${shown}${more}\n${fence}`;
}

function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
