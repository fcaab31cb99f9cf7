import { denoPort } from "../../../src/repl/input/terminal.ts";
import { History } from "../../../src/repl/input/history.ts";
import { Input } from "../../../src/repl/input/input.ts";

// Reads messages and says what it got; `turn` works until Ctrl-C, `key` asks for something hidden.
const input = new Input({ port: denoPort(), history: new History(Deno.args[0]) });
const say = (text: string) => input.announce(`got ${text}`);
const complete = (line: string) => ({
  from: 0,
  candidates: [{ text: "/help", description: "shows help" }, { text: "/history" }]
    .filter(({ text }) => text.startsWith(line)),
});

for (const signal of ["SIGTERM", "SIGHUP"] as const) {
  Deno.addSignalListener(signal, () => {
    input.restore();
    Deno.exit(143);
  });
}

while (true) {
  const result = await input.read({ prompt: "\x1b[32m>\x1b[0m ", complete });
  if (result.type !== "line") {
    say(result.type);
    if (result.type === "end") break;
  } else if (result.text === "turn") {
    const stopped = Promise.withResolvers<void>();
    const watch = input.watch({ interrupt: stopped.resolve });
    say("a turn");
    await stopped.promise;
    watch.stop();
    say("an interrupt");
  } else if (result.text === "key") {
    const key = await input.read({ prompt: "key: ", hidden: true });
    say(`${key.type === "line" ? key.text.length : 0} hidden characters`);
  } else if (result.text === "pid") say(`process ${Deno.pid}.`);
  else if (result.text === "boom") throw closing(new Error("boom"));
  else say(JSON.stringify(result.text));
}
input.close();
Deno.exit(0);

function closing(error: Error): Error {
  input.close();
  return error;
}
