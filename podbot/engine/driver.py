"""The interface of an engine's folder: the module that :mod:`podbot.engine.kinds` names is an ``EngineDriver``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from podbot.config.models import AppConfig
from podbot.engine.check import Check
from podbot.engine.endpoint import Endpoint
from podbot.engine.port import Engine, EngineWords
from podbot.events import Emit
from podbot.machine import Disk, MachineFacts


class EngineMachine(Protocol):
    """This machine as one kind of engine sees it."""

    @property
    def facts(self) -> MachineFacts: ...

    @property
    def image_hint(self) -> str:
        """Why an engine that podbot starts for this user cannot unpack images, with a fix; empty if it can."""
        ...

    def disk(self, path: str) -> Disk | None:
        """The file system of ``path`` on this machine, or of the nearest existing directory above; None if unknown."""
        ...

    def checks(self, network: str, *, private: bool) -> Iterator[Check]:
        """The checks of ``podbot doctor`` for the engine's needs on this machine. ``network``: ``sandbox.network``.

        ``private``: podbot starts the engine; what it then configures it for is no warning.
        """
        ...

    def missing(self) -> tuple[str, ...]:
        """The programs, in the names of :mod:`podbot.engine.check`, that a complete engine of this user lacks here."""
        ...

    def undecided(self) -> tuple[tuple[str, ...], ...]:
        """Sets of programs of which the engine lacks one as well; which one, its version decides, not yet known."""
        ...

    def unusable(self) -> str:
        """Why the engine that packages would bring could not be used; empty if it could, or is not known."""
        ...

    def problems(self, network: str, *, version: str = "", rootless: bool | None = None) -> list[Check]:
        """The failed checks because of which no session can start, or none with ``network``.

        ``version``: the engine's; if empty, that of the program on this machine. ``rootless``: whether the engine runs
        as an ordinary user; None: it runs as this user.
        """
        ...


class EngineDriver(Protocol):
    """Finds, starts and opens one kind of engine. It also decides which variables and sockets belong to that kind."""

    @property
    def WORDS(self) -> EngineWords:  # noqa: N802 - a module's constant
        ...

    def connect(self, config: AppConfig, environ: Mapping[str, str], emit: Emit) -> Engine:
        """Return a healthy engine, which was named, found, or started. Raises ContainerError subclasses."""
        ...

    def locate(self, config: AppConfig, environ: Mapping[str, str]) -> Endpoint | None:
        """The endpoint that ``connect`` would use; None when it would start an engine. Raises UnsupportedEndpoint."""
        ...

    def reopen(self, endpoint: str, origin: str, environ: Mapping[str, str] | None = None) -> Engine:
        """An engine at a recorded endpoint, not yet contacted. Raises UnsupportedEndpoint, naming ``origin``.

        ``environ``: a request starts the engine again if podbot had started it and it has ended. Without it, none does.
        """
        ...

    def machine(self, environ: Mapping[str, str]) -> EngineMachine:
        """This machine as the engine sees it. Starts no program."""
        ...
