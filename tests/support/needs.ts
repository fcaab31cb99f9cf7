// deno-lint-ignore-file no-console

/** For `Deno.test`: ignores a test where something that it needs is missing, and says what. */
export function needs(what: string, available: boolean): { ignore: boolean } {
  if (!available) console.warn(`Tests are skipped: ${what} here.`);
  return { ignore: !available };
}
