import { watched } from "./globals.ts";

/** The process is one, and guarded once. */
let guarded = false;

/**
 * Puts something that throws in the place of what ends the process, before the first module of a plugin runs, so
 * that a reference it keeps is to that; the program's own are older. What a plugin prints
 * with `console` goes to standard error from then on: standard output is the program's, and may be JSON. What it
 * changes of the built-in objects can be undone: nothing there can be made unchangeable any more.
 */
export function guardProcess(): void {
  if (guarded) return;
  guarded = true;
  put(Deno, "exit", refusing("exit")); // `process.exit` ends in it too
  put(globalThis, "close", refusing("close"));
  const { kill } = Deno;
  put(Deno, "kill", (pid: number, signal?: Deno.Signal) => {
    if ([Deno.pid, 0, 1].includes(Math.abs(pid))) refusing("kill")();
    kill(pid, signal);
  });
  const { error } = console;
  for (const name of ["log", "info", "debug", "dir", "dirxml"]) put(console, name, error);
  keepChangeable();
}

function keepChangeable(): void {
  const builtIn = new WeakSet(watched().map(({ object }) => object));
  const { apply } = Reflect;
  const { has } = WeakSet.prototype;
  const isBuiltIn = (object: unknown): boolean => apply(has, builtIn, [object]);
  for (const home of [Object, Reflect]) {
    const { defineProperty } = home;
    put(
      home,
      "defineProperty",
      (object: object, key: PropertyKey, property: PropertyDescriptor) => {
        const open = isBuiltIn(object) ? { ...property, configurable: true } : property;
        return defineProperty(object, key, open);
      },
    );
  }
  const { defineProperties, freeze, seal, preventExtensions } = Object;
  put(Object, "defineProperties", (object: object, properties: PropertyDescriptorMap) => {
    if (!isBuiltIn(object)) return defineProperties(object, properties);
    for (const key of Reflect.ownKeys(properties)) {
      Object.defineProperty(object, key, properties[key as string]!);
    }
    return object;
  });
  const shutting: Record<string, (object: unknown) => unknown> = {
    freeze,
    seal,
    preventExtensions,
  };
  for (const [name, shut] of Object.entries(shutting)) {
    put(Object, name, (object: unknown) => isBuiltIn(object) ? object : shut(object));
  }
  const { preventExtensions: prevent } = Reflect;
  put(Reflect, "preventExtensions", (object: object) => !isBuiltIn(object) && prevent(object));
}

function refusing(name: string): () => never {
  return () => {
    throw new Error(`it called ${name}, and a plugin does not end the program`);
  };
}

function put(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
