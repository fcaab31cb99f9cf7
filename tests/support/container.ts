import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Project } from "./project.ts";
import { tiny } from "./tiny_disk.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Runs containers of the image that the Dockerfile describes, with a read-only root and this machine's network. */
export interface Image extends AsyncDisposable {
  /**
   * Starts a container that works in a folder of this machine.
   *
   * @param options.home the name of a volume for the home; it begins with what the image has there
   */
  run(
    args: string[],
    options: { work: string; home?: string; env?: Record<string, string> },
  ): Container;
}

export interface Container {
  /** Its first process is asked to stop by its end. */
  readonly child: Deno.ChildProcess;
  /** Runs a command in it. */
  exec(command: string[]): Promise<{ code: number; stdout: string }>;
  stop(): Promise<void>;
}

/** A bundle for the image: `compile.sh --bundle`. */
export async function makeBundle(place: Project): Promise<string> {
  const bundle = join(place.path, "bundle");
  await command("bash", [join(ROOT, "compile.sh"), "--bundle", "--output", bundle]);
  return bundle;
}

/**
 * The image without a container engine: the last stage of the Dockerfile is carried out on top of this machine's own
 * files (an overlay that is removed), and containers are processes with mounts and process numbers of their own.
 *
 * @returns undefined where a step cannot be done, such as apt-get without a network
 */
