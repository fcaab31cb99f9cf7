/** svc's MCP client for one scenario of the conformance suite: `conformance_client.ts <url>` calls every tool. */
import { systemClock } from "../../src/platform/clock.ts";
import type {
  ConfigView,
  LoginStore,
  SourceHost,
  ToolArguments,
  ToolDefinition,
} from "../../src/plugins/api.ts";
import { Connection } from "../../plugins/svc-core-mcp/src/connection.ts";
import { logIn } from "../../plugins/svc-core-mcp/src/login.ts";
import type { ServerSettings } from "../../plugins/svc-core-mcp/src/servers.ts";
import { toolContext } from "../support/tool_context.ts";

const [url = ""] = Deno.args;
const { toolCalls = [], client_id, client_secret } = JSON.parse(
  Deno.env.get("MCP_CONFORMANCE_CONTEXT") ?? "{}",
);
const kept = new Map<string, object>();
const logins: LoginStore = {
  read: (address) => kept.get(address),
  write: (address, login) => {
    if (login === undefined) kept.delete(address);
    else kept.set(address, login);
    return Promise.resolve();
  },
};
const settings: ServerSettings = {
  ...{ name: "suite", transport: "http", url, prefix: "suite", timeout: 20, sandbox: true },
  ...{
    command: "",
    args: [],
    cwd: undefined,
    env: {},
    headers: {},
    oauth: client_id ? { client_id, client_secret } : undefined,
  },
};
const host: SourceHost = {
  config: {} as ConfigView,
  user_agent: "svc/test",
  start: () => Promise.reject(new Error("no program")),
  now: systemClock.now,
  sleep: systemClock.sleep,
  warn: () => {},
  logins,
};
const connection = new Connection(settings, host);
const { signal } = new AbortController();
await connection.ready(true);
if (connection.problem.includes("svc mcp login")) {
  // A person who agrees to everything.
  await logIn(settings, host, {
    show: async (address) => await (await fetch(address)).body?.cancel(),
    pasted: (async function* () {})(),
    remark: () => {},
    signal,
  });
  await connection.ready(true);
}
if (connection.problem !== "") throw new Error(connection.problem);
for (const tool of connection.tools) {
  const given = toolCalls.filter((call: { name: string }) => tool.name === `suite.${call.name}`);
  for (const { arguments: args } of given.length > 0 ? given : [{ arguments: sample(tool) }]) {
    await tool.handler(args, {
      ...toolContext({ worktree: ".", signal }),
      // The default of each field.
      ask: (questions) => Promise.resolve({ answers: questions.map(({ options }) => options[0]!) }),
    });
  }
}
await connection.leave();

/** A value for each argument; where a schema is asked for, the one of the first tool. */
function sample({ parameters }: ToolDefinition): ToolArguments {
  const values: Record<string, unknown> = {
    string: "text",
    number: 2,
    integer: 2,
    boolean: true,
    object: connection.tools[0]!.parameters,
  };
  const given = Object.entries(parameters.properties);
  return Object.fromEntries(given.map(([name, { type }]) => [name, values[String(type)] ?? null]));
}
