import assert from "node:assert/strict";
import { httpError, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { server } from "../server/support.ts";
import { session } from "../support/repl.ts";

/** A PNG of one pixel. */
const PNG = Uint8Array.fromBase64(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
);
const URL_OF_PNG = `data:image/png;base64,${PNG.toBase64()}`;

Deno.test("svc run --attach gives the model a text, a folder and an image; later processes send the same bytes", async () => {
  await using place = await project({ "src/a.ts": "let a = 1;\n", "src/sub/b.ts": "" });
  await Deno.writeFile(`${place.path}/one.png`, PNG);
  await using backend = startBackend([say("seen"), say("again")]);
  const args = ["run", "--base-url", backend.url, "--model", "test", "--session-id", "s"];
  const given = ["--attach", "src/a.ts", "--attach", "src", "--attach", "one.png"];
  const first = await svc([...args, ...given, "-p", "look"], { cwd: place.path });
  assert.equal(first.code, 0, first.stderr);
  const second = await svc([...args, "-p", "and now?"], { cwd: place.path });
  assert.equal(second.code, 0, second.stderr);
  const [one, two] = backend.chats.map(({ messages }) => messages);
  const [text, image] = one.at(-1).content;
  assert.match(
    text.text,
    /^look\n\n<attachment name="src\/a\.ts">\nlet a = 1;\n<\/attachment>\n\n/,
  );
  assert.match(text.text, /The folder src has:\na\.ts\nsub\/\n/);
  assert.deepEqual(image, { type: "image_url", image_url: { url: URL_OF_PNG } });
  assert.deepEqual(two.slice(0, one.length), one);

  const { turns } = JSON.parse(await place.read(".svc/sessions/s.json"));
  const { text: prompt, attachments } = turns[0].parts[0];
  assert.equal(prompt, "look");
  assert.deepEqual(
    attachments.map(({ name, bytes, media_type }: Record<string, unknown>) => [
      name,
      bytes,
      media_type,
    ]),
    [["src/a.ts", 11, undefined], ["src", 30, undefined], ["one.png", PNG.length, "image/png"]],
  );
  const kept = `${place.path}/.svc/sessions/.s.attached`;
  assert.equal(Deno.statSync(`${kept}/${attachments[0].digest}`).mode! & 0o777, 0o600);
  const exported = await svc(["sessions", "export", "s", "-"], { cwd: place.path });
  assert.match(exported.stdout, /Attached: `one\.png`, \d+ bytes/);
  assert.equal((await svc(["sessions", "delete", "s"], { cwd: place.path })).code, 0);
  assert.throws(() => Deno.statSync(kept), Deno.errors.NotFound);
});

Deno.test("a model that takes no images is sent the prompt without them, and told so", async () => {
  await using place = await project({});
  await Deno.writeFile(`${place.path}/one.png`, PNG);
  const refusal = httpError(
    400,
    "Invalid content type. image_url is only supported by vision models",
  );
  await using backend = startBackend([refusal, say("blind")]);
  const args = ["run", "--base-url", backend.url, "--model", "test", "--attach", "one.png"];
  const { code, stdout } = await svc([...args, "-p", "look"], { cwd: place.path });
  assert.equal(code, 0);
  assert.equal(JSON.parse(stdout).content, "blind");
  const { content } = backend.chats[1].messages.at(-1);
  assert.match(content, /^look\n\n\[The model takes no images; these were left out: one\.png\]$/);
});

Deno.test("a limit of a model for images is no refusal of them", async () => {
  await using place = await project({});
  await Deno.writeFile(`${place.path}/one.png`, PNG);
  const limit = httpError(429, "Rate limit reached for gpt-4-vision", { "retry-after": "0" });
  await using backend = startBackend([limit, say("seen")]);
  const args = ["run", "--base-url", backend.url, "--model", "test", "--attach", "one.png"];
  const { code } = await svc([...args, "-p", "look"], { cwd: place.path });
  assert.equal(code, 0);
  const [text, image] = backend.chats[1].messages.at(-1).content;
  assert.deepEqual([text.text, image.type], ["look", "image_url"]);
});

Deno.test("what cannot be attached is one sentence and a hint, exit code 2, before anything is asked", async () => {
  await using place = await project({ "large.txt": "x".repeat(1_000_001) });
  await Deno.writeFile(`${place.path}/program`, new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0, 1]));
  assert.ok((await new Deno.Command("mkfifo", { args: [`${place.path}/pipe`] }).output()).success);
  await Deno.writeTextFile(`${place.path}/endless.txt`, "");
  await Deno.truncate(`${place.path}/endless.txt`, 80_000_000_000);
  const wrong: [string, RegExp][] = [
    ["missing.txt", /missing\.txt cannot be attached: there is no such file/],
    ["large.txt", /large\.txt has 1000001 bytes; an attached text has at most 1000000/],
    ["program", /program is neither a text in UTF-8 nor an image/],
    ["pipe", /pipe cannot be attached: it is no regular file/],
    ["/dev/zero", /\/dev\/zero cannot be attached: it is no regular file/],
    ["endless.txt", /endless\.txt has 80000000000 bytes; an attached text has at most 1000000/],
  ];
  for (const [path, sentence] of wrong) {
    const args = ["run", "--provider", "demo", "--attach", path, "-p", "look"];
    const { code, stderr } = await svc(args, { cwd: place.path });
    assert.equal(code, 2);
    assert.match(stderr, sentence);
    assert.match(stderr, /hint: /);
  }
});

