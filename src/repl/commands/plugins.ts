import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "list, install, update and remove plugins",
  usage: [
    "plugins [list]",
    "plugins show <name>",
    "plugins install <url or path> [--global] [--deps]",
    "plugins update [name ...] [--deps]",
    "plugins uninstall <name> [--global]",
    "plugins enable|disable <name> [--global|--local]",
    "plugins new <name>",
    "plugins test [name]",
  ],
  complete: {
    "": ["list", "show", "install", "update", "uninstall", "enable", "disable", "new", "test"],
    show: "plugins",
    install: "files",
    update: "plugins",
    uninstall: "plugins",
    enable: "plugins",
    disable: "plugins",
    test: "plugins",
  },
  flags: { "--global": true, "--local": true, "--deps": true },
  async run({ words }, shell) {
    const [{ runTwin }, { plugins }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/plugins/plugins.ts"),
    ]);
    await runTwin(plugins, ["plugins", ...(words.length === 0 ? ["list"] : words)], shell);
  },
});
