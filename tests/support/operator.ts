import type { AskRequest, Operator } from "../../src/policy/operator.ts";

/** An operator who answers every question the same, and remembers them. */
export function answering(
  answer: string | undefined,
): Operator & { readonly asked: AskRequest[] } {
  const asked: AskRequest[] = [];
  return {
    asked,
    confirm: () => Promise.reject(new Error("nothing is to be confirmed")),
    ask(request) {
      asked.push(request);
      return Promise.resolve(answer);
    },
  };
}
