/** The permission flags that the program is built with, as the tasks and compile.sh share them. */
export function buildFlags(profile: "build" | "plan" = "build"): string[] {
  const file = new URL(`../../permissions/${profile}.flags`, import.meta.url);
  return Deno.readTextFileSync(file).trim().split("\n");
}
