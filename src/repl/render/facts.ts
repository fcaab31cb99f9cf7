import { oneLine } from "../../platform/terminal.ts";
import type { Usage } from "../../plugins/api.ts";

/** Seconds, as a person reads them. */
export function duration(seconds: number): string {
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** A number of tokens: `950`, `1.2k`, `3.4M`. */
export function count(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  return tokens < 999_950 ? `${(tokens / 1000).toFixed(1)}k` : `${(tokens / 1e6).toFixed(1)}M`;
}

/** `1 tool call`, `2 tool calls`. */
export function plural(many: number, noun: string): string {
  return `${many} ${noun}${many === 1 ? "" : "s"}`;
}

/** All tokens that a usage counts. */
export function tokensOf(usage: Usage): number {
  return usage.total_tokens ?? (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
}

/** At most `limit` lines of a text; how many more there are is said behind them. */
export function someLines(text: string, limit: number): string[] {
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length <= limit + 1) return lines;
  return [...lines.slice(0, limit), `... ${plural(lines.length - limit, "more line")}`];
}

/** What a task says first: the briefs that agents are given behind it fill a screen. */
export function firstParagraph(text: string): string {
  return oneLine(text.trim().split(/\n\s*\n/, 1)[0]!);
}
