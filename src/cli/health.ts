import { defineCommand, outputOption, textOption } from "../commands/command.ts";
import { toJson } from "../commands/io.ts";
import { serveHost, servePort, serverAddress } from "../platform/environment.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import { jsonOr } from "../platform/files.ts";
import { oneLine } from "../platform/terminal.ts";
import { command } from "../commands/options.ts";

/** Milliseconds that a server has for its answer. */
const PATIENCE = 5000;
/** Characters of an answer that are read. */
const ENOUGH = 10_000;

/** `svc health`: whether a server answers `GET /health` with 200. */
export const health = defineCommand({
  parser: command("health", {
    url: textOption(
      "--url",
      "URL",
      "The address of the server; default: the one of svc serve, by SVC_HOST and SVC_PORT.",
    ),
    output: outputOption,
  }, "Ask a server of svc serve whether it is healthy. The exit code is 0 when it is, else 1."),
  examples: ["svc health", "svc health --url http://127.0.0.1:8780 --output json"],
  async run({ url, output }, { environment, out }) {
    const target = healthUrl(url ?? serverAddress(serveHost(environment), servePort(environment)));
    const { status, error } = await ask(target);
    const healthy = error === "";
    const answer = status === undefined ? {} : { status };
    const state = healthy ? "healthy" : "not healthy";
    out(
      output === "json"
        ? toJson({ healthy, url: target.href, ...answer, ...healthy ? {} : { error } }) + "\n"
        : `${state}: ${target.href} ${error || "answered 200"}\n`,
    );
    return healthy ? 0 : 1;
  },
});

function healthUrl(address: string): URL {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw usageError("usage", `"${address}" is no address of a server.`, "It begins with http://.");
  }
  url.pathname = url.pathname.replace(/(\/health)?\/?$/, "/health");
  return url;
}

/** Sends the request. `error` is empty when the server is healthy. A proxy is not used, as `fetch` would. */
async function ask(url: URL): Promise<{ status?: number; error: string }> {
  const { get } = await import(url.protocol === "https:" ? "node:https" : "node:http");
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    // deno-lint-ignore no-explicit-any
    const response = await new Promise<any>((resolve, reject) =>
      get(url, { signal }, resolve).on("error", reject)
    );
    let body = "";
    for await (const chunk of response.setEncoding("utf8")) {
      body += chunk;
      if (body.length > ENOUGH) break;
    }
    const { statusCode: status } = response;
    return { status, error: status === 200 ? "" : `answered ${status}${reason(body)}` };
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code === "ECONNREFUSED") return { error: "refused the connection" };
    if (code === "ABORT_ERR") return { error: `did not answer within ${PATIENCE / 1000} s` };
    return { error: oneLine(`cannot be asked: ${errorMessage(error)}`) };
  }
}

/** The error that an answer names. */
function reason(body: string): string {
  const error = jsonOr(body, undefined)?.error;
  return typeof error === "string" ? oneLine(`: ${error}`) : "";
}
