import { digest } from "../admission.ts";
import script from "./console.js" with { type: "text" };
import style from "./console.css" with { type: "text" };

const SECONDS_PER_YEAR = 31_536_000;

interface Asset {
  /** Holds a digest of the content, so that a browser may keep it for ever. */
  path: string;
  type: string;
  content: string;
}

function asset(name: string, extension: string, type: string, content: string): Asset {
  const version = digest(content).toHex().slice(0, 16);
  return { path: `/console/assets/${name}-${version}.${extension}`, type, content };
}

export const STYLE = asset("console", "css", "text/css; charset=utf-8", style);
export const SCRIPT = asset("console", "js", "text/javascript; charset=utf-8", script);

/** The asset at a path; undefined for an unknown one. */
export function assetResponse(path: string): Response | undefined {
  const found = [STYLE, SCRIPT].find((each) => each.path === path);
  if (found === undefined) return undefined;
  return new Response(found.content, {
    headers: {
      "content-type": found.type,
      "cache-control": `public, max-age=${SECONDS_PER_YEAR}, immutable`,
    },
  });
}
