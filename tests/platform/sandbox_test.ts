import assert from "node:assert/strict";
import { SECRET_PLACES } from "../../src/config/keys.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { exists } from "../../src/platform/files.ts";
import { Sandbox } from "../../src/platform/sandbox.ts";
import { bubblewrapCommand } from "../../src/platform/sandbox_rules.ts";
import { needs } from "../support/needs.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { type Project, project } from "../support/project.ts";
import { sample } from "../support/random.ts";
import {
  bubblewrap,
  drive,
  type DrivenCommand,
  hasUsers,
  programsWithoutBubblewrap,
  type User,
} from "../support/sandbox.ts";

const NEVER = new AbortController().signal;
const BUBBLEWRAP = await bubblewrap();
const OTHER = needs("commands cannot run as another user", await hasUsers());
const USERS: User[] = OTHER.ignore ? ["root"] : ["root", "nobody"];

/**
 * Commands that try to read a secret, to change what is protected, or to reach another process. One that succeeds
 * prints S3CRET (the content of the secrets) or ESCAPED, or changes a guarded file.
 */
const HOSTILE: Record<string, string[]> = {
  "reads secrets": [
    ...SECRET_PLACES.map((place) => `cat ${quoted(place)} ${quoted(place)}/*`),
    "find ~ -type f -exec cat {} +",
    "grep -r S3CRET ~",
    "tar cf - ~ | tr -d '\\0'",
    "cp -r ~/.ssh stolen; cat stolen/*",
    "mv ~/.ssh stolen; cat stolen/*",
    "ln -s ~/.ssh link; cat link/*",
    "ln ~/.ssh/secret hard; cat hard",
    "cat ~/x/../.ssh/secret ~/./.ssh/secret",
    "cat /proc/self/root/$HOME/.ssh/secret",
    "cat /proc/1/root/$HOME/.ssh/secret",
    "cat /proc/$SVC/root/$HOME/.ssh/secret",
    "cat /proc/$SVC/cwd/../home/.ssh/secret",
    "chroot /proc/1/root cat $HOME/.ssh/secret",
    "nsenter -t 1 -m cat $HOME/.ssh/secret",
    "python3 -c 'import os; print(open(os.path.expanduser(\"~/.ssh/secret\")).read())'",
    "perl -e 'open F, \"$ENV{HOME}/.ssh/secret\"; print <F>'",
    "dd if=$HOME/.ssh/secret",
    "exec 3<$HOME/.ssh/secret; cat <&3",
    ". ~/.ssh/secret",
    "git diff --no-index /dev/null ~/.ssh/secret",
    "curl -s file://$HOME/.ssh/secret",
    "chmod 777 ~/.ssh; cat ~/.ssh/secret",
    "env; printenv UNLISTED",
    "sudo -n cat ~/.ssh/secret; su -c 'cat ~/.ssh/secret'",
  ],
  "mounts": [
    "umount ~/.ssh; umount -l ~/.ssh; cat ~/.ssh/secret",
    "unshare -Urm sh -c 'umount -l ~/.ssh; cat ~/.ssh/secret'",
    "unshare -m sh -c 'umount -l ~/.ssh; cat ~/.ssh/secret'",
    "mkdir m; mount --bind ~ m; cat m/.ssh/secret",
    "mkdir m2; unshare -Urm sh -c 'mount --bind $HOME m2; cat m2/.ssh/secret'",
    "mkdir m3; unshare -Urm sh -c 'mount --rbind / m3 && cat m3/$HOME/.ssh/secret'",
    "unshare -Urm sh -c 'mount -o remount,bind,rw / && touch $OUTSIDE/new'",
    "unshare -Urm sh -c 'mount -o remount,bind,rw $OUTSIDE && touch $OUTSIDE/new'",
    "mount -o remount,rw /; touch $OUTSIDE/new",
    "mount -o remount,bind,rw /; touch $OUTSIDE/new",
    "mount -t tmpfs none .svc && echo ESCAPED",
    "unshare -Urm sh -c 'umount -l .svc; echo {} > .svc/config.json'",
    "unshare -Urm sh -c 'mount -o remount,bind,rw .svc; echo {} > .svc/config.json'",
    "mount -o remount,bind,rw .svc/; echo {} > .svc/config.json",
    "pivot_root . m && echo ESCAPED",
    "mkdir -p d; mount -t devtmpfs none d && echo ESCAPED",
    "mkdir -p p; mount -t proc none p; cat p/$VICTIM/environ",
    "mkdir -p s; mount -t sysfs none s && echo ESCAPED",
    "mkdir -p c; mount -t cgroup2 none c && echo ESCAPED",
  ],
  "devices and kernel": [
    "mknod disk b 8 0 && echo ESCAPED",
    "mknod mem c 1 1 && echo ESCAPED",
    "mknod /dev/shm/disk b 254 0 && echo ESCAPED",
    "for d in /dev/sd? /dev/vd? /dev/nvme?n?; do dd if=$d count=1 && echo ESCAPED; done",
    "head -c 1 /dev/mem && echo ESCAPED",
    "head -c 1 /dev/kmsg && echo ESCAPED",
    "[ -c /dev/kmsg ] && echo x > /dev/kmsg && echo ESCAPED",
    "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness && echo ESCAPED",
    "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo ESCAPED",
    "cat /proc/sys/kernel/modprobe > /proc/sys/kernel/modprobe && echo ESCAPED",
    "sysctl -w vm.swappiness=60 && echo ESCAPED",
    "echo h > /proc/sysrq-trigger && echo ESCAPED",
    "mkdir /sys/fs/cgroup/escape && echo ESCAPED",
    "cat /sys/kernel/mm/ksm/run > /sys/kernel/mm/ksm/run && echo ESCAPED",
    refused("175, 0, 0, b''"), // init_module
    refused("246, 0, 0, 0, 0"), // kexec_load
    refused("169, 0, 0, 0, 0"), // reboot, without its magic numbers
    "ip link add svc0 type dummy && ip link del svc0 && echo ESCAPED",
    "chroot / true && echo ESCAPED",
  ],
  "writes outside": [
    "echo x >> $OUTSIDE/file",
    "echo x > $OUTSIDE/file",
    "touch $OUTSIDE/new",
    "mkdir $OUTSIDE/new",
    "rm -rf $OUTSIDE",
    "rm -f $OUTSIDE/file",
    "mv $OUTSIDE gone",
    "mv $OUTSIDE/file gone",
    "chown 1:1 $OUTSIDE/file",
    "truncate -s 0 $OUTSIDE/file",
    "sed -i s/file/x/ $OUTSIDE/file",
    "cp /dev/null $OUTSIDE/file",
    "dd if=/dev/zero of=$OUTSIDE/file count=1",
    "tee $OUTSIDE/file <<< x",
    "ln -s $OUTSIDE out; echo x > out/file; touch out/new",
    "ln -s $OUTSIDE/file out2; echo x > out2",
    "ln $OUTSIDE/file hard2; echo x > hard2",
    "ln file.txt $OUTSIDE/new",
    'python3 -c \'import os; os.rename("file.txt", os.environ["OUTSIDE"] + "/new")\'',
    'python3 -c \'import os; open(os.environ["OUTSIDE"] + "/file", "r+").write("x")\'',
    "mkfifo $OUTSIDE/new",
    "git init -q $OUTSIDE/new",
    "tar cf $OUTSIDE/new file.txt",
    "echo x >> ~/.bashrc",
    "echo x >> ~/.profile",
    "mkdir -p ~/.config/autostart && touch ~/.config/autostart/x && echo ESCAPED",
    "mkdir -p ~/.ssh && echo key > ~/.ssh/authorized_keys; cat ~/.ssh/secret",
    "echo x > ~/.gitconfig",
    "git config --global core.pager x",
    "touch /var/spool/cron/x /etc/cron.d/x && echo ESCAPED",
    "touch /etc/x /usr/bin/x /var/lib/x /opt/x && echo ESCAPED",
    "cat /proc/self/exe > /dev/null; cp file.txt /usr/local/bin/file.txt && echo ESCAPED",
    "echo x > /proc/$SVC/root/$OUTSIDE/file",
    "echo x > /proc/1/cwd/../outside/file",
    "cd ..; touch outside/new; echo x > outside/file",
  ],
  "other processes": [
    "cat /proc/$VICTIM/environ",
    "cat /proc/[0-9]*/environ",
    "cat /proc/$SVC/environ /proc/$PPID/environ /proc/1/environ",
    "ps auxwwe | grep S3CRET-victi[m]",
    "kill -0 $VICTIM && echo ESCAPED",
    "kill -9 $VICTIM && echo ESCAPED",
    "kill -9 $SVC && echo ESCAPED",
    "kill -STOP $SVC && echo ESCAPED",
    ptrace("16, int(sys.argv[1]), 0, 0"),
    "cat /proc/$VICTIM/mem > /dev/null && echo ESCAPED",
    "head -c 1 /proc/$VICTIM/maps && echo ESCAPED",
    "echo 1000 > /proc/$VICTIM/oom_score_adj && echo ESCAPED",
    "ls -l /proc/$VICTIM/fd | grep -q pipe && echo ESCAPED",
    "readlink /proc/$VICTIM/cwd && echo ESCAPED",
    "echo 'echo S3CRET' > evil.sh; BASH_ENV=evil.sh LD_PRELOAD=./evil.so kill -9 $SVC && echo ESCAPED",
  ],
};

