/** Loaded before the test files: a test that hangs fails after ten minutes, and the others still run. */

type Body = Deno.TestDefinition["fn"];

const LIMIT = 600_000;
const { test } = Deno;

function limited(body: Body): Body {
  return async (context) => {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`no end after ${LIMIT / 1000} seconds`)),
      LIMIT,
    );
    try {
      await Promise.race([body(context), late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

const guard = (...args: unknown[]) => {
  const guarded = args.map((arg) =>
    typeof arg === "function"
      ? limited(arg as Body)
      : typeof arg === "object"
      ? { ...arg, ..."fn" in arg! && { fn: limited(arg.fn as Body) } }
      : arg
  );
  (test as (...args: unknown[]) => void)(...guarded);
};
Object.assign(Deno, { test: Object.assign(guard, test) });
