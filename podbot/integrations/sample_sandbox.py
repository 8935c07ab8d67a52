"""One sandbox of an evaluation: commands as any user, and files. Knows no harness; its calls block."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import podbot
from podbot.errors import CommandSurvived, InvalidCommand, InvalidWorkingDirectory
from podbot.integrations import file_scripts
from podbot.integrations.sample_settings import SampleSettings

_LOG = logging.getLogger("podbot")
NO_LIMIT = 20 * 86400.0  # seconds of a command without a time limit; the milliseconds fit into what poll(2) takes
_FILE_SECONDS = 600.0
_SETUP_SECONDS = 60.0
_STDIN = 1 << 30  # bytes
_CANNOT_RUN = 126  # as shells and engines report a command that could not be started
_PEEK = 1 << 16
_UNPACK = 'mkdir -p -- "$1" && exec tar -xf - -C "$1"'
_MAKE = '[ -d "$1" ] || { mkdir -p -- "$1" && chown -- "$2" "$1"; }'
_WHO_AND_WHERE = "id -u; readlink /proc/1/cwd"  # the container's main process runs in the image's working directory


class TooMuchOutput(Exception):
    """A file, or what a command prints, is larger than the caller's limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes")
        self.limit = limit


class TimedOut(Exception):
    """A command exceeded its time limit and was terminated. ``output``: what it had printed, first bytes."""

    def __init__(self, seconds: float, output: bytes = b"") -> None:
        super().__init__(f"the command exceeded its time limit of {seconds:g} s and was terminated")
        self.output = output


@dataclass(frozen=True)
class CommandOutcome:
    """A command that ended. ``code``: its status, 128 + the number of a signal that ended it; 126 and 127 if it could
    not be started. ``truncated``: a stream was longer than the caller's limit, and its rest is missing.
    ``not_permitted``: the sandbox did not let this user execute the program itself."""

    code: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    not_permitted: bool = False


