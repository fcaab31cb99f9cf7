import { dirname, join } from "node:path";
import type * as z from "zod/mini";
import { askSchema } from "../asks/store.ts";
import { checkInside, layerFolder, type Scope } from "../catalog/files.ts";
import { acceptEntry } from "../catalog/layers.ts";
import { fieldNames, isCatalogName, NAME_RULE, type RawEntry } from "../catalog/schema.ts";
import { saveEntry } from "../catalog/write.ts";
import { acceptNew } from "../config/check.ts";
import { configFile } from "../config/config.ts";
import { setInFile } from "../config/edit.ts";
import { parseSettings, readConfigFile } from "../config/file.ts";
import { findKey, lookUp, merge, within } from "../config/key_path.ts";
import { type ConfigKey, settingOf } from "../config/keys.ts";
import { readLayer } from "../config/layer.ts";
import type { Workspace } from "../engine/workspace.ts";
import { agentOpening, checkAgent, Roster } from "../fleet/roster.ts";
import { jobContext, jobOpening } from "../jobs/context.ts";
import { historyEntry, isJobName, job as jobSchema } from "../jobs/schema.ts";
import { type MemoryScope, SCOPES } from "../memory/memory.ts";
import { VERSION } from "../platform/environment.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { exists, isObject, lstatIfExists, writeFileAtomic } from "../platform/files.ts";
import { inspectPlugin } from "../plugins/discovery.ts";
import { entryOpening, type Opening, screenSettings } from "../policy/openings.ts";
import { isProviderName } from "../providers/registry.ts";
import { checkDocument } from "../sessions/check.ts";
import { isSessionName } from "../sessions/names.ts";
import { shortened } from "./format.ts";
import {
  type Fields,
  jobFields,
  LEFT,
  LOST,
  roleFields,
  settingsOf,
  teamFields,
  type Translated,
} from "./import_fields.ts";
import { type Item, LINK, NotImported, Source } from "./import_source.ts";

/** What an import finds and does. */
export interface ImportReport {
  items: Item[];
  /** What imported files open and the user has not accepted. Those of `global` have effect at once. */
  openings: { id: string; scope: Scope; text: string }[];
}

/**
 * Imports the files of the earlier implementation, polyglav 0.37 to 0.49, through the schemas and stores of svc. What
 * svc has stays as it is. The files are not trusted: links are not followed, and what they open in the worktree has
 * effect only when the user trusts it.
 *
 * @param folders the `.polyglav` of a worktree and `~/.config/polyglav`, as far as they exist
 * @param apply `false`: nothing is written
 */
export async function importPolyglav(
  workspace: Workspace,
  { local, global }: Partial<Record<Scope, string>>,
  apply: boolean,
): Promise<ImportReport> {
  const run = { workspace, apply, items: [], openings: [], settings: new Set<string>() };
  if (global !== undefined) {
    const user = new Import(run, global, "global");
    await user.connections();
    await user.settings();
    await user.catalog();
    await user.rest();
  }
  if (local !== undefined) {
    const worktree = new Import(run, local, "local");
    await worktree.sessions();
    await worktree.settings();
    await worktree.catalog();
    await worktree.asks();
    await worktree.jobs();
    await worktree.memories();
    await worktree.fleet();
    await worktree.rest();
  }
  return { items: run.items, openings: run.openings };
}

/** What the imports of both folders share. */
interface Run extends ImportReport {
  workspace: Workspace;
  apply: boolean;
  /** The names of all settings that were found. */
  settings: Set<string>;
}

/** The import of one folder. */
class Import {
  readonly #run: Run;
  readonly #workspace: Workspace;
  readonly #source: Source;
  readonly #scope: Scope;
  /** Whether a version has written here that has the modes `read` and `write`, of which `read` is the default. */
  #readMode = false;

  constructor(run: Run, root: string, scope: Scope) {
    this.#run = run;
    this.#workspace = run.workspace;
    this.#source = new Source(root, (name, state, note) => this.#leave("file", name, state, note));
    this.#scope = scope;
  }

