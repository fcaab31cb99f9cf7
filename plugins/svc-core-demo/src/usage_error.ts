/** Wrong usage, told in one sentence; the program that hears of it is to end with `exit`. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly exit = 2;
  readonly code: string;
  readonly hint: string;

  constructor(code: string, message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}
