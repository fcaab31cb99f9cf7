// deno-lint-ignore-file no-console
/** A small program to put into an executable: each command shows one thing about where it runs. */
import { pathToFileURL } from "node:url";

const commands: Record<string, (...args: string[]) => unknown> = {
  echo: async (...args) => ({
    args,
    cwd: Deno.cwd(),
    stdin: await new Response(Deno.stdin.readable).text(),
    pid: Deno.pid,
  }),
  exit: (code) => Deno.exit(Number(code)),
  wait: async () => {
    const stopped = new Promise<void>((stop) => Deno.addSignalListener("SIGTERM", stop));
    console.log("ready");
    await stopped;
    return "stopped";
  },
  permissions: (...paths) => ({
    run: Deno.permissions.querySync({ name: "run" }).state,
    net: Deno.permissions.querySync({ name: "net" }).state,
    read: Deno.permissions.querySync({ name: "read" }).state,
    env: Deno.permissions.querySync({ name: "env" }).state,
    home: Deno.permissions.querySync({ name: "env", variable: "HOME" }).state,
    ffi: Deno.permissions.querySync({ name: "ffi" }).state,
    sys: Deno.permissions.querySync({ name: "sys" }).state,
    write: paths.map((path) => Deno.permissions.querySync({ name: "write", path }).state),
  }),
  child: async () => {
    const child = new Deno.Command("/usr/bin/env", { stdout: "piped" });
    return new TextDecoder().decode((await child.output()).stdout).split("\n").sort();
  },
  serve: () => variables(),
  run: () => variables(),
  plugin: async (path) => (await import(pathToFileURL(path!).href)).answer,
  package: async () => (await import("diff")).diffWords("a b", "a c").length,
  remote: (url) => import(url!),
};

/** The variables of this process as it was started, and of a program that it runs. */
async function variables() {
  const child = new Deno.Command("/bin/cat", {
    args: [`/proc/${Deno.pid}/environ`],
    stdout: "piped",
  });
  const started = new TextDecoder().decode((await child.output()).stdout).split("\0");
  return { started, child: await commands.child!() };
}

const [name = "echo", ...args] = Deno.args;
console.log(JSON.stringify(await commands[name]!(...args)));
