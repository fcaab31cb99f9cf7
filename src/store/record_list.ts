import { fileStamp } from "../platform/files.ts";
import type { RegistryFile } from "../platform/registry_file.ts";
import type { RecordCopy, RecordRow, StoreLink } from "./port.ts";

/** A registry file that is a list. With a store, each entry is a record, and the file is their copy. */
export class RecordList implements RecordCopy {
  readonly name: string;
  readonly kinds: readonly string[];
  readonly path: string;
  readonly #file: RegistryFile;
  readonly #store: StoreLink | undefined;
  readonly #keyOf: (entry: unknown) => string;

  /** @param options.name the kind of the records */
  constructor(options: {
    name: string;
    path: string;
    file: RegistryFile;
    store: StoreLink | undefined;
    keyOf: (entry: unknown) => string;
  }) {
    this.name = options.name;
    this.kinds = [options.name];
    this.path = options.path;
    this.#file = options.file;
    this.#store = options.store;
    this.#keyOf = options.keyOf;
    this.#store?.register(this);
  }

  /**
   * Adds and replaces entries, as `RegistryFile.update` does. Entries that stay are the same objects.
   *
   * @throws SvcError `registry_write`, `store_unreachable`; what `change` throws
   */
  async update(
    change: (entries: unknown[] | undefined, text: string) => unknown[],
  ): Promise<void> {
    if (this.#store === undefined) {
      return await this.#file.update((value, text) => change(value as unknown[] | undefined, text));
    }
    const { records } = await this.#store.open();
    await records.change(this, () => {
      const entries = this.#entries();
      const known = new Set(entries);
      const rows = change(entries, "").filter((entry) => !known.has(entry)).map(this.#row);
      return { rows, result: undefined };
    });
  }

  /** Brings the file up to date. */
  async refresh(): Promise<void> {
    if (this.#store !== undefined) await (await this.#store.open()).records.pull(this);
  }

  stamp(): string {
    return fileStamp(this.path);
  }

  apply(rows: RecordRow[], whole: boolean): void {
    const entries = new Map(
      whole ? [] : this.#entries().map((entry) => [this.#keyOf(entry), entry]),
    );
    for (const { key, value } of rows) entries.set(key, value);
    this.#file.replace([...entries.values()]);
  }

  entries(): RecordRow[] {
    return this.#entries().map(this.#row);
  }

  keep(): void {
    this.#file.setAside();
  }

  #entries(): unknown[] {
    return this.#file.read() as unknown[] | undefined ?? [];
  }

  readonly #row = (entry: unknown): RecordRow => ({
    kind: this.name,
    key: this.#keyOf(entry),
    value: entry,
  });
}
