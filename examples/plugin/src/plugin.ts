import type { ToolRegistrar } from "../../../src/plugins/api.ts";

/** Tools that the model can call. */
export function register_tools(registry: ToolRegistrar): void {
  registry.register({
    name: "tide",
    description: "The tide at a harbour, from tides/<harbour>.txt.",
    parameters: {
      type: "object",
      properties: { harbour: { type: "string", description: "Its name." } },
      required: ["harbour"],
    },
    permission: "read",
    async handler({ harbour }, { paths }) {
      using file = await paths.open(`tides/${harbour}.txt`, { read: true });
      return firstLine(await new Response(file.readable).text());
    },
  });
}

/** The first line of a text, without blanks around it. */
export function firstLine(text: string): string {
  return text.trim().split("\n")[0]!;
}
