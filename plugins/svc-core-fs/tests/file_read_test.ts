import fc from "fast-check";
import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { LineWindow } from "../src/file_read.ts";
import * as plugin from "../src/plugin.ts";

const tools = pluginTools(plugin);

function reader(worktree: string, config: Record<string, unknown> = {}) {
  const context = toolContext({ worktree, config });
  return (args: Record<string, unknown>) => tools.call("file_read", args, context);
}

Deno.test("file_read returns a header and numbered lines [4.8]", async () => {
  await using work = await project({ "a.txt": "one\ntwo\n\nfour €" });
  const read = reader(work.path);
  const expected = "# a.txt - 4 lines, 15 chars\n1|one\n2|two\n3|\n4|four €";
  assert.equal((await read({ path: "a.txt" })).output, expected);
  const { output } = await read({ file: `${work.path}/a.txt` });
  assert.equal(output, expected.replace("a.txt", `${work.path}/a.txt`));
  for (const alias of ["read_file", "read", "view"]) {
    assert.equal(tools.registry.find(alias)?.name, "file_read");
  }
  assert.equal(tools.registry.find("file_read")?.permission, "read");
});

Deno.test("a window of file_read shows its lines and says which; 500 lines are shown by default [4.8]", async () => {
  await using work = await project({ "a.txt": "x\n".repeat(600) });
  const read = reader(work.path);
  const window = await read({ path: "a.txt", offset: 3, limit: 2 });
  assert.equal(window.output, "# a.txt - 600 lines, 1200 chars (showing 3-4)\n3|x\n4|x");
  const long = (await read({ path: "a.txt" })).output.split("\n");
  assert.equal(long[0], "# a.txt - 600 lines, 1200 chars (showing 1-500)");
  assert.equal(long.length, 501);
  assert.match((await read({ path: "a.txt", offset: 599 })).output, /showing 599-600\)\n599\|x\n/);
  assert.match(
    (await read({ path: "a.txt", offset: -3, limit: 1 })).output,
    /showing 1-1\)\n1\|x$/,
  );
});

Deno.test("file_read with a limit of 0 returns the header only, and an offset past the end is reported [4.8]", async () => {
  await using work = await project({ "a.txt": "x\ny", "empty.txt": "" });
  const read = reader(work.path);
  const empty = await read({ path: "empty.txt", limit: 0 });
  assert.equal(empty.output, "# empty.txt - 0 lines, 0 chars");
  assert.equal((await read({ path: "a.txt", limit: 0 })).output, "# a.txt - 2 lines, 3 chars");
  const past = await read({ path: "a.txt", offset: 9 });
  assert.equal(past.output, "# a.txt - 2 lines, 3 chars\n(offset 9 is past the last line)");
});

Deno.test("file_read of an empty file is a soft note [7.3]", async () => {
  await using work = await project({ "a.txt": "" });
  const outcome = await reader(work.path)({ path: "a.txt" });
  assert.equal(outcome.output, "# a.txt - 0 lines, 0 chars\n(empty file)");
  assert.equal(outcome.note, "empty file");
  assert.equal(outcome.is_error, false);
});

Deno.test("a binary file is reported, not shown", async () => {
  await using work = await project();
  await Deno.writeFile(`${work.path}/a.png`, new Uint8Array([0x89, 0x50, 0, 0x47]));
  const { output } = await reader(work.path)({ path: "a.png" });
  assert.equal(output, "# a.png - 4 bytes\n(binary file, not shown)");
});

Deno.test("the error for a missing file names the most similar entry", async () => {
  await using work = await project({ "src/main.ts": "", "README.md": "" });
  const read = async (path: string) => (await reader(work.path)({ path })).output;
  assert.equal(
    await read("src/mian.ts"),
    "Error: there is no src/mian.ts. Did you mean src/main.ts?",
  );
  assert.equal(await read("readme.md"), "Error: there is no readme.md. Did you mean README.md?");
  assert.equal(
    await read("scr/main.ts"),
    "Error: there is no scr/main.ts: scr does not exist. Did you mean src?",
  );
  assert.equal(
    await read("something/else"),
    "Error: there is no something/else: something does not exist",
  );
  assert.equal(
    await read("README.md/a/x"),
    "Error: there is no README.md/a/x: README.md is a file, not a folder",
  );
});

