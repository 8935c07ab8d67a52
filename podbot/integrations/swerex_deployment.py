"""SWE-ReX on podbot: ``podbot.integrations.swerex_deployment.PodbotDeployment``. Needs ``podbot[swe-rex]``."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import secrets
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

import podbot
from podbot.errors import CommandSurvived, ExtraUnusable, PodbotError
from podbot.integrations import archives
from podbot.integrations.bash_session import Answer, BashSession, SessionEnded, SessionTimedOut
from podbot.integrations.sample_sandbox import NO_LIMIT, SampleSandbox
from podbot.integrations.sample_settings import SampleSettings, session_name
from podbot.shell.async_calls import AsyncCalls

try:
    from swerex.deployment.abstract import AbstractDeployment
    from swerex.deployment.hooks.abstract import CombinedDeploymentHook, DeploymentHook
    from swerex.exceptions import (
        BashIncorrectSyntaxError,
        CommandTimeoutError,
        DeploymentNotStartedError,
        NonZeroExitCodeError,
        SessionDoesNotExistError,
        SessionExistsError,
        SessionNotInitializedError,
    )
    from swerex.runtime import abstract as rex
except ImportError as exc:
    raise ExtraUnusable.of_import("swe-rex", "swe-rex", exc) from exc

PREFIX = "swe-rex"
_AT_ONCE = 64
_OUTPUT = 4 << 20  # bytes that are kept of each stream of a command
_FILE = 64 << 20  # bytes of a file that is read
_LOG = logging.getLogger("podbot")


class PodbotRuntime(rex.AbstractRuntime):
    """Commands, shells and files in an open sandbox, which stays the caller's. The contracts of the methods are those
    of ``AbstractRuntime``.

    Commands of a shell are checked with ``bash -n`` inside. SWE-ReX's own runtime does that where it runs, with the
    command in a here-document that the command can end.
    """

    def __init__(
        self,
        box: podbot.Sandbox,
        *,
        user: str = "",
        working_dir: str | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        """``user``: of commands, shells and files; empty is the image's. ``working_dir``: where they begin, inside;
        None is the workspace. Raises ContainerError and ChannelLost.
        """
        self.logger = logger or _LOG
        self._root = working_dir or box.root
        self._box = SampleSandbox(box, SampleSettings(user=user, working_dir=self._root), lambda: None)
        limits = podbot.ShellLimits(
            default_timeout=NO_LIMIT, max_timeout=NO_LIMIT, command_chars=4 << 20, stdin_bytes=64 << 20,
            env_variables=4096, env_bytes=2 << 20, output_bytes=_OUTPUT,
        )  # fmt: skip
        self._shell = box.open_shell(root="/", user=user, limits=limits, validator=None)
        self._sessions: dict[str, BashSession] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._calls = AsyncCalls(_AT_ONCE)

    async def is_alive(self, *, timeout: float | None = None) -> rex.IsAliveResponse:  # noqa: ARG002, ASYNC109
        """Whether the sandbox runs."""
        try:
            alive = await self._calls.call(self._box.is_running)
        except PodbotError as exc:
            return rex.IsAliveResponse(is_alive=False, message=exc.message)
        return rex.IsAliveResponse(is_alive=alive, message="" if alive else "the sandbox does not run")

    async def create_session(self, request: Any) -> Any:
        """A new interactive bash. Raises SessionExistsError."""
        if request.session in self._locks:
            raise SessionExistsError(f"session {request.session} already exists")
        lock = self._locks[request.session] = asyncio.Lock()
        try:
            async with lock:
                opening = functools.partial(BashSession, self._shell, cwd=self._root)
                session = await self._calls.call(opening, discard=BashSession.close)
                self._sessions[request.session] = session
                starting = functools.partial(session.start, request.startup_source, request.startup_timeout)
                output = await self._waited(session, starting, request.startup_timeout, "the start of the session")
        except BaseException:
            self._locks.pop(request.session, None)
            failed = self._sessions.pop(request.session, None)
            if failed is not None:
                await self._calls.call(failed.close)
            raise
        return rex.CreateBashSessionResponse(output=output)

    async def run_in_session(self, action: Any) -> Any:
        """Raises SessionDoesNotExistError, BashIncorrectSyntaxError, CommandTimeoutError and NonZeroExitCodeError."""
        session = self._session(action.session)
        async with self._locks[action.session]:
            if isinstance(action, rex.BashInterruptAction):
                call = functools.partial(session.interrupt, action.timeout, action.n_retry, action.expect)
                answer = await self._waited(session, call, action.timeout, "the interrupt")
            elif action.is_interactive_command or action.is_interactive_quit:
                leaves = action.is_interactive_quit
                call = functools.partial(session.interact, action.command, action.timeout, action.expect, leaves=leaves)
                answer = await self._waited(session, call, action.timeout, repr(action.command))
            else:
                await self._check_syntax(action.command)
                call = functools.partial(session.run, action.command, action.timeout, action.expect)
                answer = await self._waited(session, call, action.timeout, repr(action.command))
                if action.check == "raise" and answer.code:
                    raise NonZeroExitCodeError(_failed(action, answer))
        code = None if getattr(action, "check", "") == "ignore" else answer.code
        return rex.BashObservation(output=answer.output, exit_code=code, expect_string=answer.matched)

    async def close_session(self, request: Any) -> Any:
        """Raises SessionDoesNotExistError."""
        session = self._session(request.session)
        del self._sessions[request.session], self._locks[request.session]
        await self._calls.call(session.close)
        return rex.CloseBashSessionResponse()

    async def execute(self, command: Any) -> Any:
        """Raises CommandTimeoutError, and NonZeroExitCodeError with ``check``."""
        words = command.command if isinstance(command.command, list) else [command.command]
        words = ["/bin/sh", "-c", command.command] if command.shell else words
        if command.merge_output_streams:
            words = ["/bin/sh", "-c", 'exec 2>&1; exec "$@"', "sh", *words]
        seconds = None if command.timeout is None else max(command.timeout, podbot.ShellLimits().min_timeout)
        run = functools.partial(
            self._shell.execute, words, cwd=command.cwd or self._root, timeout_seconds=seconds, env=command.env,
            env_mode="extend" if command.env is None else "replace",
        )  # fmt: skip
        over = f"Timeout ({command.timeout}s) exceeded while running command"
        try:
            done = await self._calls.call(run)
        except CommandSurvived as exc:
            raise CommandTimeoutError(over) from exc
        if done.timed_out:
            raise CommandTimeoutError(over)
        if command.check and done.exit_code:
            said = f"{done.stdout!r} {done.stderr!r}"
            text = f"Command {command.command!r} failed with exit code {done.exit_code}: {said}"
            raise NonZeroExitCodeError(f"{command.error_msg}: {text}" if command.error_msg else text)
        return rex.CommandResponse(stdout=done.stdout, stderr=done.stderr, exit_code=done.exit_code)

    async def read_file(self, request: Any) -> Any:
        """Raises FileNotFoundError, IsADirectoryError, PermissionError, and UnicodeDecodeError."""
        data = await self._calls.call(functools.partial(self._box.read, request.path, _FILE))
        return rex.ReadFileResponse(content=data.decode(request.encoding or "utf-8", request.errors or "strict"))

    async def write_file(self, request: Any) -> Any:
        """Makes the directories of its path. Raises IsADirectoryError and PermissionError."""
        await self._calls.call(functools.partial(self._box.write, request.path, request.content.encode()))
        return rex.WriteFileResponse()

    async def upload(self, request: Any) -> Any:
        """Copy a file or a directory of this machine. Raises OSError."""
        await self._calls.call(functools.partial(self._upload, request.source_path, request.target_path))
        return rex.UploadResponse()

    def _upload(self, source: str, target: str) -> None:
        if not os.path.isdir(source):
            with open(source, "rb") as file:
                self._box.write(target, file.read())
            return
        done = self._box.unpack(archives.packed(archives.children(source)), target)
        if done.code:
            raise OSError(f"{source} cannot be copied to {target}: {done.stderr.decode('utf-8', 'replace').strip()}")

    async def close(self) -> Any:
        """End the shells and the connections. The sandbox goes on."""
        sessions = [self._sessions.pop(name) for name in [*self._sessions]]
        self._locks.clear()
        for session in sessions:
            await self._calls.call(session.close)
        await self._calls.call(self._shell.close)
        await self._calls.call(self._box.close)
        return rex.CloseResponse()

    def _session(self, name: str) -> BashSession:
        if name not in self._sessions:
            raise SessionDoesNotExistError(f"session {name!r} does not exist")
        return self._sessions[name]

    async def _waited(self, session: BashSession, call: Any, seconds: float | None, what: str) -> Any:
        try:
            return await self._calls.call(call, end=session.cancel)
        except SessionTimedOut as exc:
            raise CommandTimeoutError(f"timeout after {seconds} seconds while running command {what}") from exc
        except SessionEnded as exc:
            raise SessionNotInitializedError(str(exc)) from exc

    async def _check_syntax(self, command: str) -> None:
        check = functools.partial(self._shell.execute, ["bash", "-n"], stdin=command, cwd="/")
        done = await self._calls.call(check)
        if done.exit_code:
            info = {"bash_stdout": done.stdout, "bash_stderr": done.stderr}
            raise BashIncorrectSyntaxError(f"bash cannot read {command!r}: {done.stderr}", extra_info=info)


class PodbotDeploymentConfig(BaseModel):
    """The options of a :class:`PodbotDeployment`: see SampleSettings."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["podbot"] = "podbot"
    image: str | None = None
    user: str = ""
    working_dir: str | None = None
    memory: str | None = None
    cpus: float | None = None
    network: str = "none"

    def get_deployment(self) -> PodbotDeployment:
        return PodbotDeployment(**self.model_dump(exclude={"type"}))