export async function changedRoot(place: Project, bundle: string): Promise<Image | undefined> {
  const disk = await tiny(place, { at: "image", flags: "size=1g" });
  const at = (name: string) => join(place.path, "image", name);
  for (const name of ["upper", "work", "root"]) await Deno.mkdir(at(name));
  // A character device 0/0 of an upper layer hides what the lower one has.
  for (const name of ["work", "home"]) await command("mknod", [at(`upper/${name}`), "c", "0", "0"]);
  const layers = `lowerdir=/,upperdir=${at("upper")},workdir=${at("work")}`;
  await command("mount", ["-t", "overlay", "-o", layers, "overlay", at("root")]);
  const dispose = async () => {
    await command("umount", ["--lazy", at("root")]);
    await disk[Symbol.asyncDispose]();
  };
  const steps = lastStage(await Deno.readTextFile(join(ROOT, "Dockerfile")));
  const env: Record<string, string> = { PATH: "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
  let user = "0:0";
  let entry: string[] = [];
  let rest: string[] = [];
  const volume = (name: string) => {
    const path = at(name);
    try {
      Deno.statSync(path);
    } catch {
      const args = ["-a", at("root/home/svc"), path];
      assert.ok(new Deno.Command("cp", { args }).outputSync().success);
    }
    return path;
  };
  const inside = (words: string[], work?: string, home?: string) => {
    const binds =
      `mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev"`;
    const more = work === undefined
      ? ""
      : ` && mount --bind '${work}' "$1/work" && mount -o remount,ro,bind "$1"` +
        (home === undefined ? "" : ` && mount --bind '${volume(home)}' "$1/home/svc"`);
    const start =
      'root=$1 user=$2 && shift 2 && exec chroot --userspec="$user" --groups= "$root" "$@"';
    const vars = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const dir = work === undefined ? "/" : "/work";
    return [
      ...["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c"],
      ...[`${binds}${more} && ${start}`, "sh", at("root"), user],
      ...["env", "-i", ...vars, "env", "-C", dir, ...words],
    ];
  };
  for (const [word, text] of steps) {
    if (word === "ENV") {
      for (const pair of text.split(" ")) env[pair.split("=")[0]!] = pair.split("=")[1]!;
    } else if (word === "USER") user = text;
    else if (word === "ENTRYPOINT") entry = JSON.parse(text);
    else if (word === "CMD") rest = JSON.parse(text);
    else if (word === "COPY") {
      const [source, target] = text.replace("--from=bundle / ", `${bundle}/. `).split(" ");
      const to = at(`root${target}`);
      await Deno.mkdir(dirname(to), { recursive: true });
      await command("cp", ["-r", join(source!.startsWith("/") ? "" : ROOT, source!), to]);
    } else if (word === "RUN") {
      const [program, ...args] = inside(["sh", "-c", text]);
      const ended = await new Deno.Command(program!, { args, stdin: "null" }).output();
      if (ended.success) continue;
      await dispose();
      if (text.startsWith("apt-get")) return undefined;
      throw new Error(`${text}: ${new TextDecoder().decode(ended.stderr)}`);
    }
  }
  delete env.HOME; // the hardest case: an engine that does not set it
  return {
    run(args, { work, home, env: more }) {
      Object.assign(env, more);
      const [program, ...words] = inside(
        [...entry, ...args.length === 0 ? rest : args],
        work,
        home,
      );
      const child = new Deno.Command(program!, { args: words, ...PIPED }).spawn();
      const first = async () =>
        (await finished("cat", [`/proc/${child.pid}/task/${child.pid}/children`])).stdout.trim();
      return {
        child,
        stop: async () => Deno.kill(Number(await first()), "SIGTERM"),
        exec: async (words) => {
          const vars = Object.entries(env).map(([name, value]) => `${name}=${value}`);
          const enter = ["--target", await first(), "--mount", "--pid", "--root", "--wd"];
          const drop = ["setpriv", "--reuid=10001", "--regid=0", "--clear-groups"];
          return await finished("nsenter", [...enter, ...drop, "env", "-i", ...vars, ...words]);
        },
      };
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** The image as buildah builds it from the Dockerfile, and containers of podman. */
export async function podmanImage(place: Project, bundle: string): Promise<Image> {
  const limits = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"];
  const common = ["--runtime", "runc", "--network=host", ...limits];
  const base = "localhost/debian:bookworm-slim";
  if (!(await finished("podman", ["image", "exists", base])).success) {
    const archive = join(place.path, "base.tar");
    await command("mmdebstrap", ["--quiet", "--variant=apt", "bookworm", archive]);
    await command("podman", ["import", archive, base]);
  }
  const name = `svc-test-${Deno.pid}`;
  const context = ["--build-context", `bundle=${bundle}`];
  await command("buildah", ["bud", ...common, "--format=docker", ...context, "-t", name, ROOT]);
  let count = 0;
  const volumes = new Set<string>();
  return {
    run(args, { work, home, env = {} }) {
      const container = `${name}-${++count}`;
      const vars = Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
      const readOnly = ["--read-only", "--read-only-tmpfs=false"];
      if (home !== undefined) volumes.add(`${name}-${home}`);
      const volume = home === undefined ? [] : ["-v", `${name}-${home}:/home/svc`];
      const mounts = ["-v", `${work}:/work`, ...volume];
      const flags = ["--rm", "--name", container, ...readOnly, ...vars, ...mounts];
      const child = new Deno.Command("podman", {
        args: ["run", ...common, ...flags, name, ...args],
        ...PIPED,
      }).spawn();
      return {
        child,
        stop: () => command("podman", ["stop", "--time", "10", container]),
        exec: (words) => finished("podman", ["exec", container, ...words]),
      };
    },
    async [Symbol.asyncDispose]() {
      await command("podman", ["rmi", "--force", name]);
      for (const volume of volumes) await command("podman", ["volume", "rm", "--force", volume]);
    },
  };
}

const PIPED = { stdin: "null", stdout: "piped", stderr: "piped" } as const;

/** The instructions after the last FROM, with their continued lines joined. */
function lastStage(dockerfile: string): [word: string, text: string][] {
  const [, stage] = /^FROM debian.*\n([^]*)$/m.exec(dockerfile)!;
  return stage!.replace(/^#.*\n/gm, "").replace(/\\\n\s*/g, "").trim().split("\n").map((line) => {
    const [, word, text] = /^(\w+) (.*)$/.exec(line)!;
    return [word!, text!];
  });
}

async function command(program: string, args: string[]): Promise<void> {
  const { success, stdout, stderr } = await finished(program, args);
  assert.ok(success, `${program} ${args.join(" ")}: ${stdout}${stderr}`);
}

async function finished(program: string, args: string[]) {
  const ended = await new Deno.Command(program, { args, stdin: "null" }).output();
  const [stdout, stderr] = [ended.stdout, ended.stderr].map((text) =>
    new TextDecoder().decode(text)
  );
  return { code: ended.code, success: ended.success, stdout: stdout!, stderr: stderr! };
}
