// Small archives and PDFs for the tests.

const encode = (text: string) => new TextEncoder().encode(text);

function joined(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** The list of a zip archive with these names and sizes, after no contents. */
export function zip(entries: [name: string, size: number][]): Uint8Array<ArrayBuffer> {
  const list = entries.map(([name, size]) => {
    const head = new Uint8Array(46);
    const view = new DataView(head.buffer);
    view.setUint32(0, 0x02014b50, true);
    view.setUint32(24, size, true);
    view.setUint16(28, encode(name).length, true);
    return joined([head, encode(name)]);
  });
  const start = encode("PK\x03\x04\0\0\0\0");
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, entries.length, true);
  end.setUint16(10, entries.length, true);
  end.setUint32(12, joined(list).length, true);
  end.setUint32(16, start.length, true);
  return joined([start, ...list, new Uint8Array(end.buffer)]);
}

/** A tar archive; a long name has an entry of its own. Contents of more than a megabyte are left out. */
export function tar(
  entries: [name: string, type: string, size: number][],
): Uint8Array<ArrayBuffer> {
  const entry = (name: string, type: string, size: number, content = new Uint8Array(size)) => {
    const head = new Uint8Array(512);
    head.set(encode(name.slice(0, 100)));
    const octal = size.toString(8);
    if (octal.length <= 11) head.set(encode(octal.padStart(11, "0")), 124);
    else {
      head[124] = 0x80;
      new DataView(head.buffer).setBigUint64(128, BigInt(size));
    }
    head.set(encode(type), 156);
    head.set(encode("ustar\0" + "00"), 257);
    return [head, content, new Uint8Array((512 - content.length % 512) % 512)];
  };
  const pieces = entries.flatMap(([name, type, size]) => [
    ...name.length > 100 ? entry("long", "L", name.length + 1, encode(`${name}\0`)) : [],
    ...entry(name, type, size, new Uint8Array(Math.min(size, 1e6))),
  ]);
  return joined([...pieces, new Uint8Array(1024)]);
}

export async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

/** A PDF with a line of text on each page. */
export function pdf(pages: string[]): Uint8Array<ArrayBuffer> {
  const kids = pages.map((_, i) => `${10 + 2 * i} 0 R`).join(" ");
  const objects: [number, string][] = [
    [1, "<</Type/Catalog/Pages 2 0 R>>"],
    [2, `<</Type/Pages/Kids[${kids}]/Count ${pages.length}>>`],
    [3, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"],
    ...pages.flatMap((text, i): [number, string][] => {
      const stream = text === "" ? "" : `BT /F1 12 Tf 50 700 Td (${text}) Tj ET`;
      const page = 10 + 2 * i;
      return [
        [
          page,
          `<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents ${page + 1} 0 R` +
          "/Resources<</Font<</F1 3 0 R>>>>>>",
        ],
        [page + 1, `<</Length ${stream.length}>>stream\n${stream}\nendstream`],
      ];
    }),
  ];
  let body = "%PDF-1.7\n";
  for (const [number, text] of objects) body += `${number} 0 obj\n${text}\nendobj\n`;
  return encode(`${body}trailer<</Root 1 0 R>>\n%%EOF\n`);
}
