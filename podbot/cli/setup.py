"""``podbot setup``: make this machine ready: the sandbox image, and its name in the configuration."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import typer

from podbot.cli.globals import Globals

if TYPE_CHECKING:
    from podbot.images.image_build import Step
    from podbot.provisioning.setup import SetupPlan, SetupResult


def setup(g: Globals, *, yes: bool, agents: str | None, force: bool) -> int:
    """Build the sandbox image and write its name into the configuration; returns podbot's exit code."""
    from podbot.api.images import setup as carry_out
    from podbot.cli.image import end_on_signals, names
    from podbot.cli.report import Reporter, printable

    end_on_signals()
    reporter = Reporter(g, progress=True)

    def approve(plan: SetupPlan) -> None:
        reporter.clear()
        if not yes:
            _confirm(plan)

    try:
        result = carry_out(
            g.load_options(os.environ, {}, {}),
            agents=None if agents is None else names(agents),
            force=force,
            approve=approve,
            emit=reporter,
        )
    finally:
        reporter.clear()
    typer.echo(printable(_summary(result)))
    return 0


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def _confirm(plan: SetupPlan) -> None:
    from podbot.errors import MissingRequired

    typer.echo("podbot setup will", err=True)
    for step in plan.steps:
        typer.echo(f"  - {_described(step)}", err=True)
    if not _is_terminal(sys.stdin):
        raise MissingRequired(field="--yes", hint="Standard input is not a terminal, so podbot cannot ask; say --yes.")
    if not typer.confirm("Go ahead?", default=True, err=True):
        raise typer.Exit(1)


def _described(step: Step) -> str:
    size = f" (about {step.megabytes} MB, {step.seconds} s when the packages are near)" if step.megabytes else ""
    return step.text + size


def _summary(result: SetupResult) -> str:
    agents = f" with {', '.join(result.agents)}" if result.agents else ""
    if result.built:
        first = f"{result.image}{agents} was built in {result.seconds:.0f} s."
    else:
        first = f"{result.image}{agents} is there already; nothing was built."
    if result.other_image:
        return f"{first} It is not in use: {result.other_origin} names {result.other_image}."
    return f"{first} Next: podbot run ."
