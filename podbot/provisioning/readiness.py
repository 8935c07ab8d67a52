"""What a session needs of a machine, asked before an image is built for it."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.config.models import AppConfig
from podbot.engine.check import Check
from podbot.engine.driver import EngineMachine
from podbot.engine.port import Engine
from podbot.errors import MachineNotReady


def is_here(engine: Engine, machine: EngineMachine, *, is_private: bool) -> bool:
    """Whether what ``engine`` needs is on this machine.

    It is not for an engine on another machine, nor for one whose socket is mounted into this container (toolbox,
    distrobox, CI): what that needs is on its own side. ``is_private``: podbot started it, so it is here.
    """
    return engine.local and (is_private or not machine.facts.container)


def machine_problems(engine: Engine, machine: EngineMachine, config: AppConfig, *, is_private: bool) -> list[Check]:
    """The failed checks of this machine because of which no session starts on ``engine``, if it is on this machine.

    ``is_private``: see :func:`is_here`.
    """
    if not is_here(engine, machine, is_private=is_private):
        return []
    version, network = engine.ping().version, config.sandbox.network  # the engine's, not that of a program on PATH
    if not machine.problems(network, version=version):
        return []  # without the third of a second that the engine takes to describe itself
    return machine.problems(network, version=version, rootless=engine.host().rootless)


def require_ready(failed: Sequence[Check], said: str = "") -> None:
    """Raise MachineNotReady, in doctor's words, when a check ``failed``.

    ``said``: a sentence about an engine that did not start, in its words: the checks may have found something else.
    """
    if failed:
        problems = [f"{check.name}: {check.found}. {check.meaning.rstrip('.')}" for check in failed]
        raise MachineNotReady(
            problems="; ".join([*problems, *([said] if said else [])]),
            fixes=" ".join(f"To fix {check.name}: {_quoted(check.fix)}." for check in failed),
        )


def _quoted(fix: str) -> str:
    """A command with its ends marked; a sentence, which marks those in it, as it is."""
    return fix if "`" in fix else f"`{fix}`"
