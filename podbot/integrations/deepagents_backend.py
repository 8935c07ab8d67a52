"""A sandbox as the backend of LangChain's deepagents: ``podbot.integrations.deepagents_backend.PodbotBackend``.

Needs ``podbot[langchain]``; without it the import raises ExtraUnusable.
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable

import podbot
from podbot.errors import CommandSurvived, ExtraUnusable, InvalidCommand, InvalidWorkingDirectory
from podbot.integrations.sample_sandbox import NO_LIMIT, SampleSandbox, TimedOut, TooMuchOutput
from podbot.integrations.sample_settings import SampleSettings
from podbot.shell.async_calls import AsyncCalls

try:
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox
except ImportError as exc:
    raise ExtraUnusable.of_import("langchain", "deepagents", exc) from exc

DEFAULT_SECONDS = 1800.0  # of a command for which the agent sets no limit; a build may take so long
OUTPUT = 1 << 20  # bytes that are kept of a command's output, its beginning and its end
FILE = 64 << 20  # bytes of a file that is downloaded
_AT_ONCE = 32
_TIMED_OUT = 124  # as timeout(1) and deepagents' own backends report it
_NOT_STARTED = 126
# Both streams in one, in the order in which they were written. Agents write for bash, which an image may lack.
_TOGETHER = 'exec 2>&1; if command -v bash >/dev/null; then exec bash -c -- "$1"; fi; exec sh -c -- "$1"'
_CODES = {
    errno.ENOENT: "file_not_found",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.EISDIR: "is_directory",
    errno.ENOTDIR: "invalid_path",
    errno.ENAMETOOLONG: "invalid_path",
    errno.ELOOP: "invalid_path",
}  # what deepagents calls them


class PodbotBackend(BaseSandbox):
    """An agent's commands and files in an open sandbox, which stays the caller's: it ends with its ``with`` block.

    deepagents derives its other file tools from these methods; for those the image needs python3. The contracts of the
    methods are those of ``SandboxBackendProtocol``. Any thread may call them, several at once.
    """

    def __init__(self, box: podbot.Sandbox, *, user: str = "", default_timeout: float = DEFAULT_SECONDS) -> None:
        """``user``: of commands and files, ``USER`` or ``USER:GROUP``; empty is the image's. ``default_timeout``:
        seconds. Raises ContainerError and ChannelLost, and ValueError for what is no time.
        """
        if not podbot.ShellLimits().min_timeout <= default_timeout <= NO_LIMIT:
            raise ValueError(f"default_timeout is {default_timeout!r}, not seconds from 0.1 up to 20 days")
        limits = podbot.ShellLimits(
            default_timeout=default_timeout, max_timeout=NO_LIMIT, output_bytes=OUTPUT, command_chars=4 << 20
        )
        self._workspace = box.root
        self._shell = box.open_shell(root="/", user=user, limits=limits, validator=None)
        self._box = SampleSandbox(box, SampleSettings(user=user, working_dir=box.root), lambda: None)
        self._calls = AsyncCalls(_AT_ONCE)

    @property
    def id(self) -> str:
        """The session's name, which ``podbot exec`` and ``podbot ps`` know."""
        return self._box.name

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a line of shell in the workspace; both streams are one output, of which the beginning and the end are
        kept, 1 MiB in all. ``timeout``: seconds, after which all its processes are ended and the exit code is 124; 0
        means no limit. What cannot be started has the exit code 126 and the reason as output.
        """
        seconds = NO_LIMIT if timeout == 0 else timeout
        words = ["/bin/sh", "-c", _TOGETHER, "sh", command]
        try:
            done = self._shell.execute(words, cwd=self._workspace, timeout_seconds=seconds)
        except (InvalidCommand, InvalidWorkingDirectory) as exc:
            return ExecuteResponse(f"Error: {exc}", _NOT_STARTED)
        except CommandSurvived as exc:
            return ExecuteResponse(f"Error: {exc}", _TIMED_OUT)
        output = done.stdout + done.stderr
        if not done.timed_out:
            return ExecuteResponse(output, done.exit_code, done.truncated)
        limit = self._shell.default_timeout if seconds is None else seconds
        said = f"{output.rstrip()}\n" if output else ""
        text = f"{said}Error: the command exceeded its time limit of {limit:g} s and was terminated"
        return ExecuteResponse(text, _TIMED_OUT, done.truncated)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:  # noqa: ASYNC109
        """As :meth:`execute`. If the call is cancelled, the command ends."""
        run = functools.partial(self.execute, command, timeout=timeout)
        result: ExecuteResponse = await self._calls.call(run)
        return result

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write each file, and make the directories of its path."""
        return [
            FileUploadResponse(path, _error_of(path, functools.partial(self._box.write, path, data)))
            for path, data in files
        ]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read each file, of at most 64 MiB."""
        return [self._downloaded(path) for path in paths]

    def _downloaded(self, path: str) -> FileDownloadResponse:
        found: list[bytes] = []
        error = _error_of(path, lambda: found.append(self._box.read(path, FILE)))
        return FileDownloadResponse(path, found[0] if found else None, error)


def _error_of(path: str, action: Callable[[], object]) -> str | None:
    """What deepagents calls the error of ``action`` on a file; None if there is none."""
    if not path.startswith("/") or "\0" in path:
        return "invalid_path"
    try:
        action()
    except OSError as exc:
        return _CODES.get(exc.errno or 0, exc.strerror or str(exc))
    except (TimedOut, TooMuchOutput, InvalidCommand) as exc:
        return str(exc)
    return None
