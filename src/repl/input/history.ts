/** The messages of this person, oldest first, kept across sessions in `~/.config/svc/history`. */
export class History {
  /** @param path the file; without one nothing is kept */
  constructor(readonly path?: string) {}
}
