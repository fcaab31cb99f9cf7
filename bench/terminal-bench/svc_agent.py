"""svc as an agent of Harbor, the harness of Terminal-Bench; README.md says how to run it."""

import json
import os
import shlex
from pathlib import Path
from typing import override

from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

PROGRAM = "/usr/local/bin/svc"
RESULT = "svc.json"


class Svc(BaseInstalledAgent):
    """Installs svc in the container of a task, and runs ``svc run`` there.

    Args (``--agent-kwarg NAME=VALUE``):
        executable: The executable of svc, for the platform of the containers. Default: ``dist/svc``.
        base_url: The address of the model's backend. Default: that of the provider in ``--model``.
        key_env: The variable of this machine's environment that holds the backend's key. Default:
            ``SVC_BENCH_KEY``. A backend at a ``base_url`` may need none.
        settings: Settings of svc as a JSON object, such as ``{"reasoning": "high"}``.
        arguments: Further arguments of ``svc run``, such as ``--max-cost 2``.
    """

    def __init__(
        self,
        *args,
        executable: str | None = None,
        base_url: str = "",
        key_env: str = "SVC_BENCH_KEY",
        settings: dict | str | None = None,
        arguments: str = "",
        **kwargs,
    ):
        super().__init__(*args, **kwargs)
        if not self.model_name or "/" not in self.model_name:
            raise ValueError("Name the model as <provider>/<model>, by --model.")
        default = Path(__file__).resolve().parents[2] / "dist" / "svc"
        self._executable = Path(executable) if executable else default
        if not self._executable.is_file():
            raise FileNotFoundError(f"{self._executable} is missing; build it with ./compile.sh")
        self._base_url = base_url
        self._key = os.environ.get(key_env, "")
        if not self._key and not base_url:
            raise ValueError(f"The variable {key_env} is not set.")
        given = json.loads(settings) if isinstance(settings, str) else settings or {}
        # The container is the sandbox; the harness limits the time.
        self._settings = {"sandbox.mode": "off", "unattended_timeout": 0, **given}
        self._arguments = arguments

    @staticmethod
    @override
    def name() -> str:
        return "svc"

    @override
    def get_version_command(self) -> str | None:
        return f"{PROGRAM} --version"

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        await environment.upload_file(self._executable, PROGRAM)
        await self.exec_as_root(environment, command=f"chmod 755 {PROGRAM}")
        for name, value in self._settings.items():
            words = [PROGRAM, "config", "set", "--global", name, json.dumps(value)]
            await self.exec_as_agent(environment, command=shlex.join(words))
        provider = self.model_name.split("/", 1)[0]
        target = [self._base_url, provider] if self._base_url else [provider]
        connect = shlex.join([PROGRAM, "connect", "--key-only", *target])
        if self._key:
            command = f'printf %s "$SVC_BENCH_KEY" | {connect}'
            await self.exec_as_agent(environment, command=command, env={"SVC_BENCH_KEY": self._key})
        else:
            await self.exec_as_agent(environment, command=f"{connect} --no-key --force")

    @override
    @with_prompt_template
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        result = (self.environment_logs_dir / RESULT).as_posix()
        words = [PROGRAM, "run", "--yes", "--model", self.model_name, "--result", result, "--verbose"]
        command = f"{shlex.join(words)} {self._arguments} -p {shlex.quote(instruction)}"
        log = shlex.quote((self.environment_logs_dir / "svc.log").as_posix())
        await self.exec_as_agent(environment, command=f"{command} < /dev/null > {log} 2>&1")

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        try:
            result = json.loads((self.logs_dir / RESULT).read_text())
        except (OSError, ValueError):
            return  # the turn was ended before it had a result
        usage = result["total_usage"]
        context.n_input_tokens = usage.get("prompt_tokens")
        context.n_output_tokens = usage.get("completion_tokens")
        context.n_cache_tokens = usage.get("cached_tokens")
        context.cost_usd = result["cost"]
        context.metadata = {
            "status": result["status"],
            "reason": result["reason"],
            "tool_calls": len(result["tool_calls"]),
        }