class PodbotDeployment(AbstractDeployment):
    """A sandbox of its own: without any file of this machine, and without a network unless ``network`` says otherwise.

    It has the profile ``hardened``, and is removed by :meth:`stop`, or when this process ends.
    """

    def __init__(self, *, logger: logging.Logger | None = None, **options: Any) -> None:
        """``options``: the fields of :class:`PodbotDeploymentConfig`."""
        self.logger = logger or _LOG
        self._config = PodbotDeploymentConfig(**options)
        self._hooks = CombinedDeploymentHook()
        self._calls = AsyncCalls(1)
        self._opened: SampleSandbox | None = None
        self._runtime: PodbotRuntime | None = None

    @classmethod
    def from_config(cls, config: PodbotDeploymentConfig) -> Self:
        return cls(**config.model_dump(exclude={"type"}))

    def add_hook(self, hook: DeploymentHook) -> None:
        self._hooks.add_hook(hook)

    async def is_alive(self, *, timeout: float | None = None) -> rex.IsAliveResponse:  # noqa: ASYNC109
        if self._runtime is None:
            return rex.IsAliveResponse(is_alive=False, message="the deployment was not started")
        return await self._runtime.is_alive(timeout=timeout)

    async def start(self) -> None:
        """Open the sandbox. Raises PodbotError subclasses."""
        settings = SampleSettings(**self._config.model_dump(exclude={"type"}))
        self._hooks.on_custom_step("Starting sandbox")
        name = session_name(PREFIX, self._config.image or "sandbox", secrets.token_hex(4))
        opening = functools.partial(SampleSandbox.open, settings, name)
        self._opened = opened = await self._calls.call(opening, discard=SampleSandbox.close)
        making = functools.partial(
            PodbotRuntime, opened.box, user=settings.user, working_dir=opened.working_dir, logger=self.logger
        )
        self._runtime = await self._calls.call(making)

    async def stop(self) -> None:
        """Remove the sandbox."""
        runtime, opened = self._runtime, self._opened
        self._runtime = self._opened = None
        if runtime is not None:
            await runtime.close()
        if opened is not None:
            await self._calls.call(opened.close)

    @property
    def runtime(self) -> PodbotRuntime:
        """Raises DeploymentNotStartedError."""
        if self._runtime is None:
            raise DeploymentNotStartedError
        return self._runtime


def _failed(action: Any, answer: Answer) -> str:
    text = f"Command {action.command!r} failed with exit code {answer.code}. Here is the output:\n{answer.output!r}"
    return f"{action.error_msg}: {text}" if action.error_msg else text
