import { fileURLToPath } from "node:url";
import { claude, codex, type Contestant, opencode, PEERS, pi, qwen } from "./contestants.ts";
import { tail } from "./measure.ts";
import versions from "./peers.json" with { type: "json" };

const FOLDER = fileURLToPath(new URL("peers", import.meta.url));
/** Where npm installs them. */
export const MODULES = `${FOLDER}/node_modules`;

/** Installs the peers' exact versions with npm, unless they are there. @throws Error when it cannot. */
export async function installPeers(): Promise<void> {
  const missing = Object.entries(versions).some(([name, version]) => installed(name) !== version);
  if (!missing) return;
  await Deno.mkdir(FOLDER, { recursive: true });
  await Deno.writeTextFile(
    `${FOLDER}/package.json`,
    JSON.stringify({ private: true, dependencies: versions }),
  );
  // No package needs its install script, and none of them is to run one here.
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    cwd: FOLDER,
    stdout: "null",
  }).output();
  if (!success) throw new Error(`npm install: ${tail(new TextDecoder().decode(stderr))}`);
}

export function peers(): Contestant[] {
  return [
    pi(MODULES, versions[PEERS.pi]),
    qwen(MODULES, versions[PEERS.qwen]),
    opencode(MODULES, versions[PEERS.opencode]),
    codex(MODULES, versions[PEERS.codex]),
    claude(MODULES, versions[PEERS.claude]),
  ];
}

function installed(name: string): string | undefined {
  try {
    return JSON.parse(Deno.readTextFileSync(`${MODULES}/${name}/package.json`)).version;
  } catch {
    return undefined;
  }
}
