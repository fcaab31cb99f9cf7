import { stripControl } from "../platform/terminal.ts";

/**
 * The model ids in the body of `GET /v1/models`: `{data: [{id}]}`, or the plain array that some backends
 * send. Undefined when it is neither.
 */
export function modelIds(body: string): string[] | undefined {
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
