/** What a new user does with svc, by the commands of the documents alone. */
import assert from "node:assert/strict";
import { blocks, blockWith, freePort, play, type Shell } from "./documents.ts";
import { poll } from "./processes.ts";
import { call, say, startBackend } from "./backend.ts";

/** A shell in an empty worktree of a user who has svc and no settings, and the path of that folder there. */
export interface NewUser {
  sh: Shell;
  work: string;
}

/** Runs one need, and prints how long it took. */
export async function timed(need: string, work: () => Promise<void>): Promise<void> {
  const begun = performance.now();
  await work();
  // deno-lint-ignore no-console
  console.log(`${need}: ${((performance.now() - begun) / 60_000).toFixed(2)} min`);
}

/** The needs that are the same wherever svc has been installed. A container has a server already. */
export async function playNeeds(user: NewUser, { serves = false } = {}): Promise<void> {
  await using model = startBackend({
    replies: [
      { when: { system: "You keep the memory of" }, repeat: 99, text: "noted" },
      { when: { user: "Review the last" }, text: '{"faults": []}' },
      {
        ...call("file_read", { path: "README.md" }),
        when: { user: "Review the last" },
        usage: { prompt_tokens: 300_000, completion_tokens: 9, total_tokens: 300_009 },
      },
      { ...call("ask", { question: "Which port?" }), when: { user: "choose a port" } },
      { when: { tool_result: "parked" }, text: "The port is not decided yet." },
      { when: { user: "choose a port" }, text: "The site listens on 9090." },
    ],
    default: say("noted"),
  });
  await timed("a first turn", () => firstTurn(user));
  await timed("a CI run with JSON, a budget and a schema", () => ci(user, model.url));
  await timed("a question that is answered", () => question(user));
  assert.match(JSON.stringify(model.chats), /\[answer to parked ask #1\] 9090/);
  await timed("a job that runs overnight once it is approved", () => overnight(user));
  if (!serves) await timed("a server that wants a token", () => server(user));
  await timed("a fleet of two", () => fleet(user));
  await timed("a plugin and an MCP server", () => extend(user));
}

async function firstTurn({ sh, work }: NewUser): Promise<void> {
  await write(
    sh,
    "README.md",
    "# Site\n\nThe web site of the harbour, and what it needs to be built.\n\nBuild it with make.\nIt goes to build/.\n",
  );
  const [turn] = blocks("README.md", "console");
  await play(sh, turn!.replaceAll("/srv/site", work));
}

/** Connects a model as README.md does, and runs the commands of docs/ci.md. */
async function ci({ sh }: NewUser, url: string): Promise<void> {
  const connect = lineWith("README.md", "connect http://127.0.0.1:11434");
  await done(sh, connect.replace("http://127.0.0.1:11434", url));
  await write(sh, "review.json", blockWith("docs/ci.md", "json", "faults"));
  const review = blockWith("docs/ci.md", "sh", "--schema review.json");
  await done(sh, review);
  assert.match((await sh("cat summary.md")).text, /^## svc: ok\n/);
  const { status, data } = JSON.parse((await sh("cat result.json")).text);
  assert.deepEqual([status, data], ["ok", { faults: [] }]);
  const limited = await sh(review);
  assert.equal(limited.code, 3, limited.text);
  assert.equal(JSON.parse((await sh("cat result.json")).text).reason, "budget");
  await done(sh, blockWith("docs/ci.md", "sh", "a limit was reached"));
}

async function question({ sh }: NewUser): Promise<void> {
  await play(sh, blockWith("docs/jobs.md", "console", "svc asks answer"));
}

/** Plays docs/jobs.md. The night passes by an edit of the register, which the document permits. */
async function overnight({ sh, work }: NewUser): Promise<void> {
  await done(
    sh,
    "svc config set provider demo; svc config unset base_url --global; svc config unset model --global",
  );
  const first = blockWith("docs/jobs.md", "sh", "svc jobs edit nightly").replaceAll(/ +#.*$/gm, "");
  assert.match(
    await done(sh, `export EDITOR=true\n${first.replace(/^svc jobs daemon[^]*/m, "")}`),
    /nightly: ended ok/,
  );
  await play(
    sh,
    blockWith("docs/jobs.md", "console", "--require-approval").replaceAll("/srv/site", work),
  );
  await done(sh, "svc jobs approve release");
  const past = 's/"next_run_at": "[^"]\\+"/"next_run_at": "2026-01-01T03:30:00.000Z"/';
  await done(sh, `sed -i '${past}' .svc/jobs.json`);
  const night = await done(sh, "svc jobs daemon --detach");
  try {
    await poll(
      async () => (await sh("svc jobs status")).text,
      (text) =>
        /WAITING for approve: release[^]*release: waiting_approval[^]*times fired: +2 \(2 ok/.test(
          text,
        ),
    );
    assert.match(
      await done(sh, lineWith("docs/jobs.md", "jobs digest")),
      /release +2 attempts/,
    );
  } finally {
    await done(sh, "svc jobs daemon stop");
  }
  assert.match(night, /The scheduler runs as process/);
}

/** Makes a token as docs/security.md says, and sends it as docs/install.md does. */
async function server({ sh, work }: NewUser): Promise<void> {
  const port = freePort();
  const text = blockWith("docs/install.md", "sh", "svc serve token");
  const ask = /^curl -H .*$/m.exec(text)![0].replace("8787", `${port}`);
  await done(sh, "svc serve token");
  const serve =
    `$ svc serve --path ${work} --port ${port} &\nlistening on http://127.0.0.1:${port}\n`;
  const said = `$ token=$(head -n 1 ~/.config/svc/serve.tokens); ${
    ask.replace("curl", "curl -s")
  }\n{"content":"This folder holds...\n`;
  await play(sh, `${serve}${said}$ ${ask.replace(/-H ".*?" /, "-s ")}\n{"error":...\n`);
  await done(sh, "svc config unset serve.token_file --global");
}

async function fleet({ sh, work }: NewUser): Promise<void> {
  const port = freePort();
  const [code] = blocks("README.md", "console").filter((code) => code.includes("svc fleet init"));
  for (const name of ["docs", "site"]) {
    await done(sh, `mkdir -p agents/${name} && cd agents/${name} && svc config set provider demo`);
  }
  const within: Shell = (script) =>
    sh(`cd agents && export SVC_FLEET_PORT=${port}-${port + 1}\n${script}`);
  try {
    await play(
      within,
      code!.replaceAll("/srv/agents", `${work}/agents`)
        .replace("8780", `${port}`).replace("8781", `${port + 1}`),
    );
  } finally {
    await play(within, "$ svc fleet down\n...The fleet is down.");
  }
}

async function extend({ sh, work }: NewUser): Promise<void> {
  await play(sh, blocks("docs/plugins.md", "console")[0]!.replaceAll("/srv/site", work));
  const config = JSON.parse(blockWith("docs/mcp.md", "json", "mcp.servers"));
  const [files, tracker] = config["mcp.servers"];
  Object.assign(files, { command: "svc", args: ["mcp", "--path", work], sandbox: false });
  using refusing = refusingServer();
  Object.assign(tracker, { url: refusing.url });
  await done(sh, `svc config set mcp.servers '${JSON.stringify([files, tracker])}'`);
  const listed = blockWith("docs/mcp.md", "console", "svc mcp list");
  // Another server plays the part of server-filesystem.
  const part = listed.replaceAll(/stdio, \S+ +14 tools/g, "...tools").replace(
    /\(stdio,.*tools/,
    "(...tools",
  )
    .replace(/files\.read_file.*/, "files.file_read  ...");
  await play(sh, part);
}

/** A server that refuses every request, as one whose token is wrong. */
function refusingServer(): { url: string } & Disposable {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response("the token has expired", { status: 401 }),
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    [Symbol.dispose]: () => void server.shutdown(),
  };
}

/** Runs a script that must end well, and returns what it prints. */
export async function done(sh: Shell, script: string): Promise<string> {
  const { code, text } = await sh(script);
  assert.equal(code, 0, `${script}\n${text}`);
  return text;
}

/** The only line of a document's commands that has this text. */
export function lineWith(path: string, text: string): string {
  const lines = blocks(path, "sh").join("").split("\n").filter((line) => line.includes(text));
  assert.equal(lines.length, 1, `${path} has ${lines.length} lines with ${text}`);
  return lines[0]!.replace(/ +#.*$/, "");
}

async function write(sh: Shell, file: string, text: string): Promise<void> {
  await done(sh, `cat >'${file}' <<'END_OF_FILE'\n${text.trimEnd()}\nEND_OF_FILE`);
}
