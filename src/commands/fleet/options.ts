import { argument, command, constant, option } from "@optique/core/primitives";
import { object, or } from "@optique/core/constructs";
import { multiple, optional, withDefault } from "@optique/core/modifiers";
import { choice, integer, string } from "@optique/core/valueparser";
import { says } from "../command.ts";
import { pathOption } from "../options.ts";

const output = withDefault(
  option("--output", choice(["text", "json"]), { description: says("text (default) or json.") }),
  "text",
);
const path = { path: pathOption };
const common = { output, path: pathOption };
const name = argument(string({ metavar: "NAME" }), { description: says("The agent.") });
const text = (flag: `--${string}`, metavar: "TEXT" | "NAME" | "REF", description: string) =>
  optional(option(flag, string({ metavar }), { description: says(description) }));

const init = command("init", object({ action: constant("init"), ...common }), {
  description: says("Put every folder below that holds .svc/config.json into the roster."),
});
const add = command(
  "add",
  object({
    action: constant("add"),
    name,
    dir: option("--dir", string({ metavar: "DIR" }), {
      description: says("The agent's folder, relative to where you are."),
    }),
    port: optional(option("--port", integer({ min: 1, max: 65535, metavar: "PORT" }), {
      description: says("The port it prefers; default: the first free one from 8780."),
    })),
    max_restarts: optional(option("--max-restarts", integer({ min: 0, metavar: "N" }), {
      description: says("Failures in a row after which it is left alone; 0: never. Default: 10."),
    })),
    command: optional(option("--command", string({ metavar: "COMMAND" }), {
      description: says("What to run in place of svc serve; {port} and {dir} are filled in."),
    })),
    ...common,
  }),
  { description: says("Add an agent to the roster.") },
);
const remove = command("remove", object({ action: constant("remove"), name, ...common }), {
  description: says("Remove an agent from the roster; it is stopped, its folder stays."),
});
const enable = command("enable", object({ action: constant("enable"), name, ...common }), {
  description: says("Have an agent run; one that has crashed is tried again."),
});
const disable = command("disable", object({ action: constant("disable"), name, ...common }), {
  description: says("Stop an agent, and keep it down."),
});

const config = command(
  "config",
  object("The agent's settings", {
    action: constant("config"),
    name,
    provider: text("--provider", "NAME", "The model provider."),
    model: text("--model", "REF", "A model, or <provider>/<model>, which is thereby approved."),
    mode: text("--mode", "NAME", "build, plan, or a mode of its configuration."),
    system_prompt: text("--system-prompt", "TEXT", "Its system prompt."),
    tools_deny: multiple(option("--tools-deny", string({ metavar: "NAME" }), {
      description: says("A tool that it may not use; may be repeated."),
    })),
    tool_permission: multiple(option("--tool-permission", string({ metavar: "CATEGORY=ACTION" }), {
      description: says("allow, ask or deny for a category of tools; may be repeated."),
    })),
    role: text("--role", "NAME", "Take over prompt, model and tool permissions of a role."),
    approve_model: option("--approve-model", {
      description: says("Approve the model that the role refers to."),
    }),
    ...common,
  }),
  {
    description: says(
      "Write what you pass, and nothing else, into the agent's .svc/config.json; comments stay.",
    ),
  },
);

const up = command(
  "up",
  object({
    action: constant("up"),
    detach: option("--detach", { description: says("Supervise in the background.") }),
    port: optional(option("--port", integer({ min: 0, max: 65535, metavar: "PORT" }), {
      description: says("Answer GET /agents and /metrics on this port; 0 takes a free one."),
    })),
    sweep: withDefault(
      option("--sweep", integer({ min: 1, metavar: "SECONDS" }), {
        description: says("Seconds between two looks at every agent; default: 2."),
      }),
      2,
    ),
    unhealthy_threshold: withDefault(
      option("--unhealthy-threshold", integer({ min: 1, metavar: "N" }), {
        description: says("Failed health probes in a row that end an agent; default: 2."),
      }),
      2,
    ),
    grace: withDefault(
      option("--grace", integer({ min: 0, metavar: "SECONDS" }), {
        description: says("Seconds that an agent has to end its turns when stopped; default: 35."),
      }),
      35,
    ),
    ...path,
  }),
  { description: says("Keep every enabled agent running until interrupted.") },
);
const down = command("down", object({ action: constant("down"), ...path }), {
  description: says("Stop the supervisor and every agent, also those that one has left behind."),
});
const status = command(
  "status",
  object({
    action: constant("status"),
    watch: option("--watch", { description: says("Show it again every two seconds.") }),
    ...common,
  }),
  { description: says("Show every agent in one line.") },
);
const restart = command(
  "restart",
  object({
    action: constant("restart"),
    name: withDefault(
      argument(string({ metavar: "NAME" }), {
        description: says("The agent; all (default): every one."),
      }),
      "all",
    ),
    ...path,
  }),
  { description: says("Stop an agent, forget its failures, and start it again.") },
);
const logs = command(
  "logs",
  object({
    action: constant("logs"),
    name,
    count: withDefault(
      argument(integer({ min: 0, metavar: "N" }), { description: says("Lines; default: 50.") }),
      50,
    ),
    follow: option("-f", "--follow", { description: says("Go on with what is added.") }),
    ...path,
  }),
  { description: says("Show the end of an agent's log.") },
);
const chat = command(
  "chat",
  object({
    action: constant("chat"),
    name,
    prompt: optional(argument(string({ metavar: "PROMPT" }), {
      description: says("What to say; - or nothing reads it from standard input."),
    })),
    session: text("--session", "NAME", "Go on in this session of the agent, or create it."),
    ...common,
  }),
  { description: says("Have an agent run one turn, and print its answer.") },
);
const exported = command(
  "export",
  object({
    action: constant("export"),
    format: argument(choice(["compose", "systemd"], { metavar: "FORMAT" }), {
      description: says("compose, or systemd."),
    }),
    user: text("--user", "NAME", "systemd: a unit of the system that runs as this user."),
    ...path,
  }),
  { description: says("Print a file for docker compose, or a systemd unit.") },
);

/** All of `svc fleet`. */
export const fleetParser = command(
  "fleet",
  or(
    or(init, add, remove, enable, disable, config),
    or(up, down, status, restart, logs),
    or(chat, exported),
  ),
  { description: says("Many agents, each in a folder of its own, under one supervisor.") },
);
