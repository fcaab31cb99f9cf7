/**
 * A program that confines itself by Landlock and becomes a command:
 * `landlock.ts '<LandlockRules as JSON>' <command> [arguments]`. With `{}` for the rules and no command it
 * prints the version of the kernel's interface, 0 without one.
 *
 * It runs in a process of its own because it needs Deno's `ffi` permission. The rules hold for all
 * processes that the command starts and cannot be lifted. Exit code 126: the command could not be started.
 */
import type { LandlockRules } from "./sandbox_rules.ts";

const { symbols: libc } = Deno.dlopen("libc.so.6", {
  syscall: { parameters: ["i64", "buffer", "usize", "u32"], result: "i64" },
  add_rule: { name: "syscall", parameters: ["i64", "i32", "u32", "buffer", "u32"], result: "i64" },
  restrict: { name: "syscall", parameters: ["i64", "i32", "u32"], result: "i64" },
  prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  signal: { parameters: ["i32", "usize"], result: "pointer" },
  execv: { parameters: ["buffer", "buffer"], result: "i32" },
});

// The same numbers on every architecture.
const CREATE_RULESET = 444n, ADD_RULE = 445n, RESTRICT_SELF = 446n;
const VERSION_FLAG = 1;
const PATH_BENEATH = 1;
const NO_NEW_PRIVILEGES = 38;
const DROP_CAPABILITY = 24;
const O_PATH_CLOEXEC = 0o10000000 | 0o2000000;
const O_DIRECTORY = Deno.build.arch === "aarch64" ? 0o40000 : 0o200000;
const SIGPIPE = 13, DEFAULT = 0n;

// Access rights of <linux/landlock.h>.
const EXECUTE = 1n << 0n, WRITE_FILE = 1n << 1n, READ_FILE = 1n << 2n, READ_DIR = 1n << 3n;
const MAKE_DEVICES = 1n << 6n | 1n << 11n;
const TRUNCATE = 1n << 14n, IOCTL_DEVICE = 1n << 15n;
const FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;
const ALL = (1n << 16n) - 1n;
const READ = EXECUTE | READ_FILE | READ_DIR | IOCTL_DEVICE;
/** CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETGID and SETUID; root loses all others. */
const ROOT_CAPABILITIES = [0, 1, 3, 4, 6, 7];
/** No signals to processes outside, no abstract sockets of theirs. */
const SCOPES = 0b11n;

function version(): number {
  const found = Number(libc.syscall(CREATE_RULESET, null, 0n, VERSION_FLAG));
  return Math.max(0, found);
}

function confine({ read, write }: Omit<LandlockRules, "env">): void {
  const attributes = new BigUint64Array([ALL, 0n, SCOPES]);
  const size = BigInt(attributes.byteLength);
  const ruleset = Number(
    libc.syscall(CREATE_RULESET, new Uint8Array(attributes.buffer), size, 0),
  );
  if (ruleset < 0) throw new Error("landlock_create_ruleset failed");
  const allow = (path: string, access: bigint) => {
    const opened = libc.open(text(path), O_PATH_CLOEXEC | O_DIRECTORY);
    const folder = opened >= 0;
    const file = folder ? opened : libc.open(text(path), O_PATH_CLOEXEC);
    if (file < 0) return; // gone since the rules were made
    const rule = new DataView(new ArrayBuffer(12));
    rule.setBigUint64(0, (folder ? access : access & FILE_RIGHTS) & ALL, true);
    rule.setInt32(8, file, true);
    const failed = Number(
      libc.add_rule(ADD_RULE, ruleset, PATH_BENEATH, new Uint8Array(rule.buffer), 0),
    );
    libc.close(file);
    if (failed < 0) throw new Error(`landlock_add_rule failed for ${path}`);
  };
  allow("/", READ_DIR); // the names of hidden files can be listed, their contents cannot be read
  for (const path of read) allow(path, READ);
  for (const path of write) allow(path, ALL & ~MAKE_DEVICES);
  for (let capability = 0; capability < 64; capability++) {
    // Fails for a user other than root, who has none, and beyond the last one.
    if (!ROOT_CAPABILITIES.includes(capability)) {
      libc.prctl(DROP_CAPABILITY, BigInt(capability), 0n, 0n, 0n);
    }
  }
  if (libc.prctl(NO_NEW_PRIVILEGES, 1n, 0n, 0n, 0n) !== 0) throw new Error("prctl failed");
  if (Number(libc.restrict(RESTRICT_SELF, ruleset, 0)) !== 0) {
    throw new Error("landlock_restrict_self failed");
  }
}

/** A C string. */
function text(value: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${value}\0`);
}

/** Replaces this process. Returns only when the program, an absolute path, cannot be started. */
function become(command: string[]): void {
  libc.signal(SIGPIPE, DEFAULT); // Deno ignores it, which a program would inherit
  const words = command.map(text);
  const list = new BigUint64Array([
    ...words.map((word) => Deno.UnsafePointer.value(Deno.UnsafePointer.of(word))),
    0n,
  ]);
  libc.execv(words[0]!, new Uint8Array(list.buffer));
}

/** Runs the helper; see above. */
export function landlock([rules = "{}", ...command]: string[]): void {
  if (command.length === 0) {
    Deno.stdout.writeSync(text(String(version())).subarray(0, -1));
    return;
  }
  try {
    const { env, ...paths }: LandlockRules = JSON.parse(rules);
    confine(paths);
    for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
    become(command);
    throw new Error(`cannot start ${command[0]}`);
  } catch (error) {
    Deno.stderr.writeSync(new TextEncoder().encode(`svc: ${(error as Error).message}\n`));
    Deno.exit(126);
  }
}

if (import.meta.main) landlock(Deno.args);