Deno.test("directories and special files are refused", async () => {
  await using work = await project({ "src/main.ts": "" });
  await new Deno.Command("mkfifo", { args: ["pipe"], cwd: work.path }).output();
  const read = async (path: string) => (await reader(work.path)({ path })).output;
  assert.equal(await read("src"), "Error: src is a directory; list it with list_dir");
  assert.equal(await read("pipe"), "Error: pipe is not a regular file");
  assert.match(await read("/etc/passwd"), /^Error: .*outside the worktree/);
});

Deno.test("an overlong line is cut, with its length", async () => {
  await using work = await project({ "a.txt": `${"x".repeat(1_000_000)}\nshort\r\n` });
  const { output } = await reader(work.path)({ path: "a.txt" });
  const [header, long, short] = output.split("\n");
  assert.equal(header, "# a.txt - 2 lines, 1000008 chars");
  assert.equal(long, `1|${"x".repeat(2000)}… (line cut, it has 1000000 bytes)`);
  assert.equal(short, "2|short");
});

Deno.test("the limit of results shortens the window, and the header stays true", async () => {
  await using work = await project({ "a.txt": "0123456789\n".repeat(1000) });
  const read = reader(work.path, { tool_max_result_chars: 1000 });
  const { output } = await read({ path: "a.txt" });
  const last = Number(output.match(/showing 1-(\d+)\)/)![1]);
  assert.ok(last > 20 && output.length <= 1000, output);
  const hint = `${last}|0123456789\n... (the result limit is reached; continue with offset ${
    last + 1
  })`;
  assert.ok(output.endsWith(hint), output);
});

Deno.test("a huge file is read to the end of its window only", async () => {
  await using work = await project({ "huge.log": "first\nsecond\nthird\n" });
  const size = 3 * 1024 ** 3;
  await Deno.truncate(`${work.path}/huge.log`, size); // sparse: the rest is a hole
  // Zero bytes are no text, so the first chunk is text: it holds the window.
  using file = await Deno.open(`${work.path}/huge.log`, { write: true });
  const text = new TextEncoder().encode("line\n".repeat(200_000));
  for (let written = 0; written < text.length;) written += await file.write(text.subarray(written));
  const { output } = await reader(work.path)({ path: "huge.log", offset: 2, limit: 1 });
  assert.equal(output, `# huge.log - ${size} bytes (too large to count) (showing 2-2)\n2|line`);
  const header = await reader(work.path)({ path: "huge.log", limit: 0 });
  assert.equal(header.output, `# huge.log - ${size} bytes (too large to count)`);
});

/** The context of a worktree, and the number of bytes that were read through it. */
function countingBytes(worktree: string) {
  const context = toolContext({ worktree });
  const counting = {
    bytes: 0,
    ...context,
    paths: {
      ...context.paths,
      open: async (path: string, options: Deno.OpenOptions) => {
        const file = await context.paths.open(path, options);
        const read = file.read.bind(file);
        file.read = async (buffer) => {
          const length = await read(buffer);
          counting.bytes += length ?? 0;
          return length;
        };
        return file;
      },
    },
  };
  return counting;
}

Deno.test("only the window of a 2 GB file is read", async () => {
  await using work = await project({ "huge.log": "0123456789\n".repeat(100_000) });
  await Deno.truncate(`${work.path}/huge.log`, 2 * 1024 ** 3); // sparse: the rest is a hole
  const context = countingBytes(work.path);
  const args = { path: "huge.log", offset: 50_000, limit: 2 };
  const { output } = await tools.call("file_read", args, context);
  assert.equal(
    output,
    "# huge.log - 2147483648 bytes (too large to count) (showing 50000-50001)\n" +
      "50000|0123456789\n50001|0123456789",
  );
  const { bytes } = context;
  assert.ok(bytes >= 550_000 && bytes < 550_000 + 512 * 1024, String(bytes));
});