class SampleSandbox:
    """An open sandbox. Any thread may call it, several at once. Every call raises ContainerError and ChannelLost.

    ``working_dir``: the directory of relative paths, inside.
    """

    def __init__(self, box: podbot.Sandbox, settings: SampleSettings, close: Callable[[], None]) -> None:
        """See :meth:`open`. ``close``: removes ``box``."""
        self._box, self._settings, self._close = box, settings, close
        self._shells: dict[tuple[str, int], podbot.PodmanShell] = {}
        self._lock = threading.Lock()
        self.working_dir = "/"
        self.working_dir = self._made_directory()

    @classmethod
    def open(cls, settings: SampleSettings, name: str, environ: Mapping[str, str] | None = None) -> Self:
        """Start a sandbox. Raises ConfigError, ContainerError, SessionError and FilesystemError subclasses."""
        environ = os.environ if environ is None else environ
        config = podbot.load_config(podbot.LoadOptions(environ=environ, overrides=settings.overrides()))
        request = podbot.LaunchRequest(name=name)
        stack = contextlib.ExitStack()
        try:
            box = stack.enter_context(podbot.sandbox(config, request, environ=environ, emit=log_event))
            return cls(box, settings, stack.close)
        except BaseException:
            stack.close()
            raise

    @property
    def box(self) -> podbot.Sandbox:
        """The sandbox itself."""
        return self._box

    @property
    def name(self) -> str:
        """The session's name."""
        return self._box.name

    def is_running(self) -> bool:
        """Whether its container is running."""
        return self._box.is_running()

    def run(
        self,
        words: Sequence[str],
        *,
        stdin: bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
        limit: int,
    ) -> CommandOutcome:
        """Run a command to its end; one that cannot be started is a result, with the reason on stderr.

        ``user``: None is the settings'. ``limit``: bytes that are kept of each stream. Raises TimedOut, after all its
        processes have ended, and ValueError for variables and an input that no command can have.
        """
        try:
            result = self._shell(self._settings.user if user is None else user, limit).execute_bytes(
                words, cwd=self.resolve(cwd or "."), env=env, stdin=stdin, timeout_seconds=_seconds(timeout)
            )
        except InvalidWorkingDirectory as exc:
            return _not_started(f"{exc.path}: {exc.reason}")
        except InvalidCommand as exc:
            if exc.field not in ("command", "user", "cwd"):
                raise
            about = f"unable to find user {user}: " if exc.field == "user" else ""
            return _not_started(f"{about}{exc.limit}")
        except CommandSurvived as exc:
            if timeout is None:
                raise
            raise TimedOut(timeout) from exc
        if result.timed_out:
            raise TimedOut(timeout or NO_LIMIT, result.stdout + result.stderr)
        denied = result.exit_code == _CANNOT_RUN and not result.stdout and _denied(words[0], result.stderr)
        return CommandOutcome(result.exit_code, result.stdout, result.stderr, result.truncated, denied)

    def copy_out(
        self, words: Sequence[str], write: Callable[[bytes], object], *, user: str, limit: int
    ) -> CommandOutcome:
        """Run a command whose stdout is passed to ``write`` in pieces. Raises TooMuchOutput, TimedOut, and ValueError.

        ``limit``: bytes of stdout, over which the command is terminated.
        """
        messages, size = bytearray(), 0
        shell = self._shell(user, _PEEK)
        env = file_scripts.ENVIRONMENT
        with shell.stream(words, cwd="/", env=env, timeout_seconds=_FILE_SECONDS) as stream:
            for chunk in stream:
                if chunk.stream == "stderr":
                    messages += chunk.data[: _PEEK - len(messages)]
                    continue
                size += len(chunk.data)
                if size > limit:
                    raise TooMuchOutput(limit)
                write(chunk.data)
            result = stream.result
        if result.timed_out:
            raise TimedOut(_FILE_SECONDS)
        return CommandOutcome(result.exit_code, b"", bytes(messages))

    def read(self, file: str, limit: int) -> bytes:
        """A file's content. Raises FileNotFoundError, IsADirectoryError, PermissionError, TimedOut, TooMuchOutput."""
        # Room for messages, too: the limit of the command is that of each stream.
        done = self._file_command(file_scripts.read_command(self.resolve(file), limit + 1), max(limit + 1, _PEEK))
        if done.code:
            raise file_scripts.read_error(file, done.code, _text(done.stderr))
        if done.truncated or len(done.stdout) > limit:
            raise TooMuchOutput(limit)
        return done.stdout

    def write(self, file: str, data: bytes) -> None:
        """Replace a file's content; makes the directories of its path. Raises IsADirectoryError, PermissionError,
        NotADirectoryError, TimedOut, and OSError."""
        done = self._file_command(file_scripts.write_command(self.resolve(file)), _PEEK, data)
        if done.code:
            raise file_scripts.write_error(file, done.code, _text(done.stderr))

    def unpack(self, archive: bytes, directory: str, *, user: str | None = None) -> CommandOutcome:
        """Extract a tar archive below a directory, which is made. ``user``: as for :meth:`run`. Raises TimedOut."""
        words = [file_scripts.SHELL, "-c", _UNPACK, "sh", self.resolve(directory)]
        return self.run(words, stdin=archive, cwd="/", user=user, limit=_PEEK)

    def resolve(self, path: str) -> str:
        """An absolute path inside; a relative one begins in the working directory."""
        return posixpath.join(self.working_dir, path)

    def close(self) -> None:
        """End its commands and its connections, and remove it."""
        with self._lock:
            shells = [self._shells.pop(key) for key in [*self._shells]]
        for shell in shells:
            shell.close()
        self._close()

    def _file_command(self, words: list[str], limit: int, data: bytes | None = None) -> CommandOutcome:
        env = file_scripts.ENVIRONMENT
        return self.run(words, stdin=data, cwd="/", env=env, timeout=_FILE_SECONDS, limit=limit)

    def _shell(self, user: str, limit: int) -> podbot.PodmanShell:
        with self._lock:
            shell = self._shells.get((user, limit))
            if shell is None:
                limits = podbot.ShellLimits(
                    default_timeout=NO_LIMIT, max_timeout=NO_LIMIT, command_chars=4 << 20, stdin_bytes=_STDIN,
                    env_variables=4096, env_bytes=2 << 20, bytes_output=limit,
                )  # fmt: skip
                shell = self._box.open_shell(root="/", user=user, limits=limits, validator=None)
                self._shells[user, limit] = shell
            return shell

    def _made_directory(self) -> str:
        """The working directory; one that the settings name is made and given to their user."""
        found = self._setup_command([file_scripts.SHELL, "-c", _WHO_AND_WHERE])
        uid, _, image_directory = _text(found.stdout).strip().partition("\n")
        wanted = self._settings.working_dir
        if wanted is None:
            return image_directory if image_directory.startswith("/") else "/"
        # By root, because the parent directory may be root's.
        make = [file_scripts.SHELL, "-c", _MAKE, "sh", wanted, self._settings.user or uid]
        done = self._setup_command(make, user="" if uid == "0" else "root")
        if done.code:
            raise file_scripts.write_error(wanted, done.code, _text(done.stderr))
        return wanted

    def _setup_command(self, words: list[str], user: str = "") -> CommandOutcome:
        env = file_scripts.ENVIRONMENT
        return self.run(words, cwd="/", env=env, user=user, timeout=_SETUP_SECONDS, limit=_PEEK)


def _seconds(timeout: float | None) -> float:
    return NO_LIMIT if timeout is None else min(max(timeout, podbot.ShellLimits().min_timeout), NO_LIMIT)


def _denied(program: str, stderr: bytes) -> bool:
    """Whether the one message is that the program itself may not be executed: the guest's, or that of the shell that
    starts commands where there is no guest. A program can print the same; that harms nothing but its own result."""
    said = _text(stderr).rstrip("\n")
    if said.lower() == f"{program[:200]}: permission denied".lower():
        return True
    return re.fullmatch(rf"\S*sh: .*exec: .*{re.escape(program)}: Permission denied", said) is not None


def _not_started(reason: str) -> CommandOutcome:
    return CommandOutcome(_CANNOT_RUN, b"", reason.encode("utf-8", "replace"))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def log_event(event: podbot.Event) -> None:
    """An event of a sandbox, as a record of the logger ``podbot``."""
    level = {"warning": logging.WARNING, "notice": logging.INFO}.get(event.level, logging.DEBUG)
    _LOG.log(level, "%s", event.message)
