import assert from "node:assert/strict";
import { call, type Reply, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { bubblewrap } from "../support/sandbox.ts";

const run = (command: string) => call("run_command", { command });
const as = (system: string, reply: Reply): Reply => ({ ...reply, when: { system } });

const BUBBLEWRAP = await bubblewrap();

const TEST = 'import { hut } from "./hut.js";\nif (hut() !== "dry") throw new Error("it leaks");\n';

/** The stages of the bundled team `programming`, each with the commands that it cannot do without. */
const STORY: Reply[] = [
  as("You plan changes", say("Write hut.js.")),
  as(
    "You program.",
    call("file_write", { path: "hut.js", content: 'export const hut = () => "dry";\n' }),
  ),
  as("You program.", run("git add -A && git commit -q -m 'build a hut'")),
  as("You program.", say("built")),
  as("You test.", call("file_write", { path: "hut_test.js", content: TEST })),
  as("You test.", run("cp hut.js checked.js && grep -c dry hut.js")),
  as("You test.", say("it is dry")),
  as("You review changes", run("git log --oneline")),
  as("You review changes", say("fine\n\nVERDICT: pass")),
];

async function repository(url: string, settings: Record<string, unknown> = {}): Promise<Project> {
  const config = { base_url: url, model: "test", memory_enabled: false, ...settings };
  const place = await project({ ".config/svc/config.json": JSON.stringify(config) });
  for (
    const args of [["init", "-q"], ["config", "user.email", "a@b.example"], [
      "config",
      "user.name",
      "A",
    ]]
  ) await new Deno.Command("git", { args, cwd: place.path }).output();
  await place.write(".git/info/exclude", ".config\n.svc\n");
  return place;
}

const outputs = async (place: Project, session: string): Promise<string[]> => {
  const { turns } = JSON.parse(await place.read(`.svc/sessions/${session}.json`));
  return turns[0].parts.flatMap(({ output }: { output?: string }) => output ?? []);
};

Deno.test(
  "teams run programming, unattended: commits and tests for real in a sandbox [4.8]",
  BUBBLEWRAP,
  async () => {
    await using backend = startBackend(STORY);
    await using place = await repository(backend.url);
    const { code, stdout, stderr } = await svc(
      ["teams", "run", "programming", "build a hut", "--unattended"],
      { cwd: place.path },
    );
    assert.equal(code, 0, stderr);
    const result = JSON.parse(stdout);
    assert.deepEqual([result.status, result.refused], ["ok", []]);
    assert.doesNotMatch(stderr, /refused/);
    const log = await new Deno.Command("git", { args: ["log", "--format=%s"], cwd: place.path })
      .output();
    assert.equal(new TextDecoder().decode(log.stdout), "build a hut\n");
    assert.match(await place.read("checked.js"), /dry/);
    const { sub_sessions } = JSON.parse(await place.read(`.svc/sessions/${result.session}.json`));
    assert.match((await outputs(place, sub_sessions[3]))[0]!, /exit 0\n.* build a hut/);
    const review = JSON.parse(await place.read(`.svc/sessions/${sub_sessions[3]}.json`));
    assert.equal(review.permissions[0].sandbox, "bubblewrap");
  },
);

Deno.test("without a sandbox the team is told what will be refused and why, and its result names it", async () => {
  await using backend = startBackend([
    as("You plan changes", say("Write hut.js.")),
    as("You program.", run("git commit -m x")),
    as("You program.", say("I could not commit.")),
  ]);
  await using place = await repository(backend.url, { "sandbox.mode": "off" });
  const { code, stdout, stderr } = await svc(["teams", "run", "programming", "x", "--unattended"], {
    cwd: place.path,
  });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^Team programming: calls of programmer, tester, code-reviewer will be refused \(bash \(ask\)\), and no one can approve them: a bundled role opens it only while a full sandbox is in force for commands\. See: svc roles show programmer$/m,
  );
  const result = JSON.parse(stdout);
  assert.equal(result.status, "error");
  assert.deepEqual(result.refused, ["run_command (bash)"]);
  assert.match(
    result.errors[0].message,
    /Stage 2, programmer \(#3, .*could do nothing: all its calls were refused: run_command \(bash\)/,
  );
});

Deno.test("roles show prints the rights in force and why; accept makes an agent's role one's own", async () => {
  await using place = await repository("http://127.0.0.1:1", { "sandbox.mode": "off" });
  const show = async (name: string, ...flags: string[]) => {
    const { code, stdout, stderr } = await svc(["roles", "show", name, ...flags], {
      cwd: place.path,
    });
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const text = await show("programmer");
  assert.match(text, /^rights of svc run --role programmer now, in mode build/m);
  assert.match(text, /^ {2}read +allow +the default$/m);
  assert.match(text, /^ {2}web +deny +the role \(bundled\)$/m);
  assert.match(
    text,
    /^ {2}bash +ask +the default; the role asks for allow, but a bundled role opens it only while a full/m,
  );
  assert.match(text, /^ {2}dev +ask +as bash$/m);

  await place.write(
    ".config/svc/roles.json",
    JSON.stringify({
      mine: { tool_permission: { bash: "allow" } },
      theirs: { tool_permission: { bash: "allow" }, accepted: false },
    }),
  );
  const rights = async (name: string) => {
    const { rights } = JSON.parse(await show(name, "--output", "json"));
    return rights.find(({ category }: { category: string }) => category === "bash");
  };
  const opened = { category: "bash", action: "allow", reason: "the role (global) opens it" };
  assert.deepEqual(await rights("mine"), opened);
  assert.match(
    (await rights("theirs")).reason,
    /a model saved this role, and no person has accepted it/,
  );
  const { code, stderr } = await svc(["roles", "accept", "theirs", "--global"], {
    cwd: place.path,
  });
  assert.equal(code, 0, stderr);
  assert.deepEqual(await rights("theirs"), opened);
});

Deno.test("roles new says what the copy of a bundled role opens", async () => {
  await using place = await repository("http://127.0.0.1:1", { "sandbox.mode": "off" });
  const roles = (...args: string[]) => svc(["roles", ...args], { cwd: place.path });
  const copied = await roles("new", "programmer");
  assert.equal(copied.code, 0, copied.stderr);
  assert.match(
    copied.stderr,
    /^It opens bash: as programmer, calls that you would be asked about/m,
  );
  assert.match(
    (await roles("show", "programmer")).stdout,
    /^ {2}bash +allow +the role \(local\) opens it$/m,
  );
  const calm = await roles(
    "new",
    "clerk",
    "--tool-permission",
    "bash=deny",
    "--description",
    "calm",
  );
  assert.doesNotMatch(calm.stderr, /It opens/);
  assert.match((await roles("list")).stdout, /^clerk +local +calm$/m);
  assert.equal((await roles("remove", "clerk")).code, 0);
  assert.doesNotMatch((await roles("list")).stdout, /^clerk/m);
  assert.equal((await roles("show", "clerk")).code, 2);
});

Deno.test(
  "with a sandbox, roles show says that it opens the commands of a bundled role",
  BUBBLEWRAP,
  async () => {
    await using place = await repository("http://127.0.0.1:1");
    const { stdout } = await svc(["roles", "show", "tester"], { cwd: place.path });
    assert.match(
      stdout,
      /^ {2}bash +allow +the role \(bundled\) opens it, while a full sandbox is in force for commands$/m,
    );
  },
);
