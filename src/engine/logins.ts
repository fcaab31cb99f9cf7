import { join } from "node:path";
import type { Clock } from "../platform/clock.ts";
import { fileStamp } from "../platform/files.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import type { LoginStore } from "../plugins/api.ts";
import { LOGINS } from "../policy/paths.ts";

type Entry = Record<string, unknown>;

/** Fields whose values are secrets, at any depth of a login. */
const SECRETS = [
  ...["access_token", "refresh_token", "id_token", "client_secret", "registration_access_token"],
];

/** `~/.config/svc/mcp-logins.json`: logins to MCP servers, by address, kept like the keys of providers. */
export class Logins implements LoginStore {
  readonly #path: string;
  readonly #file: RegistryFile;
  #known: { stamp: string; entries: Entry; secrets: string[] } | undefined;

  constructor(userDirectory: string, clock: Clock, warn: (message: string) => void) {
    this.#path = join(userDirectory, LOGINS);
    this.#file = new RegistryFile(this.#path, clock, warn);
  }

  read(address: string): Entry | undefined {
    const { entries } = this.#current();
    return Object.hasOwn(entries, address) ? objectOf(entries[address]) : undefined;
  }

  async write(address: string, login: object | undefined): Promise<void> {
    await this.#file.update((value) => {
      const { [address]: _, ...others } = objectOf(value);
      return login === undefined ? others : { ...others, [address]: login };
    });
  }

  /** The values to mask. */
  get secrets(): string[] {
    return this.#current().secrets;
  }

  #current() {
    const stamp = fileStamp(this.#path);
    if (this.#known?.stamp !== stamp) {
      const entries = stamp === "" ? {} : objectOf(this.#file.read());
      this.#known = { stamp, entries, secrets: secretsIn(entries) };
    }
    return this.#known;
  }
}

function secretsIn(value: unknown): string[] {
  return Object.entries(objectOf(value)).flatMap(([name, each]) =>
    typeof each === "string" ? (SECRETS.includes(name) ? [each] : []) : secretsIn(each)
  );
}

/** The fields of a JSON object, none for any other value. */
function objectOf(value: unknown): Entry {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Entry : {};
}