Deno.test("a long file is counted once, and again when it has changed", async () => {
  await using work = await project({ "long.txt": "0123456789\n".repeat(100_000) });
  const file = `${work.path}/long.txt`;
  const context = countingBytes(work.path);
  const read = async (args: Record<string, unknown>) => {
    context.bytes = 0;
    return (await tools.call("file_read", { path: "long.txt", ...args }, context)).output;
  };
  const header = "# long.txt - 100000 lines, 1100000 chars";
  await read({});
  await read({ limit: 0 });
  assert.equal(context.bytes, 1_100_000, "a file that has just changed is not trusted");

  const { mtime, ctime } = Deno.statSync(file);
  const now = Date.now;
  using _later = { [Symbol.dispose]: () => void (Date.now = now) };
  Date.now = () => now() + 10_000;
  assert.equal(await read({ offset: 2, limit: 1 }), `${header} (showing 2-2)\n2|0123456789`);
  assert.equal(context.bytes, 1_100_000);
  assert.equal(await read({ offset: 3, limit: 1 }), `${header} (showing 3-3)\n3|0123456789`);
  assert.ok(context.bytes < 512 * 1024);
  assert.equal(await read({ limit: 0 }), header);
  assert.equal(context.bytes, 0);
  const end = await read({ offset: 100_000 });
  assert.equal(end, `${header} (showing 100000-100000)\n100000|0123456789`);
  assert.match(await read({ offset: 100_001 }), /past the last line/);

  do { // the time of a file has a resolution
    Deno.writeTextFileSync(file, "012345678\n\n".repeat(100_000)); // of the same size
    Deno.utimeSync(file, mtime!, mtime!);
  } while (Deno.statSync(file).ctime!.getTime() === ctime!.getTime());
  assert.equal(await read({ limit: 0 }), "# long.txt - 200000 lines, 1100000 chars");
});

Deno.test("only the shown part of an endless line is kept in memory", () => {
  const window = new LineWindow(1, 500, 10_000);
  const chunk = new Uint8Array(256 * 1024).fill(0x78);
  for (let i = 0; i < 200; i++) {
    window.add(chunk);
    assert.equal(window.bytes_held, 8000);
  }
  window.end();
  const length = 200 * chunk.length;
  assert.deepEqual(window.lines, [`${"x".repeat(2000)}… (line cut, it has ${length} bytes)`]);
});

Deno.test("a cancelled read ends", async () => {
  await using work = await project({ "a.txt": "x" });
  const controller = new AbortController();
  const context = toolContext({ worktree: work.path, signal: controller.signal });
  const open = (path: string, options: Deno.OpenOptions) => {
    controller.abort();
    return context.paths.open(path, options);
  };
  const outcome = await tools.call("file_read", { path: "a.txt" }, {
    ...context,
    paths: { ...context.paths, open },
  });
  assert.equal(outcome.output, "Error: cancelled");
});

Deno.test("property: a window has the same lines for all chunk sizes", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "\n", "€", "😀", "\ufeff"), maxLength: 60 });
  const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(
      text,
      cuts,
      fc.integer({ min: 1, max: 9 }),
      fc.nat(9),
      (whole, sizes, offset, limit) => {
        const bytes = new TextEncoder().encode(whole);
        const window = new LineWindow(offset, limit, 10_000);
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % sizes.length]!;
          window.add(bytes.slice(at, at + size));
          at += size;
        }
        window.end();
        const lines = new TextDecoder().decode(bytes).split("\n");
        if (lines.at(-1) === "" && !/[^\n]$/.test(whole)) lines.pop();
        assert.deepEqual(window.lines, lines.slice(offset - 1, offset - 1 + limit));
        assert.equal(window.total_lines, lines.length);
        assert.equal(window.total_chars, Array.from(whole).length);
      },
    ),
    { numRuns: 1000 },
  );
});
