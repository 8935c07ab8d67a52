"""The offer of `podbot run` to set up a machine on which no session can start."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.cli.interaction import Declined, ask, show
from podbot.cli.selection import Selection
from podbot.cli.signals import end_on_signals
from podbot.config.load import load_config
from podbot.config.models import AppConfig
from podbot.errors import (
    AgentNotInImage,
    EngineNotInstalled,
    ImageNotFound,
    MachineNotReady,
    MissingRequired,
    PodbotError,
    ServiceStartFailed,
)
from podbot.images.recipe import SANDBOX_REPOSITORY, known_builds
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.provisioning.setup import SetupPlan

OF_THE_MACHINE = (EngineNotInstalled, ServiceStartFailed, MachineNotReady)


def setup_may_help(exc: PodbotError, config: AppConfig) -> bool:
    """Whether the error is about podbot's own image, or about an engine that this machine cannot run yet.

    Set-up changes no project's table, so it does not help where one of those names the image.
    """
    if isinstance(exc, MissingRequired):
        return exc.field == "image"
    if isinstance(exc, (ImageNotFound, AgentNotInImage)):
        origin = config.origin("image")
        return exc.image.startswith(f"{SANDBOX_REPOSITORY}:") and origin.kind == "file" and not origin.project
    return isinstance(exc, OF_THE_MACHINE)


def set_up(g: Globals, args: Selection, exc: PodbotError) -> bool:
    """Ask the operator, and set up. False if setup would not help, or the operator declined.

    Raises what :func:`podbot.setup` raises.
    """
    options = g.load_options(os.environ, args.overrides, args.flags)
    config = load_config(options)
    if not setup_may_help(exc, config):
        return False
    from podbot.api.preparing import setup
    from podbot.cli.report import Reporter

    end_on_signals()
    reporter = Reporter(g, progress=True)

    def approve(plan: SetupPlan) -> None:
        reporter.clear()
        if not _agreed(plan, why(exc), f"start {config.agent.kind}"):
            raise Declined

    agent = config.agent.kind
    try:
        setup(
            options,
            also=(agent,) if agent in known_builds() else (),
            may_install=True,
            may_ask=True,
            approve=approve,
            emit=reporter,
        )
    except Declined:
        return False
    finally:
        reporter.clear()
    return True


def why(exc: PodbotError) -> str:
    """The reason for the offer, as a sentence without its end."""
    return "there is no sandbox image yet" if isinstance(exc, MissingRequired) else exc.message


def described(plan: SetupPlan) -> list[str]:
    """The plan's steps with their estimates, one a line."""
    lines = []
    for step in plan.steps:
        size = [f"{step.megabytes} MB"] if step.megabytes else []
        size += [f"{step.seconds} s"] if step.seconds else []
        lines.append(step.text + (f" (about {', '.join(size)})" if size else ""))
    return lines


def _agreed(plan: SetupPlan, reason: str, then: str) -> bool:
    sys.stderr.write(f"podbot: {printable(reason)}. To set up, podbot will\n")
    show(described(plan))
    seconds = f"This takes about {plan.seconds} s if the package mirrors are near. " if plan.seconds else ""
    return ask(f"{seconds}Do it, and then {then}?")