/** What Landlock cannot hold; see docs/security.md. */
const FULL: Record<string, string[]> = {
  "svc's state and Git's configuration": [
    "echo '{}' > .svc/config.json",
    "echo x >> .svc/config.json",
    "touch .svc/new",
    "rm -rf .svc",
    "rm -f .svc/config.json",
    "mv .svc gone; mkdir .svc; echo '{}' > .svc/config.json",
    "mv .svc/config.json gone",
    "chmod 777 .svc/config.json",
    "ln -sfn /tmp .svc",
    "ln -f file.txt .svc/config.json",
    "ln .svc/config.json hard3; echo x > hard3",
    "ln -s .svc state; echo x > state/config.json",
    "cd .svc && echo x > config.json",
    "mkdir -p .svc/plugins/evil && echo ESCAPED",
    'python3 -c \'import os; os.rename("file.txt", ".svc/config.json")\'',
    "exec 3>.svc/config.json; echo x >&3",
    "git config core.fsmonitor ./evil",
    "echo '[core] fsmonitor = ./evil' >> .git/config",
    "rm -f .git/config",
    "mv .git/config .git/config2",
    "cp file.txt .git/config",
    "ln -f file.txt .git/config",
    "printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
    "mv .git/hooks .git/hooks2; mkdir .git/hooks; touch .git/hooks/pre-commit",
    "rm -rf .git/hooks",
    "mv .git .git2; mkdir .git; cp -r .git2/. .git; echo x >> .git/config",
    "echo '[core] fsmonitor = ./evil' >> .git/modules/part/config",
    "mkdir -p .git/modules/part/hooks; touch .git/modules/part/hooks/post-checkout",
    "git -C part config core.fsmonitor ./evil",
  ],
  "modes": ["chmod 777 $OUTSIDE/file"],
  "sockets of other programs": [
    connect("$SOCKET"),
    connect("$AGENT"),
    "ls /run/docker.sock /run/dbus /run/systemd/private 2>/dev/null | grep -q . && echo ESCAPED",
  ],
  "processes that outlive the command": [
    "setsid sleep 1234 & disown",
    "setsid -f sleep 1234",
    "(setsid sh -c 'sleep 1234 & sleep 1234' &) &",
    "python3 -c 'import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(1234)'",
    "trap '' TERM HUP; setsid -f sh -c 'trap \"\" TERM HUP; sleep 1234'",
  ],
};

