/** A bar of a plot: its length is `value`, its end says `text`. */
export interface Bar {
  label: string;
  value: number;
  text: string;
}

const LABELS = 170;
const BARS = 420;
const TEXTS = 110;
const ROW = 26;

/**
 * Draws bars of one unit as SVG, on a logarithmic scale that begins at half of the least. The first word of a label
 * `svc` is set off.
 */
export function plot(title: string, bars: readonly Bar[]): string {
  const values = bars.map(({ value }) => value);
  const least = Math.log(Math.min(...values) / 2);
  const most = Math.log(Math.max(...values));
  const width = LABELS + BARS + TEXTS;
  const height = ROW * bars.length + 12;
  const rows = bars.map(({ label, value, text }, index) => {
    const y = index * ROW + 6;
    const length = Math.round(BARS * (Math.log(value) - least) / (most - least));
    const kind = /^svc\b/.test(label) ? "svc" : /^(floor|bare)\b/.test(label) ? "floor" : "peer";
    return [
      `<text class="label" x="${LABELS - 8}" y="${y + 17}">${escaped(label)}</text>`,
      `<rect class="${kind}" x="${LABELS}" y="${y + 4}" width="${length}" height="${ROW - 8}"/>`,
      `<text x="${LABELS + length + 6}" y="${y + 17}">${escaped(text)}</text>`,
    ].join("");
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">
<title>${escaped(title)} (logarithmic scale)</title>
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.label { text-anchor: end }
.svc { fill: #1a7f37 } .floor { fill: #8c959f } .peer { fill: #54aeff }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .svc { fill: #3fb950 } .floor { fill: #6e7681 } .peer { fill: #1f6feb } }
</style>
${rows.join("\n")}
</svg>
`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
