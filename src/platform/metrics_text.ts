/** The media type of the Prometheus text format. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * One metric in the Prometheus text format 0.0.4: its `HELP` and `TYPE` lines, and its samples.
 *
 * @param samples each value by what follows the metric's name, such as `{status="ok"}` or `_sum`
 */
export function metricText(
  { name, type, help }: { name: string; type: "counter" | "gauge" | "histogram"; help: string },
  samples: Iterable<readonly [suffix: string, value: number]>,
): string {
  const lines = Array.from(samples, ([suffix, value]) => `${name}${suffix} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}
