/** An entry of the register as text: its fields, and last its history, which is text already. */
export function renderEntry(fields: Record<string, unknown>, history: string): string {
  const body = JSON.stringify(fields, null, 2).slice(0, -"\n}".length);
  return `${body.replaceAll("\n", "\n    ")},\n      "history": ${history}\n    }`;
}
