/** Plays docs/postgres.md: a database is set up, a worktree moves into it, machines run its jobs, and it moves out. */
import assert from "node:assert/strict";
import { startBackend } from "../support/backend.ts";
import { blockWith, projectShell, type Shell } from "../support/documents.ts";
import { repository } from "../support/git.ts";
import { done } from "../support/new_user.ts";
import { filePostgres } from "../support/postgres.ts";
import { poll } from "../support/processes.ts";
import { project } from "../support/project.ts";

const { needed, server } = await filePostgres();
const block = (text: string) =>
  blockWith("docs/postgres.md", "sh", text).replaceAll(/ +#.*$/gm, "");

Deno.test({
  name: "docs/postgres.md sets up a store, runs jobs on workers, and takes the files out again",
  ...needed,
  fn: async () => {
    await using backend = startBackend({ replies: [], default: { text: "noted" } });
    const settings = { base_url: backend.url, model: "test", plugins: [], "memory.job": false };
    await using place = await project({
      ".svc/config.json": JSON.stringify(settings),
      "password.txt": "unused\n",
    });
    const { url } = await repository(place, "site", { "README.md": "# Site\n" });
    const sh = await projectShell(place, {
      PATH: `${place.path}/bin:${server.binaries}:/usr/local/bin:/usr/bin:/bin`,
      PGHOST: "127.0.0.1",
      PGPORT: `${server.port}`,
      PGUSER: "postgres",
    });
    await makeDatabase(sh);

    await done(sh, "svc run --session-id before go");
    const setting = block("svc store import");
    const [address] = /postgres:\/\/svc@\S+/.exec(setting)!;
    const own = `postgres://svc@127.0.0.1:${server.port}/svc`;
    await done(sh, setting.replace(address, own));
    assert.match(await done(sh, "svc sessions"), /before/);

    {
      await using _ = await startMachines(sh);
      await done(sh, block("--git").replace(/https:[^"]*/, `${url}#main`));
      const at = new Date(Date.now() + 2000).toISOString();
      await done(sh, `svc jobs add soon --at ${at} --prompt go --git ${url} --approval auto`);
      await poll(
        async () => JSON.parse(await done(sh, "svc jobs show soon --output json")).history,
        (history) => history.length === 1 && history[0].status === "verified",
      );
    }
    const [dump, taken] = block("svc store export").trim().split("\n") as [string, string];
    await done(sh, `export SVC_STORE=${own}\n${taken}`);
    assert.match(await done(sh, "ls copy/.svc/sessions"), /before\.json/);
    assert.match(await done(sh, "cd copy && SVC_STORE= svc jobs"), /nightly[^]*soon[^]*train/);
    // The binaries of npm have no such programs.
    if ((await sh(`test -x ${server.binaries}/pg_dump`)).code !== 0) return;
    await done(sh, dump.replace("--host=db.example.org ", ""));
    assert.match(await done(sh, "pg_restore --list svc.dump"), /TABLE DATA svc/);
  },
});

/** Makes the user and the database; by the commands where their programs are. */
async function makeDatabase(sh: Shell): Promise<void> {
  const commands = block("createuser").replaceAll("sudo -u postgres ", "").replace(
    "--pwprompt ",
    "",
  );
  if ((await sh("command -v createuser")).code === 0) return void await done(sh, commands);
  await server.query("CREATE ROLE svc LOGIN");
  await server.query("CREATE DATABASE svc OWNER svc");
}

/** Starts the processes of the document, and stops them. */
async function startMachines(sh: Shell): Promise<AsyncDisposable> {
  const commands = block("svc worker --label gpu").trim().split("\n");
  const started = await Promise.all(commands.map(async (command, number) => {
    const port = /serve|worker/.test(command) ? " --port 0" : "";
    return (await sh(`(exec ${command}${port}) >machine-${number}.log 2>&1 & echo $!`)).text.trim();
  }));
  return {
    async [Symbol.asyncDispose]() {
      for (const [number, id] of started.entries()) {
        await sh(`kill ${id}`);
        await poll(async () => (await sh(`kill -0 ${id}`)).code, (code) => code !== 0);
        const log = (await sh(`cat machine-${number}.log`)).text;
        assert.doesNotMatch(log, /rror/, log);
      }
    },
  };
}
