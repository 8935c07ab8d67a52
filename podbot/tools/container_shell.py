"""The tool podman_shell: one container with a shell, started, used and stopped by one tool with actions."""

from __future__ import annotations

import threading
from typing import Literal, Protocol

from podbot.errors import InvalidWorkingDirectory
from podbot.shell.types import ExecutionResult, Shell
from podbot.tools.contract import AnyTool, Tool, ToolAnnotations, ToolContext, ToolResult
from podbot.tools.params import PodmanShellParams
from podbot.tools.paths import invalid
from podbot.tools.results import PodmanShellResult
from podbot.tools.shell_tools import exit_status
from podbot.tools.tool_failures import settled

Action = Literal["start", "exec", "stop"]


class ContainerShell(Protocol):
    """A container that is made when it is needed. It is used by one thread at a time."""

    @property
    def container_name(self) -> str:
        """Its name, known before it is started."""
        ...

    def start(self) -> Shell:
        """Its shell; starts it if it does not run. Raises ContainerError and other RuntimeError."""
        ...

    def stop(self) -> None:
        """Stop and remove it; nothing if there is none. Raises ContainerError and other RuntimeError."""
        ...


class ContainerShellTool:
    """``podman_shell`` on one container. Any thread may call it; the calls wait for each other.

    A command that does not end with exit code 0 is a result without success.
    """

    def __init__(self, container: ContainerShell) -> None:
        self._container = container
        self._lock = threading.Lock()

    def tools(self) -> tuple[AnyTool, ...]:
        """The tool."""
        return (
            Tool(
                name="podman_shell",
                description="Run shell commands in an isolated Podman container: start it, exec a command, stop it.",
                params_type=PodmanShellParams,
                result_type=PodmanShellResult,
                handler=self._podman_shell,
                annotations=ToolAnnotations(destructive=True),
            ),
        )

    def _podman_shell(self, params: PodmanShellParams, /, *, context: ToolContext) -> ToolResult[PodmanShellResult]:
        del context
        command = _command(params)
        if params.timeout_seconds is not None and params.action != "exec":
            raise invalid("timeout_seconds", params.timeout_seconds, f"{params.action} takes none")
        with self._lock:
            done = settled(lambda: self._act(params.action, command, params.timeout_seconds))
        if done.value is not None:
            return done
        failed = PodmanShellResult(params.action, self._container.container_name, None, done.message, None)
        return ToolResult.error(done.message, failed)

    def _act(self, action: Action, command: str, seconds: int | None) -> ToolResult[PodmanShellResult]:
        name = self._container.container_name
        if action == "stop":
            self._container.stop()
            return ToolResult.ok(PodmanShellResult(action, name, None, None, None), f"{name} is stopped.")
        shell = self._container.start()
        if action == "start":
            return ToolResult.ok(PodmanShellResult(action, name, None, None, None), f"{name} is running.")
        try:
            ran = shell.execute(command, timeout_seconds=None if seconds is None else float(seconds))
        except InvalidWorkingDirectory as error:  # the container's own: the tool has no parameter for it
            raise RuntimeError(str(error)) from error
        return _ended(name, ran)


def _command(params: PodmanShellParams) -> str:
    """The command of an ``exec``, empty for other actions. Raises ToolValidationError."""
    command = params.command or ""
    if params.action == "exec" and not command.strip():
        raise invalid("command", params.command, "exec needs a command")
    if params.action != "exec" and command.strip():
        raise invalid("command", params.command, f"{params.action} takes none", "Use the action exec to run it.")
    return command if params.action == "exec" else ""


def _ended(name: str, ran: ExecutionResult) -> ToolResult[PodmanShellResult]:
    message = f"The command ended with exit code {exit_status(ran)}."
    if ran.timed_out:
        message = f"The command exceeded its time limit and was terminated after {ran.duration_seconds:.1f} s."
    err = ran.stderr if ran.success or ran.stderr else message
    return ToolResult(message, PodmanShellResult("exec", name, ran.stdout, err, exit_status(ran)), ran.success)
