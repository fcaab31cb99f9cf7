import { argument, command, constant, option } from "@optique/core/primitives";
import { object, or } from "@optique/core/constructs";
import { multiple, optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import { stripControl } from "../../platform/terminal.ts";
import { defineCommand, says } from "../command.ts";
import { toJson } from "../io.ts";
import { outputOption, pathOption } from "../options.ts";
import { installOne, uninstall, updateAll } from "./change.ts";
import { newPlugin, testPlugins } from "./develop.ts";
import { disable, enable } from "./enabled.ts";
import { listPlugins, showPlugin } from "./view.ts";
import { openWorkspace } from "../workspace.ts";

const name = argument(string({ metavar: "NAME" }), { description: says("The plugin.") });
const deps = option("--deps", {
  description: says("Also install the npm packages that it requires, into its own folder."),
});
const global = option("--global", {
  description: says("For all worktrees, in ~/.config/svc; default: for this one, in .svc."),
});
const local = option("--local", { description: says("In this worktree's settings.") });

const list = command(
  "list",
  object({ action: constant("list"), output: outputOption, path: pathOption }),
  {
    description: says("List the plugins, where each comes from, and how it fares."),
  },
);
const show = command(
  "show",
  object({ action: constant("show"), name, output: outputOption, path: pathOption }),
  {
    description: says("Show one plugin: its manifest, its status, and what it registers."),
  },
);
const install = command(
  "install",
  object({
    action: constant("install"),
    source: argument(string({ metavar: "SOURCE" }), {
      description: says("A Git URL, with a branch or tag behind #, or the path of a folder."),
    }),
    global,
    deps,
    path: pathOption,
  }),
  { description: says("Install a plugin, and enable it.") },
);
const update = command(
  "update",
  object({
    action: constant("update"),
    names: multiple(argument(string({ metavar: "NAME" }), {
      description: says("The plugins; default: all that were installed with svc."),
    })),
    deps,
    path: pathOption,
  }),
  { description: says("Fetch plugins anew from where they were installed from.") },
);
const remove = command(
  "uninstall",
  object({ action: constant("uninstall"), name, global, path: pathOption }),
  { description: says("Remove a plugin's files, and its name from the settings.") },
);
const on = command(
  "enable",
  object({ action: constant("enable"), name, global, local, path: pathOption }),
  { description: says("Put a plugin on the list of those that load.") },
);
const off = command(
  "disable",
  object({ action: constant("disable"), name, global, local, path: pathOption }),
  { description: says("Take a plugin off the list of those that load.") },
);
const create = command(
  "new",
  object({
    action: constant("new"),
    name,
    global,
    folder: optional(option("--dir", string({ metavar: "DIR" }), {
      description: says("Write it into this folder, and do not enable it."),
    })),
    path: pathOption,
  }),
  { description: says("Write the beginning of a plugin: a typed tool, a command and a test.") },
);
const test = command(
  "test",
  object({
    action: constant("test"),
    name: optional(argument(string({ metavar: "NAME" }), {
      description: says("The plugin; default: all that are not bundled."),
    })),
    path: pathOption,
  }),
  { description: says("Check that plugins load, and run their tests (*_test.ts).") },
);

/** `svc plugins` (specification 2.9, 3.5, 4.4, 4.9): what is installed, and changes to it. */
export const plugins = defineCommand({
  parser: command("plugins", or(list, show, install, update, remove, on, off, create, test), {
    description: says("List, install, update and remove plugins, and write your own."),
  }),
  bare: "list",
  examples: [
    "svc plugins",
    "svc plugins new word-tools",
    "svc plugins test word-tools",
    "svc plugins install https://github.com/you/word-tools#v1.2 --deps",
    "svc plugins install ./word-tools --global",
    "svc plugins update",
    "svc plugins disable svc-core-exec",
  ],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    const context = { workspace, io };
    const print = ({ value, text }: { value: unknown; text: string }) => {
      const json = "output" in values && values.output === "json";
      io.out(json ? toJson(value, 2) + "\n" : stripControl(text));
      return 0;
    };
    switch (values.action) {
      case "list":
        return print(await listPlugins(context));
      case "show":
        return print(await showPlugin(context, values.name));
      case "install":
        return await installOne(context, values);
      case "update":
        return await updateAll(context, values);
      case "uninstall":
        return await uninstall(context, values);
      case "enable":
        return await enable(context, values);
      case "disable":
        return await disable(context, values);
      case "new":
        return await newPlugin(context, values);
      case "test":
        return await testPlugins(context, values.name);
    }
  },
});