Deno.test("POST /chat takes texts and images along with the prompt, and refuses others with 400 [4.1]", async () => {
  await using at = await server([say("one")]);
  const attachments = [
    { name: "log", text: "line\n" },
    { name: "one.png", image: PNG.toBase64() },
  ];
  assert.equal((await at.post("/chat", { prompt: "look", attachments })).status, 200);
  const [text, image] = at.backend.chats[0].messages.at(-1).content;
  assert.equal(text.text, 'look\n\n<attachment name="log">\nline\n</attachment>');
  assert.equal(image.image_url.url, URL_OF_PNG);
  const wrong: [attachment: unknown, message: RegExp][] = [
    [{ name: "neither" }, /wrong "attachments"/],
    [{ name: "x", image: "%%%" }, /wrong "attachments"/],
    [{ name: "x", image: btoa("\x00\x01") }, /wrong "attachments"/],
    [{ text: "unnamed" }, /wrong "attachments"/],
    [
      { name: "x", text: "y".repeat(1_000_001) },
      /x has 1000001 bytes; an attached text has at most/,
    ],
  ];
  for (const [attachment, message] of wrong) {
    const { status, body } = await at.post("/chat", { prompt: "look", attachments: [attachment] });
    assert.equal(status, 400);
    assert.match(body.error, message);
  }
});

Deno.test("@path in a message attaches; !cmd gives its output to the model, !!cmd does not", async () => {
  await using open = await session([say("one"), say("two")], {
    files: { "notes.txt": "remember" },
  });
  await open.enter("read (@notes.txt), @nothing and me@example.org", /attached: notes\.txt[^]*one/);
  await open.ready();
  await open.enter("!echo made it; exit 3", /made it\nexit 3\n/);
  await open.enter("!!echo for me alone", /for me alone/);
  await open.enter("so?", "two");
  await open.ready();
  await open.enter("/print 1", "attached: notes.txt, 8 bytes");
  const [first, second] = open.backend.chats.map(({ messages }) => messages.at(-1).content);
  assert.match(first, /^read [^]*<attachment name="notes\.txt">\nremember\n<\/attachment>$/);
  assert.equal(
    second,
    'so?\n\n<attachment name="$ echo made it; exit 3">\nmade it\nexit 3\n</attachment>',
  );
  const { parts } = open.saved()[0].turns[1];
  assert.deepEqual(
    parts.slice(0, 2).map(({ type, text }: Record<string, string>) => [type, text]),
    [
      ["command", "!echo made it; exit 3"],
      ["user", "so?"],
    ],
  );
});

Deno.test("a message that could not be sent leaves no attachment for the next one", async () => {
  await using open = await session([say("one")], {
    files: { "notes.txt": "remember" },
    config: { provider: "nowhere" },
  });
  await open.enter("read @notes.txt", /attached: notes\.txt[^]*! Error/);
  await open.enter("/config set provider generic-compatible", "provider");
  await open.enter("read it", "one");
  assert.equal(open.backend.chats[0].messages.at(-1).content, "read it");
});

Deno.test("a secret that !cmd prints is not given to the model", async () => {
  const homeFiles = { ".config/svc/config.json": '{"report": {"secret": "open-sesame-open"}}' };
  const files = { "notes.txt": "the key is open-sesame-open\n" };
  await using open = await session([say("one")], { homeFiles, files });
  await open.enter("!cat notes.txt", /the key is open-sesame-open\n/);
  await open.enter("so?", "one");
  const { content } = open.backend.chats[0].messages.at(-1);
  assert.match(content, /^the key is \[masked\]\nexit 0$/m);
});

Deno.test("a piped line is a message: it runs nothing and attaches nothing", async () => {
  await using place = await project({});
  await using home = await project({ ".config/svc/config.json": '{"provider": "demo"}' });
  const options = {
    cwd: place.path,
    home: home.path,
    stdin: `!touch made\nsee @${home.path}/.config\n`,
  };
  const { code, stderr } = await svc([], options);
  assert.equal(code, 0, stderr);
  assert.throws(() => Deno.statSync(`${place.path}/made`), Deno.errors.NotFound);
  const [file] = Deno.readDirSync(`${place.path}/.svc/sessions`)
    .filter(({ name }) => name.endsWith(".json"));
  const { turns } = JSON.parse(await place.read(`.svc/sessions/${file!.name}`));
  assert.equal(turns[0].parts[0].text, "!touch made");
  assert.match(turns[1].parts[0].text, /^see @/);
  assert.equal(turns[1].parts[0].attachments, undefined);
});
