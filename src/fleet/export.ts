import { join, relative } from "node:path";
import { type Definition } from "./roster.ts";
import { PORTS } from "./ports.ts";
import { agentCommand } from "./agent_process.ts";

/** The path of an agent's folder in its container. */
const INSIDE = "/work";

/**
 * A file for `docker compose` with a service for each enabled agent. Each container gets the agent's folder and
 * the user's settings, and its port is published on this machine only. Compose replaces the supervisor.
 */
export function composeFile(agents: Definition[], worktree: string): string {
  const ports = fixedPorts(agents);
  const services = agents.map((agent, index) => service(agent, ports[index]!, worktree));
  return [
    "# Made by: svc fleet export compose. SVC_IMAGE names an image with svc as its entry point.",
    "# Inside its container an agent listens on every address (--insecure): what reaches it is decided by",
    '# "ports" below, and by who else is put on the network of this file.',
    services.length === 0 ? "services: {}" : "services:",
    ...services,
  ].join("\n") + "\n";
}

/** A systemd unit that keeps the supervisor of a worktree running. */
export function systemdUnit({ svc, worktree, home, user }: {
  /** The command line of svc. */
  svc: readonly string[];
  worktree: string;
  home: string;
  /** Left out: a unit for `systemctl --user`. */
  user?: string;
}): string {
  const command = [...svc, "fleet", "up", "--path", worktree].map(unitWord).join(" ");
  return `# Made by: svc fleet export systemd. It goes to ${
    user === undefined ? "~/.config/systemd/user" : "/etc/systemd/system"
  }/svc-fleet.service
[Unit]
Description=svc fleet supervisor
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
${user === undefined ? "" : `User=${user}\n`}WorkingDirectory=${unitPath(worktree)}
Environment=${quotedWord(`HOME=${unitPath(home)}`)}
ExecStart=${command}
# Agents outlive a supervisor that dies; the next one adopts them. Stopped, it stops them itself first.
KillMode=process
TimeoutStopSec=60
Restart=on-failure
RestartSec=5

[Install]
WantedBy=${user === undefined ? "default.target" : "multi-user.target"}
`;
}

function service(agent: Definition, port: number, worktree: string): string {
  const own = { svc: [], port, dir: INSIDE };
  const command = agent.command === undefined
    ? ["serve", "--host", "0.0.0.0", "--port", String(port), "--path", INSIDE, "--insecure"]
    : agentCommand(agent, own);
  const folder = relative(worktree, join(worktree, agent.dir));
  const source = agent.dir.startsWith("/") ? agent.dir : `./${folder}`;
  const restart = agent.max_restarts === 0 ? "unless-stopped" : `on-failure:${agent.max_restarts}`;
  return [
    `  ${quoted(agent.name)}:`,
    '    image: "${SVC_IMAGE:-svc}"',
    `    command: [${command.map(quoted).join(", ")}]`,
    `    environment: {SVC_PORT: ${quoted(String(port))}, SVC_PATH: ${quoted(INSIDE)}}`,
    `    working_dir: ${quoted(INSIDE)}`,
    `    ports: [${quoted(`127.0.0.1:${port}:${port}`)}]`,
    "    volumes:",
    `      - {type: bind, source: ${quoted(source)}, target: ${quoted(INSIDE)}}`,
    '      - {type: bind, source: "${HOME}/.config/svc", target: "/home/svc/.config/svc", read_only: true}',
    `    restart: ${quoted(restart)}`,
    "    init: true",
    "    stop_signal: SIGINT",
    "    stop_grace_period: 35s",
    "    healthcheck:",
    '      test: ["CMD", "svc", "health"]',
    "      interval: 10s",
    "      timeout: 2s",
    "      retries: 2",
    "      start_period: 60s",
  ].join("\n");
}

/** A port for each agent: the preferred one, else the next of the range. */
function fixedPorts(agents: Definition[]): number[] {
  const taken = new Set(agents.flatMap(({ prefer_port }) => prefer_port ?? []));
  const used = new Set<number>();
  return agents.map(({ prefer_port }) => {
    let port = prefer_port !== undefined && !used.has(prefer_port) ? prefer_port : PORTS.first;
    while (port !== prefer_port && (taken.has(port) || used.has(port))) port++;
    used.add(port);
    return port;
  });
}

/** A YAML string: JSON strings are valid YAML, and compose reads `$` as a variable. */
function quoted(text: string): string {
  return JSON.stringify(text.replaceAll("$", "$$$$"));
}

/** A word of a unit file's command line, with specifiers, variables and separators escaped. */
function unitWord(word: string): string {
  return quotedWord(unitPath(word).replaceAll("$", "$$$$"));
}

function quotedWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

/** A path in a unit file, with specifiers escaped. */
function unitPath(path: string): string {
  return path.replaceAll("%", "%%");
}
