"""What an engine's folder gives: the module that :mod:`podbot.engine.registry` names is an ``EngineDriver``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from podbot.config.models import AppConfig
from podbot.engine.check import Check
from podbot.engine.endpoint import Endpoint
from podbot.engine.port import Engine, EngineWords
from podbot.events import Emit
from podbot.machine import MachineFacts


class EngineMachine(Protocol):
    """This machine as one kind of engine sees it."""

    @property
    def facts(self) -> MachineFacts: ...

    @property
    def image_hint(self) -> str:
        """Why an engine that podbot starts for this user can unpack no image, and how to fix it; empty when it can."""
        ...

    def checks(self, network: str) -> Iterator[Check]:
        """What ``podbot doctor`` says of what the engine needs here. ``network``: ``sandbox.network``."""
        ...

    def problems(self, network: str, *, version: str = "", rootless: bool | None = None) -> list[Check]:
        """The failed checks that mean that no session can start here, or none with ``network``.

        ``version``: the engine's; empty: that of the program on this machine. ``rootless``: the engine is an ordinary
        user's; None: this user's own.
        """
        ...


class EngineDriver(Protocol):
    """Finding, starting and opening one kind of engine. Which variables and sockets belong to it is decided there."""

    @property
    def WORDS(self) -> EngineWords:  # noqa: N802 - a module's constant
        ...

    def connect(self, config: AppConfig, environ: Mapping[str, str], emit: Emit) -> Engine:
        """A checked engine: named, found, or started. Raises ContainerError subclasses."""
        ...

    def locate(self, config: AppConfig, environ: Mapping[str, str]) -> Endpoint | None:
        """The endpoint that ``connect`` would use; None when it would start an engine. Raises UnsupportedEndpoint."""
        ...

    def reopen(self, endpoint: str, origin: str) -> Engine:
        """An engine at a recorded endpoint, not yet spoken to. Raises UnsupportedEndpoint, naming ``origin``."""
        ...

    def machine(self, environ: Mapping[str, str]) -> EngineMachine:
        """This machine as the engine sees it. Starts no program."""
        ...
