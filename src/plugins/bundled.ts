import { BUNDLED_PLUGINS, OPTIONAL_PLUGINS } from "../config/keys.ts";
import type { PluginModule } from "./api.ts";
import anthropic from "../../plugins/svc-core-anthropic/manifest.json" with { type: "json" };
import demo from "../../plugins/svc-core-demo/manifest.json" with { type: "json" };
import dev from "../../plugins/svc-core-dev/manifest.json" with { type: "json" };
import edit from "../../plugins/svc-core-edit/manifest.json" with { type: "json" };
import evaluation from "../../plugins/svc-core-eval/manifest.json" with { type: "json" };
import exec from "../../plugins/svc-core-exec/manifest.json" with { type: "json" };
import fs from "../../plugins/svc-core-fs/manifest.json" with { type: "json" };
import git from "../../plugins/svc-core-git/manifest.json" with { type: "json" };
import groq from "../../plugins/svc-core-groq/manifest.json" with { type: "json" };
import lsp from "../../plugins/svc-core-lsp/manifest.json" with { type: "json" };
import mcp from "../../plugins/svc-core-mcp/manifest.json" with { type: "json" };
import ollama from "../../plugins/svc-core-ollama/manifest.json" with { type: "json" };
import openai from "../../plugins/svc-core-openai/manifest.json" with { type: "json" };
import opencode from "../../plugins/svc-core-opencode/manifest.json" with { type: "json" };
import webhook from "../../plugins/svc-core-webhook/manifest.json" with { type: "json" };
import web from "../../plugins/svc-core-web/manifest.json" with { type: "json" };

/** A plugin that is part of the program. */
export interface BundledPlugin {
  /** The content of its manifest.json. */
  manifest: { name: string; provides: { [kind: string]: string[] | undefined } };
  load: () => Promise<PluginModule>;
}

const NAMES = [...BUNDLED_PLUGINS, ...OPTIONAL_PLUGINS];

/** The paths are literals, so that the bundler and the compiler include the modules. */
const MODULES: Record<
  typeof NAMES[number],
  [BundledPlugin["manifest"], BundledPlugin["load"]]
> = {
  "svc-core-fs": [fs, () => import("../../plugins/svc-core-fs/src/plugin.ts")],
  "svc-core-edit": [edit, () => import("../../plugins/svc-core-edit/src/plugin.ts")],
  "svc-core-exec": [exec, () => import("../../plugins/svc-core-exec/src/plugin.ts")],
  "svc-core-git": [git, () => import("../../plugins/svc-core-git/src/plugin.ts")],
  "svc-core-dev": [dev, () => import("../../plugins/svc-core-dev/src/plugin.ts")],
  "svc-core-mcp": [mcp, () => import("../../plugins/svc-core-mcp/src/plugin.ts")],
  "svc-core-webhook": [webhook, () => import("../../plugins/svc-core-webhook/src/plugin.ts")],
  "svc-core-web": [web, () => import("../../plugins/svc-core-web/src/plugin.ts")],
  "svc-core-eval": [evaluation, () => import("../../plugins/svc-core-eval/src/plugin.ts")],
  "svc-core-anthropic": [anthropic, () => import("../../plugins/svc-core-anthropic/src/plugin.ts")],
  "svc-core-groq": [groq, () => import("../../plugins/svc-core-groq/src/plugin.ts")],
  "svc-core-ollama": [ollama, () => import("../../plugins/svc-core-ollama/src/plugin.ts")],
  "svc-core-openai": [openai, () => import("../../plugins/svc-core-openai/src/plugin.ts")],
  "svc-core-opencode": [opencode, () => import("../../plugins/svc-core-opencode/src/plugin.ts")],
  "svc-core-demo": [demo, () => import("../../plugins/svc-core-demo/src/plugin.ts")],
  "svc-core-lsp": [lsp, () => import("../../plugins/svc-core-lsp/src/plugin.ts")],
};

/** The bundled plugins, in the order in which they load. */
export const BUNDLED: readonly BundledPlugin[] = NAMES.map((name) => {
  const [manifest, load] = MODULES[name];
  return { manifest, load };
});