const OFFLINE = [
  connect("127.0.0.1"),
  "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo ESCAPED",
  "exec 3<>/dev/tcp/1.1.1.1/53 && echo ESCAPED",
  "echo x > /dev/udp/1.1.1.1/53 && echo ESCAPED",
  "exec 3<>/dev/tcp/::1/$PORT && echo ESCAPED",
  "unshare -Urn sh -c 'ip link set lo up'; exec 3<>/dev/tcp/127.0.0.1/$PORT && echo ESCAPED",
  "nsenter -t 1 -n sh -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT' && echo ESCAPED",
];

/** Commands that work, with a line of their output. */
const HONEST: [script: string, line: string][] = [
  ["echo changed > file.txt; cat file.txt", "changed"],
  ["mkdir -p a/b && mv file.txt a/b/ && ls a/b", "file.txt"],
  [
    "git add --all . && git -c user.name=A -c user.email=a@b.c commit -qm one && git log --format=%s",
    "one",
  ],
  ["git checkout -qb topic && git branch --show-current", "topic"],
  ["git stash -q; git tag v1 && git tag", "v1"],
  ["t=$(mktemp) && echo temporary > $t && cat $t", "temporary"],
  ["printf 'b\\na\\n' | sort | head -n 1", "a"],
  ["cat <<END\nheredoc\nEND", "heredoc"],
  ["diff <(echo 1) <(echo 1) && echo same", "same"],
  ["yes | head -n 1", "y"],
  ["sleep 0.1 & wait; echo waited", "waited"],
  ["(sleep 0.1; echo late) | cat", "late"],
  ["echo to-null > /dev/null && head -c 1 /dev/urandom | wc -c", "1"],
  ["python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-7])[0])'", "7"],
  [
    "echo '#include <stdio.h>\nint main() { puts(\"compiled\"); }' > a.c && gcc a.c -o a.out && ./a.out",
    "compiled",
  ],
  ['node -e \'require("fs").writeFileSync("n", "x"); console.log("node")\'', "node"],
  [
    'mkdir -p pkg && cd pkg && echo \'{"name":"p","version":"1.0.0"}\' > package.json && mkdir -p dep && echo \'{"name":"d","version":"1.0.0"}\' > dep/package.json && npm install --silent --offline ./dep && ls node_modules',
    "d",
  ],
  [
    // Without imports it is not linked, so that Go need not compile its library first.
    "mkdir -p go && cd go && echo 'module m' > go.mod && echo 'package m; func F() int { return 1 }' > m.go && go build -o m . && echo gone",
    "gone",
  ],
  [
    "mkdir -p rust && cd rust && cargo init -q --vcs none --name r . && cargo run -q --offline",
    "Hello, world!",
  ],
  [
    "echo 'Deno.test(\"t\", () => {})' > t_test.ts && deno test --no-lock -q t_test.ts && echo tested",
    "tested",
  ],
  ["ls ~ > /dev/null && cat $OUTSIDE/file", "file"],
  ["echo $FORWARDED", "from svc"],
  ["[ ! -e ~/.cache/deno ] && echo ${DENO_DIR#$HOME}", "/.cache/svc-commands/deno"],
  ["DENO_DIR=/x sh -c 'echo $DENO_DIR'", "/x"],
];

