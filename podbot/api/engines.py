"""Opens engines: the only module that selects one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from podbot.config.models import DEFAULT_ENGINE, AppConfig
from podbot.engine import kinds
from podbot.errors import ContainerError, CreateFailed, ImageNotFound, MachineNotReady, PodbotError, StartFailed
from podbot.events import Emit, ignore

if TYPE_CHECKING:
    from podbot.engine.driver import EngineDriver
    from podbot.engine.endpoint import EngineRef
    from podbot.engine.port import Engine

__all__ = ["open_engine"]


def driver_of(config: AppConfig) -> EngineDriver:
    """The driver of the configured kind of engine. Raises InvalidValue for an unknown kind."""
    return kinds.driver(config.engine, str(config.origin("engine")))


@contextlib.contextmanager
def open_engine(
    config: AppConfig, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> Iterator[Engine]:
    """A healthy engine for the block. Raises ContainerError subclasses if there is none."""
    engine = driver_of(config).connect(config, environment(environ), emit)
    try:
        yield engine
    finally:
        engine.close()


def reopen(engine: EngineRef, environ: Mapping[str, str] | None = None) -> Engine:
    """The engine in a session's record, not yet contacted. Raises InvalidValue and UnsupportedEndpoint.

    ``environ``: see ``EngineDriver.reopen``.
    """
    origin = "the session's record"
    return kinds.driver(engine.kind or DEFAULT_ENGINE, origin).reopen(engine.endpoint, origin, environ)


def engine_socket(config: AppConfig, environ: Mapping[str, str]) -> str | None:
    """Path of the engine's unix socket; None for a remote engine, and for one that podbot would start."""
    endpoint = driver_of(config).locate(config, environ)
    return endpoint.path if endpoint is not None and endpoint.scheme == "unix" else None


NOT_STARTED = (ImageNotFound, CreateFailed, StartFailed)


def explained(
    exc: ImageNotFound | CreateFailed | StartFailed, engine: Engine, config: AppConfig, environ: Mapping[str, str]
) -> PodbotError:
    """The error, with its cause on this machine if there is one that podbot knows.

    For a missing image: why this user's own engine cannot have any. For a container that did not start: what doctor
    says of this machine, in place of the engine's own words, which name a program of which the user has not heard.
    """
    driver = driver_of(config)
    if isinstance(exc, ImageNotFound):
        hint = driver.machine(environ).image_hint if driver.locate(config, environ) is None else ""
        return ImageNotFound(image=exc.image, origin=exc.origin, hint=hint, engine_hint=exc.engine_hint)
    from podbot.provisioning.packages import machine_problems, require_ready

    try:
        is_private = driver.locate(config, environ) is None
        require_ready(machine_problems(engine, driver.machine(environ), config, is_private=is_private))
    except ContainerError as found:
        return found if isinstance(found, MachineNotReady) else exc
    return exc


def report_left(engine: Engine, environ: Mapping[str, str], emit: Emit, *, spare: str = "") -> None:
    """Report orphans, but search only if the runtime directory contains a session."""
    from podbot.places import runtime_root

    with contextlib.suppress(OSError), os.scandir(runtime_root(environ)) as entries:
        if any(not entry.name.startswith(".") for entry in entries):
            from podbot.session.orphans import report_orphans

            report_orphans(engine, environ, emit, spare=spare)


def environment(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    """``environ``, or the process's own."""
    return os.environ if environ is None else environ
