"""Sandboxes without an agent, to run commands in.

>>> import podbot
>>> with podbot.sandbox("~/src/shop") as box:      # doctest: +SKIP
...     print(box.run(["make", "test"], capture=True))
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, overload

from podbot.api.blocks import AsyncBlock, Block
from podbot.api.calls import host_facts, woken
from podbot.api.engines import NOT_STARTED, driver_of, environment, explained, open_engine, report_left
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore

if TYPE_CHECKING:
    from podbot.launch.types import LaunchRequest
    from podbot.session.async_sandbox import AsyncSandbox
    from podbot.session.sandbox import Sandbox

__all__ = ["async_sandbox", "sandbox"]

_ARGUMENTS = {"sandbox.network": "argument network"}  # that set a key of the configuration; the others name a workspace
_AT_ONCE = 32  # calls of an AsyncSandbox, each in a thread; a guest has 64 connections for all of podbot's processes


@overload
def sandbox(
    workspace: str | os.PathLike[str] | None,
    /,
    *,
    network: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> AbstractContextManager[Sandbox]: ...
@overload
def sandbox(
    config: AppConfig, request: LaunchRequest, /, *, environ: Mapping[str, str] | None = None, emit: Emit | None = None
) -> AbstractContextManager[Sandbox]: ...
def sandbox(
    workspace: AppConfig | str | os.PathLike[str] | None,
    request: LaunchRequest | None = None,
    /,
    *,
    network: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> AbstractContextManager[Sandbox]:
    """A sandbox without an agent for the block, to run commands in: see :class:`Sandbox`.

    ``sandbox(workspace)``: on a directory of this host, which commands may change, with the user's configuration; ``~``
    is the home directory, None: no workspace. ``network``: a value of ``sandbox.network``; ``overrides``: dotted key ->
    value. Both count more than the configuration file and the variables ``PODBOT_*`` of ``environ`` (None:
    ``os.environ``). ``sandbox(config, request)``: of this configuration alone.

    It has the same refusals, limits, guard, GitHub token and clone as :func:`run`; agent settings have no effect.
    At the end of the block it is removed, or kept as by ``run``. Raises ConfigError before anything is created, then
    ContainerError, SessionError, FilesystemError, GitHubError and CloneError subclasses.
    """
    return Block(
        _running(workspace, request, network=network, overrides=overrides, environ=environ, emit=emit),
        call="sandbox()",
        written="with podbot.sandbox(…) as box:",
        instead="Write async with podbot.async_sandbox(…) as box:",
    )


@contextlib.contextmanager
def _running(
    workspace: AppConfig | str | os.PathLike[str] | None,
    request: LaunchRequest | None,
    *,
    network: str | None,
    overrides: Mapping[str, Any] | None,
    environ: Mapping[str, str] | None,
    emit: Emit | None,
) -> Iterator[Sandbox]:
    """The sandbox of :func:`sandbox`."""
    from podbot.api import killed_helper
    from podbot.launch.plan import plan_sandbox
    from podbot.session.kill_watcher import HelperProgram
    from podbot.session.opening import opened_sandbox
    from podbot.session.sandbox import Sandbox

    environ, emit = environment(environ), emit or ignore
    config, request = _asked(workspace, request, network, overrides, environ)
    decided = plan_sandbox(config, request, host_facts(config, request, environ))
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(open_engine(config, environ=environ, emit=emit))
        wake = stack.enter_context(woken(None))
        report_left(engine, environ, emit)
        helper = HelperProgram(killed_helper.__file__, environ)
        opening = opened_sandbox(engine, decided, wake, emit, subcommand="sandbox", killed_helper=helper)
        try:
            opened = stack.enter_context(opening)
        except NOT_STARTED as exc:
            raise explained(exc, engine, config, environ) from exc
        driver, origin = driver_of(config), str(config.origin("engine"))
        made = Sandbox(opened, lambda: driver.reopen(engine.endpoint, origin, environ))
        stack.callback(made.close)
        yield made


def _asked(
    what: AppConfig | str | os.PathLike[str] | None,
    request: LaunchRequest | None,
    network: str | None,
    overrides: Mapping[str, Any] | None,
    environ: Mapping[str, str],
) -> tuple[AppConfig, LaunchRequest]:
    """The configuration and the request of either form of :func:`sandbox`. Raises TypeError, and ConfigError."""
    if isinstance(what, AppConfig):
        check_alone(network=network, overrides=overrides)
        if request is None:
            raise TypeError("a configuration needs a request. Write sandbox(config, podbot.LaunchRequest()).")
        return what, request
    if request is not None:
        raise TypeError(
            f"a request needs a configuration, not {what!r}."
            " Write podbot.load_config(podbot.LoadOptions(environ=os.environ))."
        )
    from podbot.config.load import load_config
    from podbot.config.models import LoadOptions
    from podbot.launch.types import LaunchRequest

    chosen: dict[str, Any] = {"workspace.source": "none"}
    if what is not None:
        chosen = {"workspace.source": "host_mount", "workspace.host_path": os.fspath(what)}
    if network is not None:
        chosen["sandbox.network"] = network
    flags = {key: _ARGUMENTS.get(key, "argument workspace") for key in chosen}
    config = load_config(LoadOptions(environ=environ, overrides={**(overrides or {}), **chosen}, flags=flags))
    return config, LaunchRequest(trusted_workspace=True)


def check_alone(**given: object) -> None:
    """Raise TypeError for arguments, by their names, that a caller gave beside a configuration."""
    if names := [name for name, value in given.items() if value is not None]:
        raise TypeError(f"{' and '.join(names)}: not with a configuration, which is used alone. Set it there.")


@overload
def async_sandbox(
    workspace: str | os.PathLike[str] | None,
    /,
    *,
    network: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> AbstractAsyncContextManager[AsyncSandbox]: ...
@overload
def async_sandbox(
    config: AppConfig, request: LaunchRequest, /, *, environ: Mapping[str, str] | None = None, emit: Emit | None = None
) -> AbstractAsyncContextManager[AsyncSandbox]: ...
def async_sandbox(
    workspace: AppConfig | str | os.PathLike[str] | None,
    request: LaunchRequest | None = None,
    /,
    *,
    network: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> AbstractAsyncContextManager[AsyncSandbox]:
    """:func:`sandbox` for asyncio, with the same arguments: nothing blocks the event loop.

    When the task is cancelled, the sandbox is removed before the block ends. ``emit`` is called from another thread.
    """
    asked: Any = sandbox  # mypy takes each of its two forms for itself
    return AsyncBlock(
        _opened(asked(workspace, request, network=network, overrides=overrides, environ=environ, emit=emit)),
        call="async_sandbox()",
        written="async with podbot.async_sandbox(…) as box:",
    )


@contextlib.asynccontextmanager
async def _opened(opening: AbstractContextManager[Sandbox]) -> AsyncIterator[AsyncSandbox]:
    from podbot.session.async_sandbox import AsyncSandbox
    from podbot.shell.async_calls import AsyncCalls, whole

    calls = AsyncCalls(_AT_ONCE)
    try:
        box = await calls.call(opening.__enter__, discard=lambda _box: opening.__exit__(None, None, None))
        made = AsyncSandbox(box, calls)
        try:
            yield made
        finally:
            raised = sys.exc_info()
            try:
                await calls.call(lambda: opening.__exit__(*raised))
            finally:
                await made.end()
    finally:
        await whole(calls.close)
