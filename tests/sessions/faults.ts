/** A fault of one call that changes a file. */
export type Fault =
  /** The process dies in it, `share` of a write done; nothing it does later has an effect. */
  | { kind: "death"; share: number }
  /** The disk is full for this write and the next ones, `share` of this one done. */
  | { kind: "full"; share: number; writes: number };

/**
 * Runs `body` with a fault in the `step`th call that changes a file, counted from 1. Then closes its files, as
 * the kernel does when a process ends.
 *
 * @returns the number of such calls
 */
export async function withFault(
  step: number,
  fault: Fault,
  body: () => Promise<void>,
): Promise<number> {
  const { writeSync, truncateSync } = Deno.FsFile.prototype;
  const { openSync, renameSync, removeSync } = Deno;
  const opened: Deno.FsFile[] = [];
  let calls = 0;
  let dead = false;
  let full = 0;
  const count = (): boolean => {
    if (dead) throw new Error("dead");
    calls++;
    if (calls === step && fault.kind === "death") return dead = true;
    return false;
  };
  Deno.FsFile.prototype.writeSync = function (data) {
    const dying = count();
    if (calls === step && fault.kind === "full") full = fault.writes;
    const short = dying || full > 0;
    if (!short) return writeSync.call(this, data);
    const share = calls === step ? fault.share : 0;
    if (full > 0) full--;
    const some = data.subarray(0, Math.floor(data.length * share));
    if (some.length > 0) writeSync.call(this, some);
    throw dying ? new Error("dead") : new Error("No space left on device (os error 28)");
  };
  Deno.FsFile.prototype.truncateSync = function (length) {
    if (count()) throw new Error("dead");
    truncateSync.call(this, length);
  };
  Deno.openSync = (path, options) => {
    if (options?.createNew && count()) throw new Error("dead");
    const file = openSync(path, options);
    opened.push(file);
    return file;
  };
  Deno.renameSync = (from, to) => {
    if (count()) throw new Error("dead");
    renameSync(from, to);
  };
  Deno.removeSync = (path, options) => {
    if (count()) throw new Error("dead");
    removeSync(path, options);
  };
  try {
    await body();
  } finally {
    Deno.FsFile.prototype.writeSync = writeSync;
    Deno.FsFile.prototype.truncateSync = truncateSync;
    Object.assign(Deno, { openSync, renameSync, removeSync });
    for (const file of opened) {
      try {
        // Not left to close: a program that another test starts at this instant inherits the file.
        file.unlockSync();
        file.close();
      } catch {
        // closed already
      }
    }
  }
  return calls;
}