/** Not a temporary folder, which commands may write. */
const PLACE = Deno.uid() === 0 ? "/var/lib" : Deno.env.get("HOME")!;

const PROGRAMS = ["git", "python3", "gcc", "node", "npm", "go", "cargo", "deno"];

for (const user of USERS) {
  for (const kind of ["bubblewrap", "landlock"] as const) {
    const ignore = kind === "bubblewrap" && BUBBLEWRAP.ignore;
    Deno.test({
      name: `${kind}, ${user}: no hostile command reaches what is outside`,
      ignore,
      fn: () => campaign(user, kind),
    });
    Deno.test({
      name: `${kind}, ${user}: honest commands work`,
      ignore,
      async fn() {
        await using at = await setting(user, kind);
        const missing = await at.missing(PROGRAMS);
        const lines = HONEST
          .filter(([script]) => !missing.some((name) => new RegExp(`\\b${name} `).test(script)));
        const report = await at.drive(lines.map(([script]) => ({ script, env: ["FORWARDED"] })));
        assert.equal(report.kind, kind);
        for (const [index, { code, output, changed }] of report.results.entries()) {
          const [script, line] = lines[index]!;
          const shown = `${script}\n${output}`;
          assert.deepEqual([code, changed], [0, []], shown);
          assert.ok(output.split("\n").includes(line), shown);
        }
      },
    });
  }
}

async function campaign(user: User, kind: "bubblewrap" | "landlock"): Promise<void> {
  await using at = await setting(user, kind);
  const full = kind === "bubblewrap";
  const all = Object.values({ ...HOSTILE, ...full ? FULL : {} }).flat();
  const scripts = user === "root" ? all : sample(all, 3);
  const commands: DrivenCommand[] = [
    ...scripts.map((script) => ({ script })),
    ...OFFLINE.map((script) => ({ script, network: false })),
    { script: "echo x", mode: "require" },
  ];
  const report = await at.drive(commands);
  assert.deepEqual([report.kind, report.full], [kind, full]);
  assert.equal(report.results.length, commands.length);
  const through = commands.flatMap(({ script }, index) => {
    const { output, changed } = report.results[index]!;
    // A name of Node's errors in a cache ends in the same word.
    const at = output.search(/S3CRET|\bESCAPED/);
    const escaped = at >= 0 || changed.length > 0;
    return escaped
      ? [{ script, output: output.slice(Math.max(0, at - 400)).slice(0, 500), changed }]
      : [];
  });
  assert.deepEqual(through, []);
  const refused = report.results.filter(({ output }) => output.startsWith("no_sandbox: "));
  assert.equal(refused.length, full ? 0 : OFFLINE.length + 1);
  await noProcessesLeft(at.worktree);
}

