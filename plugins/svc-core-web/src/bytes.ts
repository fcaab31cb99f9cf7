/** Bytes that come piece by piece, in one growing piece of memory: a million of one byte cost a million. */
export class Bytes {
  #all = new Uint8Array(64 * 1024);
  size = 0;

  add(piece: Uint8Array): void {
    if (this.size + piece.length > this.#all.length) {
      const larger = new Uint8Array(Math.max(this.#all.length * 2, this.size + piece.length));
      larger.set(this.#all.subarray(0, this.size));
      this.#all = larger;
    }
    this.#all.set(piece, this.size);
    this.size += piece.length;
  }

  /** What has come so far. */
  all(): Uint8Array<ArrayBuffer> {
    return this.#all.subarray(0, this.size);
  }
}
