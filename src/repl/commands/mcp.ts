import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "MCP servers whose tools are imported",
  usage: ["mcp [list]", "mcp connect [name]", "mcp disconnect <name>"],
  complete: { "": ["list", "connect", "disconnect"] },
  async run(line, shell) {
    const [{ runTwin }, { mcpServers }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/mcp.ts"),
    ]);
    await runTwin(mcpServers, ["mcp", ...line.words], shell);
  },
});
