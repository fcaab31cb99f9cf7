import { isAbsolute, join } from "node:path";
import { SvcError } from "./error.ts";

/** What the process was started with. Only front ends make one; rooms receive it. */
export interface Environment {
  /** Absolute path of the user's home directory. */
  readonly home: string;
  /** Absolute path of the directory the process was started in. */
  readonly cwd: string;
  /** The value of an environment variable, or undefined when it is unset or may not be read. */
  get(name: string): string | undefined;
}

/** The environment of this process. */
export function processEnvironment(): Environment {
  const home = read("HOME") ?? read("USERPROFILE") ?? "";
  if (!isAbsolute(home)) {
    throw new SvcError("no_home", "The home directory is unknown: HOME is not set.", {
      hint: "Set HOME to an absolute path; svc keeps your settings in $HOME/.config/svc.",
      exit: 2,
    });
  }
  return { home, cwd: Deno.cwd(), get: read };
}

/** The per-user directory, `~/.config/svc`. */
export function userDirectory(environment: Environment): string {
  return join(environment.home, ".config", "svc");
}

function read(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined; // the variable is outside the executable's --allow-env list
  }
}
