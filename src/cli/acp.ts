import { type Command, textOption, trustOption } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { nameOf } from "../commands/names.ts";
import { command, type InferValue } from "../commands/options.ts";

const parser = command("acp", {
  model: textOption("--model", nameOf("models", "REF"), "A model, or <provider>/<model>."),
  provider: textOption("--provider", nameOf("providers"), "The provider for this process."),
  mode: textOption(
    "--mode",
    nameOf("modes", "MODE"),
    "The mode that sessions begin in: build, plan, or one of your configuration.",
  ),
  role: textOption("--role", nameOf("roles"), "The role of new sessions; see `svc roles list`."),
  trust: trustOption,
}, "Serve an editor on standard input and output by the Agent Client Protocol.");

type AcpValues = InferValue<typeof parser>;

/** Loads the server of `src/acp/`. */
export type LoadAcp = () => Promise<(values: AcpValues, io: Io) => Promise<number>>;

/** `svc acp`: the agent of editors, in the folders that they open. */
export function acpCommand(load?: LoadAcp): Command<AcpValues> {
  return {
    parser,
    examples: ["svc acp", "svc acp --mode plan --model openai/gpt-5-mini"],
    async run(values, io) {
      return await (await load!())(values, io); // main.ts always passes it
    },
  };
}
