"""The sandbox provider of Inspect: ``sandbox="podbot"``, found by the entry point ``inspect_ai`` of the distribution.

Inspect imports this module at its start, so it imports podbot's slow parts when they are first used.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import secrets
import shlex
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, TypeVar, overload

import anyio
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    concurrency,
    sandboxenv,
)
from inspect_ai.util._subprocess import max_subprocesses_context_var

from podbot.errors import ChannelLost, CommandSurvived, ContainerError, PodbotError
from podbot.integrations.inspect_config import COMPOSE_FILES, PodbotSandboxConfig, settings_of
from podbot.integrations.sample_sandbox import SampleSandbox, TimedOut, TooMuchOutput
from podbot.integrations.sample_settings import SampleSettings, session_name
from podbot.shell.anyio_calls import in_thread, whole

PREFIX = "inspect"  # of the names of sessions, by which `inspect sandbox cleanup podbot` finds them
_LOG = logging.getLogger("podbot")
_T = TypeVar("_T")
_POLL_SECONDS = 0.2

_open: dict[str, SampleSandbox] = {}  # by the session's name


@sandboxenv(name="podbot")
class PodbotSandboxEnvironment(SandboxEnvironment):
    """A sandbox of podbot's. The contracts of the methods are those of ``SandboxEnvironment``."""

    def __init__(self, sample: SampleSandbox) -> None:
        super().__init__()
        self.sample = sample

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """``timeout`` ends all processes of the command, inside. So a command is never run again (``timeout_retry``):
        it may have done a part of its work, and what took too long was itself, not the way to it."""
        del timeout_retry
        data = input.encode() if isinstance(input, str) else input
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        async with _throttled(wanted=concurrency):
            done = await _called(
                lambda: self.sample.run(cmd, stdin=data, cwd=cwd, env=env, user=user, timeout=timeout, limit=limit)
            )
        if done.truncated:
            kept = done.stdout if len(done.stdout) >= limit else done.stderr
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, _text(kept))
        if done.not_permitted:
            raise PermissionError(f"Permission denied executing command: {_text(done.stderr).strip()}")
        return ExecResult(done.code == 0, done.code, _text(done.stdout), _text(done.stderr))

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        await _called(lambda: self.sample.write(file, data))

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        try:
            data = await _called(lambda: self.sample.read(file, limit))
        except TooMuchOutput:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None) from None
        return data.decode() if text else data

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        sample = self.sample
        if not await whole(lambda: _is_running(sample)):
            raise ConnectionError(f"The sandbox {sample.name} is not running.")
        words = ["podbot", "exec", *(["--user", user] if user else []), sample.name]
        return SandboxConnection(type="podbot", command=shlex.join(words), container=sample.name)

    def default_polling_interval(self) -> float:
        return _POLL_SECONDS

    @classmethod
    async def task_init(cls, task_name: str, config: SandboxEnvironmentConfigType | None) -> None:
        """Open and remove one sandbox of each kind, which takes a quarter of a second and shows what is missing."""
        del task_name
        try:
            for service, settings in settings_of(config).items():
                await whole(functools.partial(_try_out, settings, service))
        except (PodbotError, ValueError, OSError) as exc:
            raise PrerequisiteError(str(exc)) from exc

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        del metadata
        settings = settings_of(config)
        found: dict[str, PodbotSandboxEnvironment] = {}

        failures: list[Exception] = []

        async def start(service: str, one: SampleSettings) -> None:
            name = session_name(PREFIX, task_name, secrets.token_hex(4))
            try:
                found[service] = cls(await whole(functools.partial(_opened, one, name)))
            except Exception as exc:  # noqa: BLE001 - raised below, and not in a group that hides its message
                failures.append(exc)

        try:
            async with anyio.create_task_group() as group:
                for service, one in settings.items():
                    group.start_soon(start, service, one)
        finally:
            if len(found) < len(settings):
                await _closed([one.sample for one in found.values()])
        if failures:
            raise failures[0]
        return {service: found[service] for service in settings}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Remove the sample's sandboxes, also when the sample was interrupted: it takes a tenth of a second."""
        del task_name, config, interrupted
        await _closed([environment.as_type(cls).sample for environment in environments.values()])

    @classmethod
    async def task_cleanup(cls, task_name: str, config: SandboxEnvironmentConfigType | None, cleanup: bool) -> None:
        """Remove what is left. A sandbox of podbot's ends with its process, so none can be left for later."""
        del task_name, config
        if _open and not cleanup:
            _LOG.warning("removing %d sandboxes: podbot's do not outlive the evaluation's process", len(_open))
        await _closed(list(_open.values()))

    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:
        await whole(functools.partial(_stop_sessions, id))

    @classmethod
    def config_files(cls) -> list[str]:
        return list(COMPOSE_FILES)

    @classmethod
    def is_docker_compatible(cls) -> bool:
        return True

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> PodbotSandboxConfig:
        return PodbotSandboxConfig.model_validate(config)


@contextlib.asynccontextmanager
async def _throttled(*, wanted: bool) -> AsyncIterator[None]:
    """Inspect's limit of subprocesses at a time (``--max-subprocesses``), as commands here use the same processors."""
    if not wanted:
        yield
        return
    async with concurrency("subprocesses", max_subprocesses_context_var.get(), resizable=True):
        yield


async def _called(call: Callable[[], _T]) -> _T:
    return await in_thread(functools.partial(_reported, call))


def _reported(call: Callable[[], _T]) -> _T:
    """``call`` with podbot's errors as those of Inspect's contract."""
    try:
        return call()
    except TimedOut as exc:
        error = TimeoutError(str(exc))
        if exc.output:
            error.truncated_output = _text(exc.output)  # type: ignore[attr-defined] # Inspect shows it to the model
        raise error from None
    except CommandSurvived as exc:
        raise TimeoutError(str(exc)) from exc
    except (ContainerError, ChannelLost) as exc:
        raise SandboxUnavailableError(str(exc)) from exc


def _opened(settings: SampleSettings, name: str) -> SampleSandbox:
    sample = SampleSandbox.open(settings, name)
    _open[name] = sample  # before an event loop could lose it
    return sample


def _try_out(settings: SampleSettings, service: str) -> None:
    SampleSandbox.open(settings, session_name(PREFIX, f"check-{service}", secrets.token_hex(4))).close()


async def _closed(samples: list[SampleSandbox]) -> None:
    """Close the sandboxes at the same time. An error of one, which podbot reports later again, is logged."""

    async def close(sample: SampleSandbox) -> None:
        _open.pop(sample.name, None)
        try:
            await whole(sample.close)
        except PodbotError as exc:
            _LOG.warning("%s", exc)

    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as group:
            for sample in samples:
                group.start_soon(close, sample)


def _is_running(sample: SampleSandbox) -> bool:
    try:
        return sample.is_running()
    except PodbotError:
        return False


def _stop_sessions(name: str | None) -> None:
    """Stop one session, or all that evaluations have opened."""
    import podbot

    config = podbot.load_config(podbot.LoadOptions(environ=os.environ))
    known = [found.session for found in podbot.ps(config, include_stopped=True)]
    wanted = [found for found in known if found.startswith(f"{PREFIX}-") and name in (None, found)]
    if wanted:
        podbot.stop(config, wanted, seconds=0, remove_kept=True)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
