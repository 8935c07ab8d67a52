"""Sandboxes without an agent, to run commands in.

>>> import podbot
>>> with podbot.open_sandbox("~/src/shop") as box:      # doctest: +SKIP
...     print(box.run(["make", "test"], capture=True))
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from podbot.api.calls import check_subcommand, host_facts, woken
from podbot.api.engines import NOT_STARTED, driver_of, environment, explained, open_engine, report_left
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore

if TYPE_CHECKING:
    from podbot.launch.types import LaunchRequest
    from podbot.session.async_sandbox import AsyncSandbox
    from podbot.session.sandbox import Sandbox

__all__ = ["open_async_sandbox", "open_sandbox", "sandbox"]


@contextlib.contextmanager
def sandbox(
    config: AppConfig,
    request: LaunchRequest,
    *,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> Iterator[Sandbox]:
    """A sandbox without an agent for the block, to run commands in: see :class:`Sandbox`.

    It has the same refusals, limits, guard, GitHub token and clone as :func:`run`; agent settings have no effect.
    At the end of the block it is removed, or kept as by ``run``. Raises ConfigError before anything is created, then
    ContainerError, FilesystemError, GitHubError and CloneError subclasses.
    """
    from podbot.api import killed_helper
    from podbot.launch.plan import plan_sandbox
    from podbot.session.kill_watcher import HelperProgram
    from podbot.session.sandbox import Sandbox
    from podbot.session.session import opened_sandbox

    environ, emit = environment(environ), emit or ignore
    check_subcommand(request, "sandbox")
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
        made = Sandbox(opened, lambda: driver.reopen(engine.endpoint, origin))
        stack.callback(made.close)
        yield made


@contextlib.contextmanager
def open_sandbox(
    workspace: str | os.PathLike[str] | None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> Iterator[Sandbox]:
    """:func:`sandbox` on a directory of this host, with the user's configuration.

    ``workspace``: the directory, which commands may change; ``~`` is the home directory; None: no workspace.
    ``overrides``: dotted key -> value, such as ``{"sandbox.network": "none"}``, over the configuration file and the
    variables ``PODBOT_*`` of ``environ`` (None: ``os.environ``). Raises as :func:`sandbox` does.
    """
    from podbot.config.load import load_config
    from podbot.config.models import LoadOptions
    from podbot.launch.types import LaunchRequest

    chosen: dict[str, Any] = {"workspace.source": "none"}
    if workspace is not None:
        chosen = {"workspace.source": "host_mount", "workspace.host_path": os.fspath(workspace)}
    environ = environment(environ)
    config = load_config(LoadOptions(environ=environ, overrides={**(overrides or {}), **chosen}))
    request = LaunchRequest(subcommand="sandbox", trusted_workspace=True)
    with sandbox(config, request, environ=environ, emit=emit) as box:
        yield box


@contextlib.asynccontextmanager
async def open_async_sandbox(
    workspace: str | os.PathLike[str] | None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> AsyncIterator[AsyncSandbox]:
    """:func:`open_sandbox` for asyncio: nothing blocks the event loop.

    When the task is cancelled, the sandbox is removed before the block ends. ``emit`` is called from another thread.
    """
    from podbot.session.async_sandbox import AsyncSandbox
    from podbot.shell.async_calls import AsyncCalls

    opening = open_sandbox(workspace, overrides=overrides, environ=environ, emit=emit)
    with contextlib.closing(AsyncCalls(1)) as calls:
        box = await calls.call(opening.__enter__, discard=lambda _box: opening.__exit__(None, None, None))
        try:
            yield AsyncSandbox(box, calls)
        finally:
            raised = sys.exc_info()
            await calls.call(lambda: opening.__exit__(*raised))
