"""Opening engines: the only module that picks one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from podbot.config.models import DEFAULT_ENGINE, AppConfig
from podbot.engine import registry
from podbot.errors import ImageNotFound
from podbot.events import Emit, ignore

if TYPE_CHECKING:
    from podbot.engine.driver import EngineDriver
    from podbot.engine.port import Engine

__all__ = ["open_engine"]


def driver_of(config: AppConfig) -> EngineDriver:
    """What finds and opens engines of the configured kind. Raises InvalidValue for a kind that is not known."""
    return registry.driver(config.engine, str(config.origin("engine")))


@contextlib.contextmanager
def open_engine(
    config: AppConfig, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> Iterator[Engine]:
    """A checked engine for the block. Raises ContainerError subclasses when there is none."""
    engine = driver_of(config).connect(config, environment(environ), emit)
    try:
        yield engine
    finally:
        engine.close()


def reopen(endpoint: str, kind: str = DEFAULT_ENGINE) -> Engine:
    """The engine of a session's record, not yet spoken to. Raises InvalidValue and UnsupportedEndpoint."""
    origin = "the session's record"
    return registry.driver(kind, origin).reopen(endpoint, origin)


def engine_socket(config: AppConfig, environ: Mapping[str, str]) -> str | None:
    """Path of the engine's unix socket; None for an engine elsewhere, and for one that podbot would start."""
    endpoint = driver_of(config).locate(config, environ)
    return endpoint.path if endpoint is not None and endpoint.scheme == "unix" else None


def explained(exc: ImageNotFound, config: AppConfig, environ: Mapping[str, str]) -> ImageNotFound:
    """The error with its cause, where an image cannot be on this user's own engine."""
    driver = driver_of(config)
    hint = driver.machine(environ).image_hint if driver.locate(config, environ) is None else ""
    return ImageNotFound(image=exc.image, origin=exc.origin, hint=hint, engine_hint=exc.engine_hint)


def report_left(engine: Engine, environ: Mapping[str, str], emit: Emit, *, spare: str = "") -> None:
    """Orphans are looked for only when the runtime directory holds a session at all."""
    from podbot.places import runtime_root

    with contextlib.suppress(OSError), os.scandir(runtime_root(environ)) as entries:
        if any(not entry.name.startswith(".") for entry in entries):
            from podbot.session.orphans import report_orphans

            report_orphans(engine, environ, emit, spare=spare)


def environment(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    """``environ``, or the process's own."""
    return os.environ if environ is None else environ
