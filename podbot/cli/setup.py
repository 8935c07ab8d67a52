"""``podbot setup``: make this machine ready: the sandbox image, and its name in the configuration."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import typer

from podbot.cli.globals import Globals

if TYPE_CHECKING:
    from podbot.config.models import AppConfig
    from podbot.images.image_build import Step
    from podbot.provisioning.setup import SetupPlan, SetupResult


def setup(g: Globals, *, yes: bool, agents: str | None, force: bool) -> int:
    """Build the sandbox image and write its name into the configuration; returns podbot's exit code."""
    from functools import partial

    from podbot.cli.image import build_context, end_on_signals, names
    from podbot.cli.report import Reporter, printable
    from podbot.config.load import config_location, load_config
    from podbot.engine.podman.connect import connect
    from podbot.errors import ServiceStartFailed
    from podbot.images.build_turn import build_turn
    from podbot.provisioning.setup import check_machine_ready, check_ready, plan_setup
    from podbot.provisioning.setup import setup as carry_out
    from podbot.session.orphans import report_orphans

    end_on_signals()
    options = g.load_options(os.environ, {}, {})
    config = load_config(options)
    path, _, _ = config_location(options)
    reporter = Reporter(g, progress=True)
    try:
        engine = connect(config, os.environ, reporter)
    except ServiceStartFailed as exc:
        check_machine_ready(config, os.environ, exc.reason)  # Podman alone often names a file, and not the cause
        raise
    try:
        report_orphans(engine, os.environ, reporter)
        context = build_context(engine, os.environ, reporter)
        chosen = None if agents is None else names(agents)
        decide = partial(plan_setup, context, config=config, config_path=path, agents=chosen, force=force)
        plan = decide()
        check_ready(plan, context, engine, config)
        reporter.clear()
        if plan.steps and not yes:
            _confirm(plan)
        if plan.build is None:
            result = carry_out(plan, context)
        else:
            with build_turn(os.environ, engine.endpoint, reporter):
                plan = decide()  # the one before us may have built it
                result = carry_out(plan, context)
    finally:
        reporter.clear()
        engine.close()
    typer.echo(printable(_summary(plan, result, config)))
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


def _summary(plan: SetupPlan, result: SetupResult, config: AppConfig) -> str:
    agents = f" with {', '.join(plan.agents)}" if plan.agents else ""
    if result.built:
        first = f"{result.image}{agents} was built in {result.seconds:.0f} s."
    else:
        first = f"{result.image}{agents} is there already; nothing was built."
    if plan.other_image:
        return f"{first} It is not in use: {config.origin('image')} names {plan.other_image}."
    return f"{first} Next: podbot run ."
