"""The implementation that all real shells share; a ``Commands`` object runs the commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

from podbot.errors import InvalidCommand, ShellUnavailable
from podbot.guest.messages import Ended, GuestCommand
from podbot.launch.terminal_variables import USUAL, term_choices
from podbot.shell.call import Call, DiskFull, bytes_result, checked, text_result, unknown_disks
from podbot.shell.command_runner import CommandRunner
from podbot.shell.engine_scripts import MARK
from podbot.shell.jobs import ShellJob, state_of, unknown_job
from podbot.shell.output_budget import Kept, OutputBudget
from podbot.shell.output_stream import Stream, Terminal
from podbot.shell.reconnecting import CommandSource
from podbot.shell.requests import SHELL, program_of, root_of, script_of, size_of, user_of
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.types import (
    BytesResult,
    Command,
    EnvironmentSnapshot,
    EnvMode,
    ExecutionResult,
    JobState,
    WhichResult,
)
from podbot.shell.validator import CommandValidator

_PEEK_SECONDS = 30.0  # time limit of the short commands that the shell runs for itself
_PEEK_BYTES = 1 << 20
_NOTHING = Kept("", "", truncated=False)
# The interpreter reads the script from a pipe: no file has to be removed, a read-only disk is enough, and the script's
# stdin stays free.
_SCRIPT = 'exec "$0" /dev/fd/3 3<&0 </dev/null'
_WHICH = """
case $1 in */*) [ -f "$1" ] && [ -x "$1" ] && printf '%s' "$1" && exit 0; exit 1;; esac
IFS=:
for directory in $PATH; do
  path=${directory:-.}/$1
  [ -f "$path" ] && [ -x "$path" ] && printf '%s' "$path" && exit 0
done
exit 1
"""


class CommandShell:
    """A :class:`~podbot.shell.types.JobShell`. Any thread may call it, and several commands may run at once.

    ``where``: the container's name, or HOST, for messages. ``root``: an absolute path, the working directory of
    commands that name none; a command may only name a directory below it. ``user``: of the commands, ``USER`` or
    ``USER:GROUP``; empty is the backend's own. ``validator``: refuses commands; with None no command is refused.
    ``disk_full``: see Call.
    Leaving its ``with`` block closes the connection and nothing else. Raises InvalidWorkingDirectory for a relative
    ``root``, and InvalidCommand.
    """

    def __init__(
        self,
        connection: CommandSource,
        *,
        name: str,
        where: str,
        root: str,
        user: str = "",
        sandboxed: bool,
        network_enabled: bool,
        limits: ShellLimits | None = None,
        validator: CommandValidator | None = None,
        disk_full: DiskFull = unknown_disks,
    ) -> None:
        self._root = root_of(root)
        self._connection = connection
        self._runner = CommandRunner(self._connection, self._root)
        self._name = name
        self._where = where
        self._user = user_of(user)
        self._sandboxed = sandboxed
        self._network_enabled = network_enabled
        self._limits = limits or ShellLimits()
        self._validator = validator
        self._disk_full = disk_full
        self._has_shell = False  # known after the first check
        self._interpreters: set[str] = set()  # interpreters that exist

    # --- the four operations ----------------------------------------------------------------------

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
        """See :meth:`Shell.execute`. Raises InvalidCommand, InvalidWorkingDirectory, CommandBlocked, and
        ContainerError subclasses."""
        call = self._call(command, cwd, env, env_mode, timeout_seconds, stdin=stdin, discard=not capture_output)
        result = self._text(call)
        self._check_shell(command, result.exit_code)
        return result

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
        """See :meth:`Shell.execute_script`. The result's ``command`` is ``(interpreter,)``; the script's ``$0`` is
        ``/dev/fd/3``. Raises the same errors as :meth:`execute`, and InvalidCommand for a missing interpreter."""
        data = script_of(script, self._limits)
        program = program_of("interpreter", interpreter)
        if self._validator is not None:
            self._validator.validate_script(script, program)
        call = checked(
            [SHELL, "-c", _SCRIPT, program],
            root=self._root,
            limits=self._limits,
            validator=None,
            where=self._where,
            user=self._user,
            cwd=cwd,
            env=env,
            env_mode=env_mode,
            timeout=timeout_seconds,
            discard=not capture_output,
        )
        self._check_interpreter(program)
        asked = dataclasses.replace(call.command, stdin="open")
        return self._text(Call((program,), asked, data, self._where, self._disk_full))

    def which(self, command: str) -> WhichResult:
        """See :meth:`Shell.which`. Raises ShellUnavailable for an image without ``/bin/sh``."""
        name = program_of("command", command)
        ended, out = self._peek((SHELL, "-c", _WHICH, SHELL, name))
        if ended.code not in (0, 1):
            raise self._unavailable(f"looking up {name!a} needs {SHELL}, which is missing")
        path = out.decode("utf-8", "surrogateescape")
        return WhichResult(name, path if ended.code == 0 and path.startswith("/") else None)

    def env(self) -> EnvironmentSnapshot:
        """See :meth:`Shell.env`. Raises ShellUnavailable for an image without ``cat``."""
        ended, out = self._peek(("cat", "/proc/self/environ"))
        if ended.code != 0:
            raise self._unavailable("reading the variables needs cat, which is missing")
        entries = [entry.partition("=") for entry in out.decode("utf-8", "replace").split("\0") if "=" in entry]
        variables = tuple((name, value) for name, _, value in entries if name != MARK)
        return EnvironmentSnapshot(variables, self._root, SHELL)

    # --- further operations -------------------------------------------------------------------------

    def execute_bytes(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        stdin: bytes | None = None,
        timeout_seconds: float | None = None,
    ) -> BytesResult:
        """See :meth:`JobShell.execute_bytes`. Keeps the first MiB of each stream. Raises as :meth:`execute` does."""
        call = self._call(command, cwd, env, env_mode, timeout_seconds, stdin=stdin)
        ended, out, err = self._runner.run_for_bytes(call, self._limits.bytes_output)
        self._check_shell(command, ended.code)
        truncated = out.truncated or err.truncated
        return bytes_result(call, ended, out.data, err.data, truncated=truncated)

    def stream(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        stdin: bytes | None = None,
        timeout_seconds: float | None = None,
    ) -> Stream:
        """See :meth:`JobShell.stream`. Raises as :meth:`execute` does, also during the iteration."""
        call = self._call(command, cwd, env, env_mode, timeout_seconds, stdin=stdin)
        return Stream(call, self._runner.start_live)

    def start(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        timeout_seconds: float | None = None,
    ) -> ShellJob:
        """See :meth:`JobShell.start`; a job ends with its sandbox. Raises as :meth:`execute` does."""
        call = self._call(command, cwd, env, env_mode, timeout_seconds, endless=True)
        asked = dataclasses.replace(call.command, keep=self._limits.job_output_bytes)
        return ShellJob(self._connection, self._runner.start_job(asked))

    def job(self, ident: str) -> ShellJob:
        """See :meth:`JobShell.job`. Raises InvalidCommand."""
        if not (ident.isascii() and ident.isdigit() and len(ident) < 16):
            raise unknown_job(ident)
        found = ShellJob(self._connection, int(ident))
        found.poll()
        return found

    def jobs(self) -> tuple[JobState, ...]:
        """See :meth:`JobShell.jobs`."""
        with self._connection.use() as commands:
            return tuple(map(state_of, commands.jobs()))

    def terminal(
        self,
        command: Command,
        *,
        columns: int = 80,
        rows: int = 24,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        timeout_seconds: float | None = None,
    ) -> Terminal:
        """See :meth:`JobShell.terminal`. Raises as :meth:`execute` does."""
        call = self._call(command, cwd, env, env_mode, timeout_seconds, endless=True)
        with_term = {"TERM": USUAL, **call.command.env}
        choices = () if "TERM" in call.command.env else term_choices(USUAL)
        asked = dataclasses.replace(
            call.command, env=with_term, stdin="open", tty=size_of(columns, rows), term_choices=choices
        )
        return Terminal(dataclasses.replace(call, command=asked), self._runner.start_live)

    # --- metadata -----------------------------------------------------------------------------------

    @property
    def backend_name(self) -> str:
        """The backend that runs the commands: "podman" or "host"."""
        return self._name

    @property
    def sandboxed(self) -> bool:
        """Whether commands are isolated from this machine."""
        return self._sandboxed

    @property
    def network_enabled(self) -> bool:
        """Whether commands have a network."""
        return self._network_enabled

    @property
    def default_timeout(self) -> float:
        """The time limit, in seconds, of a command whose caller names none."""
        return self._limits.default_timeout

    @property
    def root(self) -> str:
        """The absolute path of the directory in which commands run."""
        return self._root

    def close(self) -> None:
        """Close the connection. A later call opens another."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- implementation -----------------------------------------------------------------------------

    def _call(
        self,
        command: Command,
        cwd: str | None,
        env: Mapping[str, str] | None,
        env_mode: EnvMode,
        timeout: float | None,
        *,
        stdin: str | bytes | None = None,
        endless: bool = False,
        discard: bool = False,
    ) -> Call:
        return checked(
            command,
            root=self._root,
            limits=self._limits,
            validator=self._validator,
            where=self._where,
            user=self._user,
            cwd=cwd,
            env=env,
            env_mode=env_mode,
            stdin=stdin,
            timeout=timeout,
            endless=endless,
            discard=discard,
            disk_full=self._disk_full,
        )

    def _text(self, call: Call) -> ExecutionResult:
        if call.command.discard:
            return text_result(call, self._runner.run(call, None), _NOTHING)
        budget = OutputBudget(self._limits.output_bytes)
        return text_result(call, self._runner.run(call, budget.take), budget.kept())

    def _peek(self, argv: tuple[str, ...]) -> tuple[Ended, bytes]:
        """Run a short command for the shell itself."""
        asked = GuestCommand(argv=argv, cwd=self._root, deadline=_PEEK_SECONDS, user=self._user)
        ended, out, _ = self._runner.run_for_bytes(Call(argv, asked, where=self._where), _PEEK_BYTES)
        return ended, out.data

    def _check_shell(self, command: Command, status: int) -> None:
        """Raise ShellUnavailable for a line that could not be run because there is no /bin/sh.

        Its status is then that of a program that is missing or cannot be executed, as of a line that ends so by itself.
        """
        if isinstance(command, str) and status in (126, 127) and not self._has_shell:
            ended, _ = self._peek((SHELL, "-c", ""))
            if ended.code != 0:
                raise self._unavailable(f"a command that is a string needs {SHELL}, which is missing")
            self._has_shell = True

    def _check_interpreter(self, program: str) -> None:
        if program in self._interpreters:
            return
        if not self.which(program).found:
            hint = "Name an interpreter that exists, such as interpreter='/bin/sh'."
            raise InvalidCommand(
                field="interpreter", value=ascii(program), limit="it does not exist, or cannot be executed", hint=hint
            )
        self._interpreters.add(program)

    def _unavailable(self, reason: str) -> ShellUnavailable:
        return ShellUnavailable(shell=self._name, reason=reason, hint="Use an image that has a shell and coreutils.")
