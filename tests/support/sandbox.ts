import { fileURLToPath } from "node:url";
import { buildFlags } from "./flags.ts";
import { needs } from "./needs.ts";
import { type Project, project } from "./project.ts";

/** A command for the driver, and what to check around it. */
export interface DrivenCommand {
  script: string;
  /** Default: the network may be used. */
  network?: boolean;
  mode?: "off" | "auto" | "require";
  /** Names of `sandbox.env`. */
  env?: string[];
}

export interface DrivenResult {
  code: number;
  output: string;
  /** Files that the command changed although it must not. */
  changed: string[];
}

/** The work of one driver (sandbox_driver.ts). */
export interface DriverRequest {
  worktree: string;
  home: string;
  /** The PATH in which the sandbox looks for programs. */
  path: string;
  deny_read: string[];
  /** Files that no command may change. Folders count with the names in them. */
  guarded: string[];
  /** Environment variables of all commands. */
  env: Record<string, string>;
  commands: DrivenCommand[];
}

export interface DriverReport {
  kind: string;
  full: boolean;
  results: DrivenResult[];
}

/** A user that commands run as. */
export type User = "root" | "nobody";

const NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const DRIVER = fileURLToPath(new URL("sandbox_driver.ts", import.meta.url));

/** Runs commands one after another through a `Sandbox`, in a process of its own with the program's flags. */
export async function drive(user: User, request: DriverRequest): Promise<DriverReport> {
  const { env: _, ...rest } = Deno.env.toObject();
  const [program, ...args] = [
    ...user === "nobody" ? NOBODY : [],
    await denoFor(user),
    "run",
    ...buildFlags(),
    "--no-lock",
    DRIVER,
  ];
  const child = new Deno.Command(program!, {
    args,
    clearEnv: true,
    env: {
      PATH: rest.PATH ?? "",
      HOME: request.home,
      FORWARDED: "from svc",
      UNLISTED: "S3CRET-environment",
      // Not that of the commands. The sources need nothing but what Deno has built in.
      DENO_DIR: `${request.home}/deno`,
    },
    cwd: request.worktree,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(JSON.stringify(request)));
  await writer.close();
  const { stdout } = await child.output();
  return JSON.parse(new TextDecoder().decode(stdout));
}

let copied: Promise<string> | undefined;

/** Deno at a path that the user can reach: root's home, where npm keeps it, may be closed to others. */
async function denoFor(user: User): Promise<string> {
  const [program, ...args] = [...NOBODY, "sh", "-c", 'test -x "$1"', "sh", Deno.execPath()];
  if (user === "root" || await succeeds(program!, args)) return Deno.execPath();
  return await (copied ??= copyOfDeno());
}

async function copyOfDeno(): Promise<string> {
  const folder = await Deno.makeTempDir();
  addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));
  await Deno.chmod(folder, 0o755);
  await Deno.copyFile(Deno.execPath(), `${folder}/deno`);
  return `${folder}/deno`;
}

/** Whether tests can run commands as root and as another user. */
export async function hasUsers(): Promise<boolean> {
  if (Deno.uid() !== 0) return false;
  const [program, ...args] = [...NOBODY, "test", "-r", DRIVER];
  return await succeeds(program!, args);
}

/** Whether bubblewrap works here; root installs it where there is apt-get. */
async function hasBubblewrap(): Promise<boolean> {
  const args = "--ro-bind / / --dev /dev --proc /proc --unshare-pid true".split(" ");
  if (await succeeds("bwrap", args)) return true;
  if (Deno.uid() !== 0) return false;
  // Several test files may do this at the same time.
  const wait = ["-o", "DPkg::Lock::Timeout=60"];
  await succeeds("apt-get", ["install", ...wait, "--yes", "--quiet", "bubblewrap"]);
  return await succeeds("bwrap", args);
}

/** For `Deno.test`: ignores what needs bubblewrap where it does not work. */
export async function bubblewrap(): Promise<{ ignore: boolean }> {
  return needs("bubblewrap does not work", await hasBubblewrap());
}

/** A folder in `dir` with links to all programs of the PATH but bubblewrap. Every user may read `dir`. */
export async function programsWithoutBubblewrap(dir: string): Promise<Project> {
  const folder = await project({}, { dir });
  const script = `for dir in $(echo "$PATH" | tr : ' '); do
    for program in "$dir"/*; do
      name=\${program##*/}
      [ "$name" = bwrap ] || [ -e "$1/$name" ] || ln -s "$program" "$1/$name" 2>/dev/null
    done
  done; chmod 755 "$1"`;
  await succeeds("sh", ["-c", script, "sh", folder.path]);
  return folder;
}

async function succeeds(program: string, args: string[]): Promise<boolean> {
  try {
    const command = new Deno.Command(program, { args, stdout: "null", stderr: "null" });
    return (await command.output()).success;
  } catch {
    return false;
  }
}
