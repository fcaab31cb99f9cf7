import type { SearchEngine } from "./engine.ts";
import { WebError } from "../web_error.ts";

/** An instance of SearXNG, which must have its format `json` enabled. */
export const searxng: SearchEngine = {
  title: "SearXNG",
  url: "",
  request(base, query) {
    const url = new URL(`${base.href.replace(/\/?(search\/?)?([?#].*)?$/, "")}/search`);
    url.searchParams.set("q", query);
    url.searchParams.set("format", "json");
    return { url, accept: "application/json" };
  },
  read({ text }) {
    let answer: { results?: unknown };
    try {
      answer = JSON.parse(text);
    } catch {
      throw new WebError(
        "SearXNG does not answer with JSON; enable the format json in its settings",
      );
    }
    if (!Array.isArray(answer?.results)) throw new WebError("SearXNG answers without results");
    return answer.results.map(({ title, url, content }) => ({ title, url, snippet: content }));
  },
};
