/**
 * Remembers what the built-in objects hold, so that what a plugin changes can be undone. Properties that are
 * new on an object which is no prototype are let be: that is how a module shares something with itself.
 *
 * @returns undoes the changes since, and names them.
 */
export function watchGlobals(): () => string[] {
  const { defineProperty, deleteProperty, getOwnPropertyDescriptor } = Reflect;
  const { is } = Object;
  const before: Property[] = [];
  const prototypes: { name: string; object: object; keys: Set<PropertyKey> }[] = [];
  for (const { name, object } of watched()) {
    const keys: readonly PropertyKey[] = name === "" ? GLOBALS : Reflect.ownKeys(object);
    for (const key of keys) {
      const was = getOwnPropertyDescriptor(object, key);
      if (was !== undefined) before[before.length] = { name, object, key, was };
    }
    if (name.endsWith(".prototype")) prototypes.push({ name, object, keys: new Set(keys) });
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
    for (const { name, object, keys } of prototypes) {
      for (const key of Reflect.ownKeys(object)) {
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

function watched(): { name: string; object: object }[] {
  const found: { name: string; object: object }[] = [{ name: "", object: globalThis }];
  for (const name of OBJECTS) {
    const object = (globalThis as Record<string, unknown>)[name];
    if (typeof object !== "object" && typeof object !== "function" || object === null) continue;
    found.push({ name, object });
    const { prototype } = object as { prototype?: unknown };
    if (typeof prototype === "object" && prototype !== null) {
      found.push({ name: `${name}.prototype`, object: prototype });
    }
  }
  return found;
}

/** What the program itself works with. */
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
  "Promise",
  "Map",
  "Set",
  "WeakMap",
  "WeakSet",
  "JSON",
  "Math",
  "Reflect",
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
  "crypto",
  "console",
  "Deno",
] as const;

/** Others are the runtime's to change: modules of Node do, when they are imported. */
const GLOBALS = [
  ...OBJECTS,
  "fetch",
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "queueMicrotask",
  "structuredClone",
  "addEventListener",
  "removeEventListener",
  "atob",
  "btoa",
] as const;