  async sessions(): Promise<void> {
    const { sessions } = this.#workspace;
    const present = new Set(await sessions.names());
    for (const name of this.#source.names("sessions", ".json")) {
      await this.#item("session", name, () => present.has(name), () => {
        if (!isSessionName(name)) throw new NotImported("this cannot be the name of a session");
        const checked = checkDocument(this.#source.json(join("sessions", `${name}.json`)));
        if (checked.kind === "old") throw new NotImported("no program loads its old format");
        if (checked.kind === "broken") {
          throw new NotImported(`it is broken at ${checked.where}`, "unreadable");
        }
        const { document } = checked;
        const [major = 0, minor = 0] = document.version.split(".").map(Number);
        this.#readMode ||= major > 0 || minor >= 40;
        return {
          async write() {
            const added = sessions.add(name, document);
            if (added) await sessions.publish(name);
            return added;
          },
        };
      });
    }
  }

  async settings(): Promise<void> {
    const { paths, config, connections } = this.#workspace;
    const file = configFile(paths, this.#scope);
    const { values } = readLayer(file);
    const found = this.#settings();
    for (const { name } of found) this.#run.settings.add(name);
    if (this.#readMode && !this.#run.settings.has("mode") && config.origin("mode") === "default") {
      found.push({ name: "mode", value: "plan", note: "there, the default is the mode read" });
    }
    const imported = new Map<ConfigKey, unknown>();
    for (const { name, value, note } of found) {
      const path = findKey(name);
      const present = () => path && lookUp(values.get(path.key), path.rest) !== undefined;
      await this.#item("setting", name, present, () => {
        if (path === undefined) throw new NotImported(LOST[name] ?? "svc has no such setting");
        const accepted = acceptNew(path, value);
        imported.set(path.key, merge(imported.get(path.key), within(path.rest, accepted)));
        return { note, write: () => setInFile(file, name, accepted) };
      });
    }
    const lower = (key: ConfigKey) => {
      const own = this.#scope === "local" ? config.getFrom("global", key) : undefined;
      return own === undefined ? settingOf(key).default : merge(settingOf(key).default, own);
    };
    const { openings } = screenSettings({
      lower: { get: (key) => lower(key as ConfigKey) },
      local: imported,
      accepts: (opening) => this.#accepts(opening),
      connected: () => [...connections.list().keys()],
    });
    for (const opening of openings) this.#opens(opening);
  }

  async catalog(): Promise<void> {
    for (const kind of ["role", "team"] as const) await this.#entries(kind);
    const layer = { scope: this.#scope, ...layerFolder(this.#scope, this.#workspace.paths) };
    for (const name of this.#source.names("skills", ".md")) {
      const present = () => exists(join(layer.folder, "skills", `${name}.md`));
      await this.#item("skill", name, present, () => {
        if (!isCatalogName(name)) throw badName();
        const entry = acceptEntry("skill", name, {
          text: this.#source.text(join("skills", `${name}.md`)),
        });
        return { write: () => saveEntry(layer, "skill", name, entry, { replace: false }) };
      });
    }
  }

  async #entries(kind: "role" | "team"): Promise<void> {
    const { paths, config } = this.#workspace;
    const catalog = await this.#workspace.catalog();
    const layer = { scope: this.#scope, ...layerFolder(this.#scope, paths) };
    const file = join(layer.folder, `${kind}s.json`);
    for (const [name, raw] of this.#source.entries(`${kind}s.json`)) {
      const present = () => Object.hasOwn(parseSettings(readConfigFile(file) ?? "{}", file), name);
      await this.#item(kind, name, present, () => {
        if (!isCatalogName(name)) throw badName();
        if (!isObject(raw)) throw new NotImported("it is no object");
        const given = kind === "role" ? this.#role(name, raw) : teamFields(raw);
        if (given === undefined) {
          throw new NotImported("svc has no teams of a manager: give the role of the manager team");
        }
        const lost = Object.keys(given).filter((field) =>
          field !== "name" && !fieldNames(kind).includes(field)
        );
        const note = lost.map((field) =>
          shortened(`without its ${field} ${JSON.stringify(given[field])}`, 80)
        );
        for (const field of lost) delete given[field];
        // There, no role exceeds the configuration.
        if (kind === "role") given.accepted = false;
        const entry = acceptEntry(kind, name, given);
        const lower: RawEntry = { ...catalog.get(kind, name)?.value };
        this.#opens(entryOpening(config, { kind, name, entry, lower }));
        return {
          note: note.join(", "),
          write: () => saveEntry(layer, kind, name, entry, { replace: false }),
        };
      });
    }
  }

  #role(name: string, raw: Fields): Fields {
    const file = String(raw.instructions || `${name}.md`);
    const plain = isCatalogName(file) && exists(join(this.#source.root, "roles", file));
    return roleFields(raw, plain ? this.#source.text(join("roles", file)) : "");
  }

  async asks(): Promise<void> {
    const { asks } = this.#workspace;
    const schema = askSchema();
    for (const [index, entry] of this.#source.list("asks.json").entries()) {
      const { data: ask, error } = schema.safeParse(entry);
      const known = ask && asks.get(ask.id);
      const present = () =>
        known && known.question === ask.question && known.created_at === ask.created_at;
      await this.#item("ask", `#${ask?.id ?? index + 1}`, present, () => {
        if (ask === undefined) throw invalid(error);
        if (known !== undefined) throw new NotImported("svc has another question with this number");
        return { write: () => asks.add(ask) };
      });
    }
  }

  async jobs(): Promise<void> {
    const { paths: { worktree, state } } = this.#workspace;
    const { register } = jobContext(this.#workspace);
    const own = Object.keys(this.#workspace.config.get("modes"));
    const modes = [...["", "build", "plan"], ...own].map((mode) => `modes.${mode}`);
    for (const [index, entry] of this.#source.list("jobs.json", "jobs").entries()) {
      const { history = [], ...fields } = isObject(entry) ? entry : {};
      const name = String(fields.name ?? index + 1);
      await this.#item("job", name, () => register.get(name) !== undefined, () => {
        const { data: job, error } = jobSchema.safeParse(jobFields(fields));
        if (job === undefined) throw invalid(error);
        if (job.session !== "" && !isSessionName(job.session)) throw badName("its session");
        if (job.task_file !== undefined) job.task_file = this.#source.relative(job.task_file);
        const attempts = (Array.isArray(history) ? history : [])
          .flatMap((attempt) => historyEntry.safeParse(attempt).data ?? []);
        this.#opens(jobOpening(job));
        const mode = `modes.${job.mode}`;
        const known = modes.includes(mode) || this.#run.settings.has(mode);
        const note = known ? "" : `there is no mode ${JSON.stringify(job.mode)}, so its runs fail`;
        return { note, write: () => register.add(job, attempts) };
      });
    }
    const folder = join(state, "jobs");
    for (const name of this.#source.names("jobs", ".md")) {
      if (name.endsWith(".memory")) continue; // see `memories`
      const target = join(folder, `${name}.md`);
      await this.#item("task file", name, () => exists(target), () => {
        if (!isJobName(name)) throw badName();
        const text = this.#source.text(join("jobs", `${name}.md`));
        return {
          write: () => {
            checkInside(worktree, state, folder);
            writeFileAtomic(target, text);
          },
        };
      });
    }
  }

  async memories(): Promise<void> {
    for (const scope of SCOPES) {
      const folder = join("memory", `${scope}s`);
      for (const name of this.#source.names(folder, ".md")) {
        await this.#memory(scope, name, join(folder, `${name}.md`));
      }
    }
    // Where earlier versions kept them.
    const old = this.#source.names("jobs", ".memory.md").map((name) => ["job", name] as const);
    const teams = this.#source.listing("teams").map(({ name }) => ["team", name] as const);
    for (const [scope, name] of [...old, ...teams]) {
      const file = scope === "job" ? `jobs/${name}.memory.md` : `teams/${name}/memory.md`;
      if (exists(join(this.#source.root, file))) await this.#memory(scope, name, file);
    }
  }

  async #memory(scope: MemoryScope, name: string, file: string): Promise<void> {
    const { memory, paths, store } = this.#workspace;
    const present = () => exists(join(paths.state, "memory", `${scope}s`, `${name}.md`));
    await this.#item("memory", `${scope} ${name}`, present, () => {
      const [path, text] = [memory.path(scope, name), this.#source.text(file).trim()];
      return {
        write: async () => {
          if (store === undefined) writeFileAtomic(path, `${text}\n`);
          else await memory.write(scope, name, text);
        },
      };
    });
  }

  async fleet(): Promise<void> {
    const { trust, paths, warn } = this.#workspace;
    const roster = new Roster(paths.state, trust, warn);
    for (const [index, entry] of this.#source.list("fleet.json", "agents").entries()) {
      const { added_at: _, command, ...fields } = isObject(entry) ? entry : {};
      const name = String(fields.name ?? index + 1);
      const present = () => roster.read()?.agents.some((agent) => agent.name === name);
      await this.#item("agent", name, present, () => {
        const given = Array.isArray(command) && command.length === 0 ? undefined : command;
        const { agent, fault } = checkAgent({ ...fields, command: given ?? null });
        if (agent === undefined) throw new NotImported(fault!);
        agent.dir = this.#source.relative(agent.dir);
        if (agent.command !== undefined) this.#opens(agentOpening(agent));
        const own = exists(join(dirname(this.#source.root), agent.dir, ".polyglav"));
        const note = own ? `its own files: svc import polyglav --path ${agent.dir}` : "";
        return { note, write: () => roster.add([agent]) };
      });
    }
  }

  async connections(): Promise<void> {
    const { connections } = this.#workspace;
    for (const [name, entry] of this.#source.entries("providers.json")) {
      await this.#item("connection", name, () => connections.get(name) !== undefined, () => {
        if (!isProviderName(name)) throw badName();
        const { base_url, api_key } = isObject(entry) ? entry : {};
        const address = String(base_url || "");
        const { username = "", password = "" } = URL.parse(address) ?? {};
        if (address !== "" && !URL.canParse(address)) {
          throw new NotImported("its address is no URL");
        }
        if (username + password !== "") throw new NotImported("its address holds a password");
        const note = api_key ? `its key is not copied; give it with: svc connect ${name}` : "";
        return { note, write: () => connections.save(name, { base_url: address }) };
      });
    }
  }

  /** Lists what is not imported: plugins, and files that svc has no use for. */
  async rest(): Promise<void> {
    for (const { name, isSymlink } of this.#source.listing("plugins")) {
      const path = join(this.#source.root, "plugins", name);
      const manifest = lstatIfExists(join(path, "manifest.json"));
      const plugin = isSymlink || manifest?.isSymlink
        ? { name, status: "error", reason: LINK }
        : await inspectPlugin(path, this.#scope, VERSION);
      if (plugin === undefined) continue;
      const { status, reason } = plugin;
      const python = status === "incompatible";
      const advice = python
        ? `it is written in Python: write it anew, beginning with svc plugins new ${plugin.name}`
        : reason || `install it with: svc plugins install ${path}`;
      this.#leave("plugin", plugin.name, python ? "incompatible" : "left_out", advice);
    }
    for (const { name, isSymlink } of this.#source.listing("")) {
      if (!isSymlink && (IMPORTED.includes(name) || name.startsWith("."))) continue;
      const why = LEFT[name] ?? "svc has no use for it";
      this.#leave("file", name, "left_out", isSymlink ? LINK : why);
    }
  }

  /** Imports one item, unless svc has it. */
  async #item(
    kind: string,
    name: string,
    present: () => boolean | undefined,
    plan: () => { note?: string; write: () => unknown },
  ): Promise<void> {
    const { apply } = this.#run;
    let planning = false;
    try {
      if (present()) return this.#leave(kind, name, "exists");
      planning = true;
      const { note, write } = plan();
      planning = false;
      const taken = apply && await write() === false;
      this.#leave(kind, name, taken ? "exists" : apply ? "imported" : "new", note);
    } catch (error) {
      const refused = error instanceof SvcError && planning;
      const state = error instanceof NotImported ? error.state : refused ? "left_out" : "failed";
      this.#leave(kind, name, state, errorMessage(error));
    }
  }

  #leave(kind: string, name: string, state: Item["state"], note = ""): void {
    this.#run.items.push({ kind, name: shortened(name, 200), scope: this.#scope, state, note });
  }

  /** Reports an opening that the user has not accepted by itself. */
  #opens(opening: Opening | undefined): void {
    if (opening === undefined || this.#accepts(opening)) return;
    this.#run.openings.push({ id: opening.id, scope: this.#scope, text: opening.text });
  }

  #accepts(opening: Opening): boolean {
    const { trust } = this.#workspace;
    return this.#scope === "local" && !trust.everything && trust.accepts(opening);
  }

  #settings(): Translated[] {
    try {
      const raw = this.#source.value("config.json");
      return isObject(raw) ? settingsOf(raw) : [];
    } catch (error) {
      this.#leave("file", "config.json", "unreadable", errorMessage(error));
      return [];
    }
  }
}

/** Entries of the folders that are imported, entry by entry. */
const IMPORTED = [
  ...["asks.json", "config.json", "fleet.json", "jobs", "jobs.json", "memory", "plugins"],
  ...["providers.json", "roles", "roles.json", "sessions", "skills", "teams", "teams.json"],
];

function badName(what = "this"): NotImported {
  return new NotImported(`${what} cannot be a name: use ${NAME_RULE}`);
}

function invalid(error: z.core.$ZodError | undefined): NotImported {
  const { path = [], message } = error?.issues[0] ?? {};
  return new NotImported(`its ${path.join(".") || "entry"} is invalid: ${message}`);
}