/** A worktree, a home with secrets and a folder outside, for one user. */
async function setting(user: User, kind: "bubblewrap" | "landlock") {
  const place: Project = await project({}, { dir: PLACE });
  const { path } = place;
  const [worktree, home, outside] = ["worktree", "home", "outside"].map((n) => `${path}/${n}`) as [
    string,
    string,
    string,
  ];
  for (const secret of SECRET_PLACES) {
    const path = secret.replace("~", "home");
    const file = /rc$|history$|credentials$|pgpass$|\.\w+$/.test(
      path.slice(path.lastIndexOf("/") + 2),
    );
    await place.write(file ? path : `${path}/secret`, "S3CRET=1\n");
  }
  for (const file of [".bashrc", ".profile", ".gitconfig"]) await place.write(`home/${file}`, "");
  await place.write("outside/file", "file\n");
  await place.write("worktree/file.txt", "text\n");
  await place.write("worktree/.svc/config.json", '{"mode":"build"}');
  await run(worktree, "git", "init", "--quiet", "--initial-branch=main");
  await place.write("worktree/.git/modules/part/HEAD", "ref: refs/heads/main\n");
  await place.write("worktree/.git/modules/part/config", "[core]\n");
  await place.write("worktree/part/.git", "gitdir: ../.git/modules/part\n");
  await place.write("worktree/.gitignore", "part\n");
  const programs = kind === "landlock" ? await programsWithoutBubblewrap(PLACE) : undefined;
  // The other process, the sockets and the server belong to the same user as the commands.
  const owner = user === "nobody" ? "65534:65534" : "0:0";
  await run(path, "chown", "-R", owner, path);
  const victim = new Deno.Command("setpriv", {
    args: [`--reuid=${owner.split(":")[0]}`, "sleep", "100000"],
    env: { VICTIM: "S3CRET-victim" },
  }).spawn();
  const agentFolder = await Deno.makeTempDir({ dir: "/tmp", prefix: "ssh-" });
  const sockets = [`/run/svc-test-${crypto.randomUUID().slice(0, 8)}.sock`, `${agentFolder}/agent`];
  const listeners = sockets.map((path) => Deno.listen({ transport: "unix", path }));
  const server = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  for (const listener of listeners) listener.unref();
  await run("/", "chmod", "777", agentFolder, ...sockets);
  const guarded = [
    outside,
    `${outside}/file`,
    ...[".bashrc", ".profile", ".gitconfig"].map((name) => `${home}/${name}`),
    ...["secret", "authorized_keys"].map((name) => `${home}/.ssh/${name}`),
    // Landlock protects nothing inside the worktree.
    ...kind === "landlock" ? [] : [
      ...["", "/config.json"].map((name) => `${worktree}/.svc${name}`),
      ...["config", "hooks"].map((name) => `${worktree}/.git/${name}`),
      ...["config", "hooks/post-checkout"].map((name) => `${worktree}/.git/modules/part/${name}`),
    ],
  ];
  const search = programs?.path ?? Deno.env.get("PATH")!;
  return {
    worktree,
    drive: (commands: DrivenCommand[]) =>
      drive(user, {
        worktree,
        home,
        path: search,
        deny_read: SECRET_PLACES,
        guarded,
        env: {
          OUTSIDE: outside,
          VICTIM: String(victim.pid),
          SOCKET: sockets[0]!,
          AGENT: sockets[1]!,
          PORT: String(server.addr.port),
        },
        commands,
      }),
    /** The programs that this user cannot run, with this home. */
    async missing(names: string[]) {
      const report = await this.drive(
        names.map((name) => ({ script: `${name} --version || ${name} version` })),
      );
      return names.filter((_, index) => report.results[index]!.code !== 0);
    },
    async [Symbol.asyncDispose]() {
      victim.kill("SIGKILL");
      await victim.status;
      for (const listener of [...listeners, server]) listener.close();
      await Deno.remove(agentFolder, { recursive: true });
      await Deno.remove(sockets[0]!).catch(() => {});
      await programs?.[Symbol.asyncDispose]();
      await run("/", "chmod", "-R", "u+w", path); // Go's module cache
      await place[Symbol.asyncDispose]();
    },
  };
}

