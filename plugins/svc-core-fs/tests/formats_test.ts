import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { readPdf } from "../src/pdf.ts";
import * as plugin from "../src/plugin.ts";
import { gzip, pdf, tar, zip } from "./format_files.ts";

const tools = pluginTools(plugin);

/** Reads a file of these bytes. */
async function read(
  name: string,
  bytes: Uint8Array<ArrayBuffer> | string,
  { args = {}, config = {} }: { args?: object; config?: Record<string, unknown> } = {},
): Promise<{ output: string; images: { name: string; image: Uint8Array }[] }> {
  await using place = await project();
  const content = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
  await Deno.writeFile(`${place.path}/${name}`, content);
  const images: { name: string; image: Uint8Array }[] = [];
  const context = {
    ...toolContext({ worktree: place.path, config }),
    attach: (name: string, image: Uint8Array) => Promise.resolve(void images.push({ name, image })),
  };
  const { output } = await tools.call("file_read", { path: name, ...args }, context);
  return { output, images };
}

Deno.test("file_read gives a notebook as cells with their outputs, and the images of those that are shown", async () => {
  const notebook = {
    nbformat: 4,
    cells: [
      { cell_type: "markdown", source: ["# Title\n", "Some text."] },
      {
        cell_type: "code",
        execution_count: 3,
        source: "plot(x)\nprint(1)",
        outputs: [
          { output_type: "stream", name: "stdout", text: ["1\n"] },
          {
            output_type: "display_data",
            data: { "image/png": "AQID\n", "text/plain": "<Figure>" },
          },
          {
            output_type: "error",
            ename: "E",
            evalue: "bad",
            traceback: ["\u001b[31mline 1\u001b[0m"],
          },
        ],
      },
    ],
  };
  const { output, images } = await read("a.ipynb", JSON.stringify(notebook));
  assert.equal(
    output,
    `# a.ipynb - notebook, 2 cells; what follows is their text
1|## cell 1: markdown
2|# Title
3|Some text.
4|
5|## cell 2: code [3]
6|plot(x)
7|print(1)
8|## output of cell 2: stream
9|1
10|## output of cell 2: display_data
11|[image 2 of cell 2, shown with this result]
12|<Figure>
13|## output of cell 2: error
14|E: bad
15|line 1`,
  );
  assert.deepEqual(images, [{ name: "image 2 of cell 2", image: new Uint8Array([1, 2, 3]) }]);
  const part = await read("a.ipynb", JSON.stringify(notebook), { args: { offset: 5, limit: 2 } });
  assert.match(part.output, / \(showing 5-6\)\n5\|## cell 2: code \[3\]\n6\|plot\(x\)$/);
  assert.deepEqual(part.images, []);
});

Deno.test("a notebook that is none is read as the text that it is", async () => {
  const { output } = await read("a.ipynb", "{ broken\nline\n");
  assert.equal(output, "# a.ipynb - 2 lines, 14 chars\n1|{ broken\n2|line");
});

Deno.test("of a notebook with very many cells or outputs the first are read", async () => {
  const many = (count: number, each: unknown) => Array(count).fill(each);
  const cells = await read("a.ipynb", JSON.stringify({ cells: many(20_000, 0) }));
  assert.match(cells.output, /^# a\.ipynb - notebook, 20000 cells; .* text of the first 10000 /);
  const outputs = many(20_000, { data: { "image/png": "" } });
  const args = { args: { offset: 19_990, limit: 100 } };
  const one = await read("a.ipynb", JSON.stringify({ cells: [{ outputs }, {}] }), args);
  assert.match(one.output, /\[image 10000 of cell 1, shown/);
  assert.doesNotMatch(one.output, /image 10001|cell 2/);
});

Deno.test("file_read lists a zip archive: sizes, folders and names that lead out, and extracts nothing", async () => {
  const bytes = zip([["src/", 0], ["src/a.ts", 1234], ["../../etc/passwd", 5], [
    "/abs\n1|x",
    4_000_000_000,
  ]]);
  const { output } = await read("a.zip", bytes);
  assert.equal(
    output,
    `# a.zip - zip archive, 4 entries, 4000001239 bytes unpacked; sizes and names
1|folder src/
2|1234 src/a.ts
3|5 ../../etc/passwd (leads out of the folder that it is unpacked in)
4|4000000000 /abs\\n1|x (leads out of the folder that it is unpacked in)`,
  );
  const part = await read("a.zip", bytes, { args: { offset: 2, limit: 1 } });
  assert.match(part.output, /\(showing 2-2\)\n2\|1234 src\/a\.ts$/);
});

Deno.test("damaged zip archives are named as such", async () => {
  const whole = zip([["a", 1], ["b", 2]]);
  const cut = await read("a.zip", whole.slice(0, 40));
  assert.match(cut.output, /zip archive\n\(damaged: the list at its end is missing\)$/);
  const lying = whole.slice();
  lying[lying.length - 12] = 200; // the number of entries
  assert.match(
    (await read("a.zip", lying)).output,
    /2 entries, .*; the list is cut off after them;/,
  );
  for (let at = 0; at < whole.length; at++) {
    const changed = whole.slice();
    changed[at] = changed[at]! ^ 0xff;
    assert.match((await read("a.zip", changed)).output, /^# a\.zip - /);
  }
});

Deno.test("file_read lists tar and tar.gz archives, with long names", async () => {
  const long = `${"d".repeat(90)}/${"f".repeat(90)}.txt`;
  const bytes = tar([["dir/", "5", 0], ["dir/a.txt", "0", 700], [long, "0", 3]]);
  const lines = `1|folder dir/\n2|700 dir/a.txt\n3|3 ${long}`;
  const plain = await read("a.tar", bytes);
  assert.equal(
    plain.output,
    `# a.tar - tar archive, 3 entries, 703 bytes unpacked; sizes and names\n${lines}`,
  );
  const packed = await read("a.tar.gz", await gzip(bytes));
  assert.ok(packed.output.endsWith(lines));
  assert.match(packed.output, /tar\.gz archive, 3 entries/);
  const cut = (await gzip(bytes)).slice(0, -20);
  assert.match((await read("a.tgz", cut)).output, /entries, .*; it is damaged after them; sizes/);
});

Deno.test("of a tar archive with very many headers of no file the list stops", async () => {
  const headers = tar(Array(40_001).fill(["", "g", 0]));
  const { output } = await read("a.tgz", await gzip(headers));
  assert.match(output, /^# a\.tgz - tar\.gz archive, 0 entries, 0 bytes .*; only the first 0/);
});

Deno.test("a gzip file that is no tar archive, and any other binary file, is not shown", async () => {
  const { output } = await read("a.gz", await gzip(new TextEncoder().encode("text")));
  assert.match(output, /bytes\n\(binary file, not shown\)$/);
});

Deno.test("of a tar.gz archive that unpacks to too much the list stops", async () => {
  const bomb = await gzip(tar([["a", "0", 1], ["huge", "0", 1024 ** 4], ["b", "0", 1]]));
  const { output } = await read("a.tgz", bomb);
  assert.match(output, /2 entries, /);
});

Deno.test("file_read gives the text of a PDF by page; offset and limit count pages", async () => {
  const bytes = pdf(["First page", "Second page", "", "Fourth page"]);
  const { output } = await read("a.pdf", bytes);
  assert.equal(
    output,
    `# a.pdf - PDF, 4 pages
--- page 1 ---
First page
--- page 2 ---
Second page
--- page 3 ---
(no text; it may be an image)
--- page 4 ---
Fourth page`,
  );
  const part = await read("a.pdf", bytes, { args: { offset: 2, limit: 1 } });
  assert.equal(part.output, "# a.pdf - PDF, 4 pages (showing 2-2)\n--- page 2 ---\nSecond page");
  const past = await read("a.pdf", bytes, { args: { offset: 9 } });
  assert.equal(past.output, "# a.pdf - PDF, 4 pages\n(offset 9 is past the last page)");
  const header = await read("a.pdf", bytes, { args: { limit: 0 } });
  assert.equal(header.output, "# a.pdf - PDF, 4 pages");
  const long = pdf(["x".repeat(80), "y".repeat(80), "z".repeat(80)]);
  const small = await read("a.pdf", long, { config: { tool_max_result_chars: 450 } });
  assert.match(small.output, /\(showing 1-2\)[^]*continue with offset 3\)$/);
});

Deno.test("damaged PDFs say so", async () => {
  const { output } = await read("a.pdf", "%PDF-1.7\nnothing\0");
  assert.equal(output, "# a.pdf - PDF, 17 bytes\n(not read: it is damaged)");
});

for (
  const [kind, code, limits, fault] of [
    ["time", "", { ms: 50, memory: Infinity }, "it takes more than 0.05 s"],
    [
      "memory",
      "const all = Array.from({ length: 10 }, () => new Uint8Array(1e7).fill(1));",
      { ms: 1e6, memory: 50e6 },
      "it takes too much memory",
    ],
  ] as const
) {
  Deno.test(`a PDF that takes too much ${kind} is given up, and no other is read until its thread is done`, async () => {
    await using place = await project();
    const file = await Deno.open(`${place.path}/a.pdf`, { read: true, write: true, create: true });
    // It computes until a file is there.
    const source = `onmessage = () => {
      postMessage({ pages: 9 });
      postMessage({ text: "one" });
      ${code}
      const done = () => {
        try { return Deno.statSync("${place.path}/done").isFile; } catch { return false; }
      };
      while (!done());
      postMessage({ end: "" });
    }`;
    let over = Promise.resolve();
    const start = () => {
      const url = `data:text/javascript,${encodeURIComponent(source)}`;
      const worker = new Worker(url, { type: "module" });
      over = new Promise((resolve) =>
        worker.addEventListener("message", ({ data }) => "end" in data && resolve())
      );
      return worker;
    };
    const request = { path: "a.pdf", offset: 1, limit: 5, start: new Uint8Array() };
    const context = toolContext({ worktree: place.path });
    const output = await readPdf(file, request, context, { start, ...limits });
    assert.equal(
      output,
      `# a.pdf - PDF, 9 pages (showing 1-1)\n--- page 1 ---\none\n(the rest is not read: ${fault})`,
    );
    const other = await readPdf(file, request, context, { start, ...limits });
    assert.match(other, /another PDF was given up and still takes a thread/);
    await place.write("done", "");
    await over;
    file.close();
    assert.match((await read("a.pdf", pdf(["First page"]))).output, /First page/);
  });
}
