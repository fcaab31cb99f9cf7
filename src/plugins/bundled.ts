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

/**
 * The plugins that come with the program, in the order in which they load. The paths are literals, so
 * that the bundler and the compiler carry the modules along.
 */
export const BUNDLED: readonly BundledPlugin[] = [
  { manifest: fs, load: () => import("../../plugins/svc-core-fs/src/plugin.ts") },
  { manifest: edit, load: () => import("../../plugins/svc-core-edit/src/plugin.ts") },
  { manifest: exec, load: () => import("../../plugins/svc-core-exec/src/plugin.ts") },
  { manifest: git, load: () => import("../../plugins/svc-core-git/src/plugin.ts") },
  { manifest: dev, load: () => import("../../plugins/svc-core-dev/src/plugin.ts") },
  { manifest: mcp, load: () => import("../../plugins/svc-core-mcp/src/plugin.ts") },
  { manifest: webhook, load: () => import("../../plugins/svc-core-webhook/src/plugin.ts") },
  { manifest: web, load: () => import("../../plugins/svc-core-web/src/plugin.ts") },
  { manifest: evaluation, load: () => import("../../plugins/svc-core-eval/src/plugin.ts") },
  { manifest: anthropic, load: () => import("../../plugins/svc-core-anthropic/src/plugin.ts") },
  { manifest: groq, load: () => import("../../plugins/svc-core-groq/src/plugin.ts") },
  { manifest: ollama, load: () => import("../../plugins/svc-core-ollama/src/plugin.ts") },
  { manifest: openai, load: () => import("../../plugins/svc-core-openai/src/plugin.ts") },
  { manifest: opencode, load: () => import("../../plugins/svc-core-opencode/src/plugin.ts") },
  { manifest: demo, load: () => import("../../plugins/svc-core-demo/src/plugin.ts") },
];
