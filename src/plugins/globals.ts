/**
 * Remembers what the built-in objects hold, so that what a plugin changes can be undone. Properties that are
 * new on globalThis and its namespaces are let be: that is how a module shares something with itself.
 *
 * @returns undoes the changes since, and names them; may be called again and again.
 */
export function watchGlobals(): () => string[] {
  const { defineProperty, deleteProperty, getOwnPropertyDescriptor, ownKeys } = Reflect;
  const { is } = Object;
  const before: Property[] = [];
  const closed: { name: string; object: object; keys: Set<PropertyKey> }[] = [];
  for (const { name, object, closed: isClosed } of watched()) {
    const keys = Reflect.ownKeys(object);
    for (const key of keys) {
      if (object === globalThis && CHANGING.includes(key)) continue;
      const was = getOwnPropertyDescriptor(object, key);
      if (was !== undefined) before[before.length] = { name, object, key, was };
    }
    if (isClosed) closed.push({ name, object, keys: new Set(keys) });
  }
  return () => {
    const changed: Pick<Property, "name" | "key">[] = [];
    // Until this loop is over, any method and any iterator may be a plugin's.
    for (let i = 0; i < before.length; i++) {
      const { object, key, was } = before[i]!;
      const now = getOwnPropertyDescriptor(object, key);
      if (
        now !== undefined && is(now.value, was.value) && now.get === was.get && now.set === was.set
      ) continue;
      defineProperty(object, key, was);
      changed[changed.length] = before[i]!;
    }
    for (const { name, object, keys } of closed) {
      for (const key of ownKeys(object)) {
        if (keys.has(key)) continue;
        deleteProperty(object, key);
        changed.push({ name, key });
      }
    }
    return changed.map(({ name, key }) => name === "" ? String(key) : `${name}.${String(key)}`);
  };
}

interface Property {
  name: string;
  object: object;
  key: PropertyKey;
  was: PropertyDescriptor;
}

interface Watched {
  name: string;
  object: object;
  /** Whether nothing may be added to it. */
  closed: boolean;
}

/** The built-in objects that the program itself works with. */
export function watched(): Watched[] {
  const found: Watched[] = [{ name: "", object: globalThis, closed: false }];
  const add = (name: string, object: unknown, closed: boolean) => {
    if (typeof object !== "object" && typeof object !== "function" || object === null) return;
    found.push({ name, object, closed });
    if (typeof object !== "function") return;
    add(`${name}.prototype`, (object as { prototype?: unknown }).prototype, true);
  };
  for (const name of OBJECTS) add(name, (globalThis as Record<string, unknown>)[name], false);
  for (const [name, object] of Object.entries(INTRINSICS())) add(name, object, true);
  return found;
}

const OBJECTS = [
  "Object",
  "Function",
  "Array",
  "String",
  "Number",
  "Boolean",
  "Symbol",
  "BigInt",
  "Date",
  "RegExp",
  "Error",
  "TypeError",
  "RangeError",
  "Promise",
  "Map",
  "Set",
  "WeakMap",
  "WeakSet",
  "Iterator",
  "JSON",
  "Math",
  "Reflect",
  "Intl",
  "ArrayBuffer",
  "Uint8Array",
  "TextEncoder",
  "TextDecoder",
  "URL",
  "URLSearchParams",
  "Headers",
  "Request",
  "Response",
  "AbortController",
  "AbortSignal",
  "EventTarget",
  "ReadableStream",
  "WritableStream",
  "TransformStream",
  "performance",
  "crypto",
  "console",
  "Deno",
] as const;

/** Objects that no global name leads to. */
const INTRINSICS = (): Record<string, unknown> => {
  const above = (object: object): object => Object.getPrototypeOf(object);
  return {
    "%ArrayIteratorPrototype%": above([].values()),
    "%MapIteratorPrototype%": above(new Map().values()),
    "%SetIteratorPrototype%": above(new Set().values()),
    "%StringIteratorPrototype%": above(""[Symbol.iterator]()),
    "%RegExpStringIteratorPrototype%": above("".matchAll(/x/g)),
    "%GeneratorPrototype%": above(above(function* () {}())),
    "%AsyncGeneratorPrototype%": above(above(async function* () {}())),
    "%AsyncIteratorPrototype%": above(above(above(async function* () {}()))),
    "%AsyncFunction%": above(async () => {}).constructor,
    "%TypedArray%": above(Uint8Array),
    ...streams(["stdin", "stdout", "stderr"]),
    "Deno.FsFile": Deno.FsFile,
    "Deno.Command": Deno.Command,
  };
};

function streams(names: ("stdin" | "stdout" | "stderr")[]): Record<string, unknown> {
  return Object.fromEntries(names.flatMap((name): [string, unknown][] => [
    [`Deno.${name}`, Deno[name]],
    [`the class of Deno.${name}`, Object.getPrototypeOf(Deno[name])],
  ]));
}

/** The runtime's to change: modules of Node do, when they are imported. */
const CHANGING: readonly PropertyKey[] = ["Buffer", "MessageChannel", "MessagePort", "process"];
