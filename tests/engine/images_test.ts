import assert from "node:assert/strict";
import { dirname } from "node:path";
import { Conversation } from "../../src/engine/conversation.ts";
import type { ChatMessage } from "../../src/plugins/api.ts";
import type { Part } from "../../src/sessions/schema.ts";
import { agent, collect, results } from "../support/agent.ts";
import { call, calls, httpError, say } from "../support/backend.ts";
import { textMessages } from "../../src/providers/text_tools.ts";

/** A PNG of one pixel. */
const PNG = Uint8Array.fromBase64(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
);
const GIF = Uint8Array.fromBase64("R0lGODlhAQABAAAAACwAAAAAAQABAAAC");
const image = (type: string, bytes: Uint8Array) => ({
  type: "image_url",
  image_url: { url: `data:image/${type};base64,${bytes.toBase64()}` },
});
const READ = calls([["file_read", { path: "a.png" }], ["file_read", { path: "b.gif" }]]);

async function withImages(folder: string): Promise<void> {
  await Deno.writeFile(`${folder}/a.png`, PNG);
  await Deno.writeFile(`${folder}/b.gif`, GIF);
}

Deno.test("file_read gives images after the results of the reply; later processes send the same bytes", async () => {
  await using it = await agent([READ, say("seen"), say("again"), say("gone")]);
  await withImages(it.project.path);
  const outputs = results((await it.turn("look")).events);
  assert.deepEqual(outputs, [
    `# a.png - PNG image, ${PNG.length} bytes\n(shown with this result)`,
    `# b.gif - GIF image, ${GIF.length} bytes\n(shown with this result)`,
  ]);
  await collect(it.another().turn("and now?"));
  const [, before, after]: ChatMessage[][] = it.backend.chats.map(({ messages }) => messages);
  assert.deepEqual(before!.slice(-3).map(({ role }) => role), ["tool", "tool", "user"]);
  assert.deepEqual(before!.at(-1)!.content, [
    { type: "text", text: "[The images of these results: a.png, b.gif]" },
    image("png", PNG),
    image("gif", GIF),
  ]);
  assert.deepEqual(after!.slice(0, before!.length), before);

  const log = JSON.stringify(it.session.document());
  assert.ok(!log.includes(PNG.toBase64()), "the log has no images");
  const part = it.session.document().turns[0]!.parts[1]!;
  assert.ok(part.type === "tool");
  const [{ digest, ...attached } = { digest: "" }] = part.attachments!;
  assert.deepEqual(attached, { name: "a.png", bytes: PNG.length, media_type: "image/png" });
  const kept = `${it.project.path}/.svc/sessions/.${it.session.name}.kept/${digest}`;
  assert.deepEqual(Deno.readFileSync(kept), PNG);

  Deno.removeSync(dirname(kept), { recursive: true });
  await collect(it.another().turn("gone?"));
  const later = JSON.stringify(it.backend.chats.at(-1).messages);
  assert.match(later, /\[The attachment a\.png is no longer kept\.\]/);
});

Deno.test("a model that takes no images is told which were left out", async () => {
  const refusal = httpError(
    400,
    "Invalid content type. image_url is only supported by vision models",
  );
  await using it = await agent([READ, refusal, say("blind")]);
  await withImages(it.project.path);
  const { result } = await it.turn("look");
  assert.equal(result.status, "ok");
  const { messages } = it.backend.chats.at(-1);
  assert.deepEqual(messages.slice(-2).map(({ content }: ChatMessage) => content), [
    `# a.png - PNG image, ${PNG.length} bytes\n(shown with this result)\n\n[The model takes no images; these were left out: a.png]`,
    `# b.gif - GIF image, ${GIF.length} bytes\n(shown with this result)\n\n[The model takes no images; these were left out: b.gif]`,
  ]);
});

Deno.test("a backend with strict roles gets an answer between the results and their images", async () => {
  const refusal = httpError(400, "Unexpected role 'user' after role 'tool'");
  await using it = await agent([call("file_read", { path: "a.png" }), refusal, say("ok")]);
  await withImages(it.project.path);
  await it.turn("look");
  const { messages } = it.backend.chats.at(-1);
  assert.deepEqual(messages.slice(-3).map(({ role }: ChatMessage) => role), [
    "tool",
    "assistant",
    "user",
  ]);
});

Deno.test("an image that is too large is named, and images count in the estimate of a request", async () => {
  await using it = await agent([
    call("file_read", { path: "large.png" }),
    say("ok"),
    READ,
    say("two"),
  ]);
  await withImages(it.project.path);
  const large = new Uint8Array(5_000_001);
  large.set(PNG);
  await Deno.writeFile(`${it.project.path}/large.png`, large);
  const [output] = results((await it.turn("look")).events);
  assert.equal(
    output,
    "# large.png - PNG image, 5000001 bytes\n(not shown: images have at most 5000000 bytes)",
  );
  await it.turn("look again");
  await it.workspace.spending.close();
  const usage = `${it.project.path}/.svc/usage`;
  const [file] = [...Deno.readDirSync(usage)].filter(({ name }) => name.endsWith("l"));
  const lines = Deno.readTextFileSync(`${usage}/${file!.name}`).trim().split("\n")
    .map((line) => JSON.parse(line));
  assert.ok(lines.at(-1).chars - lines.at(-2).chars > 10_000, "two images");
});

Deno.test("images are left out with the older results to make room", () => {
  const stamp = { timestamp: "" };
  const attachments = [{ name: "a.png", digest: "0", bytes: 3, media_type: "image/png" }];
  const head = {
    started_at: "",
    ended_at: "",
    mode: "",
    reasoning: false,
    model: "m",
    provider: "p",
  };
  const conversation = new Conversation([], { model: "m", provider: "p" }, () => PNG);
  conversation.begin({ ...head, index: 1 });
  conversation.append({ type: "user", text: "go" });
  conversation.append({
    ...{ type: "tool", name: "t", input: {}, output: "shown", is_error: false },
    call: { id: "c" },
    attachments,
    ...stamp,
  } as Part);
  assert.equal(conversation.messages().at(-1)!.images!.length, 1);
  conversation.append({ type: "command", text: "/compact", results_max: 0, results_from: 2 });
  const { content, images } = conversation.messages().at(-1)!;
  assert.deepEqual([content, images], [
    "shown\n[The images of this result were left out to make room.]",
    undefined,
  ]);
});

Deno.test("a model that takes no tools is given the images of results", () => {
  const image = (name: string) => ({ name, media_type: "image/png", data: "AA==" });
  const [, , told] = textMessages([
    { role: "user", content: "look" },
    { role: "tool", tool_call_id: "1", content: "one", images: [image("a.png")] },
    { role: "tool", tool_call_id: "2", content: "two", images: [image("b.png")] },
  ], []);
  assert.match(told!.content!, /one[^]*two/);
  assert.deepEqual(told!.images, [image("a.png"), image("b.png")]);
});
