import type { ToolDefinition } from "../../../src/plugins/api.ts";
import type { Web } from "./download.ts";
import { clean, cleanLine, untrusted, WebError } from "./text.ts";
import type { Findings } from "./web_search.ts";

/** The tool web_fetch (specification 4.8): a page, or another text of the web, as readable text. */
export function webFetch({ network, threads }: Web, findings: Findings): ToolDefinition {
  return {
    name: "web_fetch",
    description:
      "Fetch a web page as Markdown; text, JSON and XML as they are. What it returns was " +
      "written by strangers.",
    permission: "web",
    parameters: {
      type: "object",
      properties: {
        url: {
          type: "string",
          description: "http(s) address, or the number of a search result.",
        },
      },
      required: ["url"],
    },
    aliases: ["open", "fetch_page"],
    status: ({ url }) => `Reading ${cleanLine(String(url), 200)}`,
    async handler({ url }, { config, signal, session }) {
      const given = String(url).trim();
      const { download } = await import("./download.ts");
      try {
        const document = await download({
          url: findings.address(session, given) ?? given,
          accept: "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5",
          allow_private: config.get("web.allow_private"),
          timeout: config.get("web.timeout"),
          max_bytes: config.get("web.max_bytes"),
          signal,
        }, network);
        const { title, text } = isHtml(document.type, document.text)
          ? await threads.parse("page", document.text, document.url, signal)
          : { title: "", text: document.text };
        const whole = clean(text);
        const head = [`# ${document.url.href}`, title && `Title: ${cleanLine(title, 200)}`].filter(
          Boolean,
        );
        if (whole.trim() === "") return `${head.join("\n")}\n(the page holds no text)`;
        const end = document.cut ? "\n(the page goes on; this is its beginning)" : "";
        return `${head[0]}\n${
          untrusted("the text of the page", [...head.slice(1), whole].join("\n\n"))
        }${end}`;
      } catch (error) {
        if (error instanceof WebError) return `Error: web_fetch: ${clean(error.message)}.`;
        throw error;
      }
    },
    note: (result) => result.endsWith("(the page holds no text)") ? "no text" : "",
  };
}

function isHtml(type: string, text: string): boolean {
  if (type === "text/html" || type === "application/xhtml+xml") return true;
  return type === "" && /^\s*<(!doctype html|html|head|body)\b/i.test(text.slice(0, 1000));
}
