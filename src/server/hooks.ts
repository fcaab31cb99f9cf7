import { createHmac, timingSafeEqual } from "node:crypto";
import { join } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import { HOOKS } from "../policy/paths.ts";

/** The secrets of the hooks of one worktree, `~/.config/svc/serve.hooks`: of each worktree, one for each job. */
export class HookSecrets {
  readonly path: string;
  readonly #worktree: string;
  readonly #file: RegistryFile;

  constructor({ paths, clock, warn }: Pick<Workspace, "paths" | "clock" | "warn">) {
    this.path = join(paths.user, HOOKS);
    this.#worktree = paths.worktree;
    this.#file = new RegistryFile(this.path, clock, warn);
  }

  /** Makes the secret of a job, in place of the one before. A server that runs knows it at once. */
  async make(job: string): Promise<string> {
    const secret = random();
    await this.#file.update((value) => {
      const all = (value ?? {}) as Secrets;
      return { ...all, [this.#worktree]: { ...all[this.#worktree], [job]: secret } };
    });
    return secret;
  }

  /**
   * Whether a body is signed with the secret of a job: `signature` is `sha256=` and its HMAC-SHA256 in hexadecimal. A
   * job without a secret takes as long as a wrong signature.
   */
  verify(job: string, body: Uint8Array, signature: string): boolean {
    const all = (this.#file.read() ?? {}) as Secrets;
    const own = all[this.#worktree];
    const known = own !== undefined && Object.hasOwn(own, job) ? own[job] : undefined;
    const secret = typeof known === "string" && known.length >= SHORTEST ? known : undefined;
    const expected = `sha256=${
      createHmac("sha256", secret ?? random()).update(body).digest("hex")
    }`;
    const [one, other] = [expected, signature].map((text) =>
      createHmac("sha256", "equal").update(text).digest()
    );
    return timingSafeEqual(one!, other!) && secret !== undefined;
  }
}

type Secrets = Record<string, Record<string, string>>;

/** Characters of the shortest secret: others could be guessed. */
const SHORTEST = 16;

function random(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}
