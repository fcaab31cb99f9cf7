import { join } from "node:path";

/** The files of one session. Only the document is there while nobody has the session open. */
export interface LogPaths {
  document: string;
  journal: string;
  /** The lock that whoever runs a turn holds. */
  turn: string;
  /** What is to take the document's place. */
  replacement: string;
}

export function logPaths(directory: string, name: string): LogPaths {
  const hidden = (suffix: string) => join(directory, `.${name}.${suffix}`);
  return {
    document: join(directory, `${name}.json`),
    journal: hidden("journal"),
    turn: hidden("turn"),
    replacement: hidden("json.tmp"),
  };
}
