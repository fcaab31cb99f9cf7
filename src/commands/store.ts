import { join, resolve } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import { timestamp } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import { type Link, PASSWORDS } from "../store/link.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { pathOf } from "./names.ts";
import { argument, command } from "./options.ts";
import { openWorkspace } from "./workspace.ts";

const path = pathOption;

/** `svc store`: the PostgreSQL database that several machines share (setting `store`). */
export const store = defineCommand({
  parser: command("store", [
    command(
      "check",
      { action: "check", output: outputOption, path },
      "Show whether the store answers, its version, and what it has of this project.",
    ),
    command(
      "migrate",
      { action: "migrate", path },
      "Make the tables of svc in the store, or bring them to the version of this svc.",
    ),
    command(
      "import",
      { action: "import", path },
      "Move the sessions, jobs, asks, runs, memories and usage of this worktree into the store.",
    ),
    command(
      "export",
      {
        action: "export",
        folder: argument(
          pathOf("DIR"),
          "A folder without a .svc; it is made where it is missing.",
        ),
        path,
      },
      "Write everything that the store has of this project into the files of another folder.",
    ),
    command(
      "password",
      { action: "password", path },
      "Keep the password of the store, which is read from the terminal or standard input.",
    ),
  ], "Set up and check the PostgreSQL database that several machines share."),
  bare: "check",
  examples: [
    "svc config set store postgres://svc@db.example.org/svc",
    "svc store password < password.txt",
    "svc store migrate",
    "svc store import",
    "svc store check --output json",
    "svc store export ~/copy",
  ],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    const link = workspace.store;
    if (link === undefined) {
      throw usageError(
        "no_store",
        "No store is set.",
        "Set one: svc config set store postgres://user@host/database",
      );
    }
    try {
      switch (values.action) {
        case "check":
          return await check(link, values.output, io);
        case "migrate": {
          const { migrate } = await import("../store/migrations.ts");
          const steps = await migrate(await link.connect());
          for (const step of steps) io.note(`Made: ${step}`);
          io.note(`The store ${link.address} has the version of this svc.`);
          return 0;
        }
        case "import": {
          const { importFiles } = await import("./store_transfer.ts");
          io.note(`In the store ${link.address}: ${counted(await importFiles(workspace, link))}.`);
          return 0;
        }
        case "export": {
          const { exportFiles } = await import("./store_transfer.ts");
          const to = resolve(io.environment.cwd, values.folder);
          io.note(`Written into ${to}: ${counted(await exportFiles(workspace, link, to))}.`);
          return 0;
        }
        case "password":
          return await keepPassword(workspace, link, io);
      }
    } finally {
      if (io.live !== workspace) await workspace.close();
    }
  },
});

async function check(link: Link, output: "text" | "json", io: Io): Promise<number> {
  const { version, latency } = await (await link.connect()).database.server();
  const store = await link.open();
  const counts = await store.counts();
  const { address, project } = link;
  if (output === "json") {
    io.out(toJson({ address, project, server: version, latency_ms: latency, ...counts }, 2) + "\n");
  } else {
    io.out(`${address} answers in ${latency} ms (PostgreSQL ${version})\n`);
    io.out(`project ${project}: ${counted(counts)}\n`);
  }
  return 0;
}

function counted(counts: object): string {
  const one = (name: string) => name.replace(/ies$/, "y").replace(/s$/, "");
  return Object.entries(counts)
    .map(([name, count]) => `${count} ${count === 1 ? one(name) : name}`).join(", ");
}

/** Keeps the password in a file of the user that is readable by its owner alone, as keys of providers are. */
async function keepPassword(
  { paths, clock, warn }: Workspace,
  { address }: Link,
  io: Io,
): Promise<number> {
  const given = io.isTerminal("in")
    ? await io.readHidden(`Password of ${address}: `)
    : await io.readInput();
  if (given === undefined) return 130;
  const password = given.replace(/\r?\n$/, "");
  if (password === "") throw usageError("usage", "The password is empty.", "Nothing was stored.");
  const file = new RegistryFile(join(paths.user, PASSWORDS), clock, warn);
  const entry = { password, added_at: timestamp(clock) };
  await file.update((value) => ({ ...value as object | undefined, [address]: entry }));
  io.note(`Stored the password of ${address}.`);
  return 0;
}
