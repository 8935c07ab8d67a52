"""A shell for tests, which runs no commands."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from podbot.shell.call import Call, checked
from podbot.shell.requests import SHELL, program_of, root_of, script_of
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.types import Command, EnvironmentSnapshot, EnvMode, ExecutionResult, WhichResult
from podbot.shell.validator import CommandValidator


class MockShell:
    """A :class:`~podbot.shell.types.Shell` that returns prepared results and records its calls.

    It validates arguments as every shell does. ``execute_calls`` and ``script_calls``: (command or script, keyword
    arguments, with the time limit that applies) of each valid call. ``programs``: the name and path of each program
    that :meth:`which` finds. Any thread may call it.

    >>> shell = MockShell()
    >>> shell.add_response("make build", ExecutionResult(2, "", "no rule", ("make", "build"), "/", 0.1))
    >>> shell.execute(["make", "build"]).exit_code
    2
    """

    def __init__(
        self,
        *,
        default_result: ExecutionResult | None = None,
        programs: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        root: str = "/",
        limits: ShellLimits | None = None,
        validator: CommandValidator | None = None,
    ) -> None:
        self.execute_calls: list[tuple[Command, dict[str, Any]]] = []
        self.script_calls: list[tuple[str, dict[str, Any]]] = []
        self._default_result = default_result
        self._programs = dict(programs or {})
        self._variables = tuple((variables or {}).items())
        self._root = root_of(root)
        self._limits = limits or ShellLimits()
        self._validator = validator
        self._responses: dict[str, ExecutionResult | Exception] = {}
        self._lock = threading.Lock()

    def add_response(self, command_pattern: str, result: ExecutionResult | Exception) -> None:
        """Return ``result`` for commands that contain ``command_pattern``, or raise it if it is an exception.

        A command given as a sequence is compared as its words joined by spaces. The first pattern added that matches
        decides.
        """
        with self._lock:
            self._responses[command_pattern] = result

    def execute(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        stdin: str | None = None,
        timeout_seconds: float | None = None,
        capture_output: bool = True,
    ) -> ExecutionResult:
        """See :meth:`Shell.execute`."""
        given = {
            "cwd": cwd, "env": env, "env_mode": env_mode, "stdin": stdin, "timeout_seconds": timeout_seconds,
            "capture_output": capture_output,
        }  # fmt: skip
        call = self._checked(command, given)
        given["timeout_seconds"] = call.command.deadline
        with self._lock:
            self.execute_calls.append((command, given))
        return self._answer(" ".join(call.words), call)

    def execute_script(
        self,
        script: str,
        *,
        interpreter: str = "/bin/bash",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        timeout_seconds: float | None = None,
        capture_output: bool = True,
    ) -> ExecutionResult:
        """See :meth:`Shell.execute_script`; patterns are compared with the script."""
        script_of(script, self._limits)
        program = program_of("interpreter", interpreter)
        if self._validator is not None:
            self._validator.validate_script(script, program)
        given = {
            "interpreter": interpreter, "cwd": cwd, "env": env, "env_mode": env_mode,
            "timeout_seconds": timeout_seconds, "capture_output": capture_output,
        }  # fmt: skip
        call = self._checked([program], given)
        given["timeout_seconds"] = call.command.deadline
        with self._lock:
            self.script_calls.append((script, given))
        return self._answer(script, call)

    def which(self, command: str) -> WhichResult:
        """See :meth:`Shell.which`."""
        return WhichResult(command, self._programs.get(program_of("command", command)))

    def env(self) -> EnvironmentSnapshot:
        """See :meth:`Shell.env`."""
        return EnvironmentSnapshot(self._variables, self._root, SHELL)

    @property
    def backend_name(self) -> str:
        """Always "mock"."""
        return "mock"

    @property
    def sandboxed(self) -> bool:
        """Always true: no command runs, so none reaches this machine."""
        return True

    @property
    def network_enabled(self) -> bool:
        """Always false."""
        return False

    @property
    def default_timeout(self) -> float:
        """The time limit, in seconds, of a command whose caller names none."""
        return self._limits.default_timeout

    def _checked(self, command: Command, given: Mapping[str, Any]) -> Call:
        return checked(
            command,
            root=self._root,
            limits=self._limits,
            validator=self._validator,
            cwd=given["cwd"],
            env=given["env"],
            env_mode=given["env_mode"],
            stdin=given.get("stdin"),
            timeout=given["timeout_seconds"],
        )

    def _answer(self, text: str, call: Call) -> ExecutionResult:
        with self._lock:
            found = next((result for pattern, result in self._responses.items() if pattern in text), None)
        if isinstance(found, Exception):
            raise found
        default = ExecutionResult(0, "", "", call.words, call.command.cwd, 0.0)
        return found or self._default_result or default