async function run(cwd: string, program: string, ...args: string[]): Promise<void> {
  await new Deno.Command(program, { args, cwd, stdout: "null", stderr: "null" }).output();
}

function quoted(place: string): string {
  return place.replaceAll(" ", "\\ ");
}

function ptrace(args: string): string {
  const code = `import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(${args}))`;
  return `python3 -c '${code}' $VICTIM && echo ESCAPED`;
}

/** A system call that is refused with EPERM, or unknown; another error means that the right to it is there. */
function refused(args: string): string {
  const code = "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True); " +
    `libc.syscall(${args}); sys.exit(ctypes.get_errno() in (1, 38))`;
  return `python3 -c "${code}" && [ $(uname -m) = x86_64 ] && echo ESCAPED`;
}

/** Connects to a socket, or to $PORT of an address. */
function connect(target: string): string {
  const code = target.startsWith("$")
    ? "socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    : "socket.create_connection((sys.argv[1], int(sys.argv[2])))";
  return `python3 -c 'import socket, sys; ${code}' ${target} $PORT && echo ESCAPED`;
}

Deno.test({
  name: "bubblewrap: a command may clean up when it is cancelled, and ends with its processes",
  ...BUBBLEWRAP,
  async fn() {
    await using place = await project();
    const cancel = new AbortController();
    const sandbox = new Sandbox({
      worktree: place.path,
      environment: { home: place.path, cwd: place.path, get: (name) => Deno.env.get(name) },
      clock: systemClock,
      settings: () => ({ mode: "require", deny_read: [], write: [], network: true, env: [] }),
      hidden: [],
      warn: () => {},
    });
    const script =
      "trap 'sleep 0.1; echo tidied; exit 5' TERM; setsid -f sleep 1234; touch ready; " +
      "while :; do sleep 0.05; done";
    const request = { command: ["bash", "-c", script], cwd: place.path, timeout: 60 };
    const running = sandbox.run(request, cancel.signal);
    while (!exists(`${place.path}/ready`)) await new Promise((resolve) => setTimeout(resolve, 5));
    cancel.abort();
    const { code, output, cancelled } = await running;
    assert.deepEqual([code, cancelled], [5, true]);
    assert.match(output, /^tidied$/m);
    await noProcessesLeft(place.path);
    await assert.rejects(sandbox.run({ ...request, command: ["no-such-program"] }, NEVER), {
      code: "program_not_found",
    });
  },
});

Deno.test("a secret place that appears between two commands is hidden from the second [5.1]", async () => {
  const home = await Deno.makeTempDir();
  const { now } = Date;
  const rules = { worktree: `${home}/work`, write: [], network: true, seen: new Map() };
  const hides = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20)); // the next change gets another time
    const request = { ...rules, deny_read: [`${home}/.ssh`, `${home}/.local/share/keyrings`] };
    return bubblewrapCommand(request, ["true"], "/", { root: false })
      .filter((_, i, args) => args[i - 1] === "--tmpfs" && args[i]!.startsWith(`${home}/.`));
  };
  try {
    Date.now = () => now() + 60_000; // the folders were changed long ago
    assert.deepEqual(await hides(), []);
    assert.deepEqual(await hides(), []);
    await Deno.mkdir(`${home}/.ssh`);
    assert.deepEqual(await hides(), [`${home}/.ssh`]);
    await Deno.mkdir(`${home}/.local`);
    assert.deepEqual(await hides(), [`${home}/.ssh`]);
    await Deno.mkdir(`${home}/.local/share/keyrings`, { recursive: true });
    assert.deepEqual(await hides(), [`${home}/.ssh`, `${home}/.local/share/keyrings`]);
    await Deno.remove(`${home}/.ssh`);
    await Deno.symlink("/nonexistent/keys", `${home}/.ssh`);
    assert.deepEqual(await hides(), [`${home}/.local/share/keyrings`]);
  } finally {
    Date.now = now;
    await Deno.remove(home, { recursive: true });
  }
});
