"""``podbot setup``: make this machine ready: the sandbox image, and its name in the configuration."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from podbot.cli.common import global_options, load_options
from podbot.cli.globals import Globals

if TYPE_CHECKING:
    from podbot.config.models import AppConfig
    from podbot.engine.port import Engine
    from podbot.events import Emit
    from podbot.flows.setup import SetupPlan, SetupResult, Step, Workshop

_STEP = re.compile(r"STEP (\d+)/(\d+): ")


@global_options
def setup(
    g: Globals,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    agents: Annotated[str | None, typer.Option("--agents", metavar="NAME,…", help="Agents to build in.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Build anew although the image is there.")] = False,
) -> None:
    """Build the sandbox image and write its name into the configuration.

    Does nothing when that is done already. Agents: claude (the default), codex, opencode, gemini. An
    image of your own that the configuration names is left alone.

    Example: podbot setup --yes --agents claude,codex
    """
    from podbot.cli.report import Reporter, printable
    from podbot.config.load import config_location, load_config
    from podbot.engine.connect import connect
    from podbot.flows.setup import plan_setup
    from podbot.flows.setup import setup as carry_out

    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: the build is broken off and swept up
        signal.signal(number, signal.default_int_handler)
    options = load_options(g)
    config = load_config(options)
    path, _, _ = config_location(options)
    reporter = Reporter(g, progress=True)
    engine = connect(config, os.environ, reporter)
    try:
        shop = _workshop(engine, os.environ, _with_steps(reporter))
        names = None if agents is None else [name.strip() for name in agents.split(",") if name.strip()]
        plan = plan_setup(shop, config=config, config_path=path, agents=names, force=force)
        reporter.clear()
        if plan.steps and not yes:
            _confirm(plan)
        result = carry_out(plan, shop)
    finally:
        reporter.clear()
        engine.close()
    typer.echo(printable(_summary(plan, result, config)))


def _workshop(engine: Engine, environ: Mapping[str, str], emit: Emit) -> Workshop:
    from podbot.engine import images
    from podbot.engine.private.machine import detect
    from podbot.flows.recipe import load_recipe
    from podbot.flows.setup import Workshop

    return Workshop(engine.endpoint, load_recipe(), detect(environ), environ, engine.image, images, emit)


def _with_steps(emit: Emit) -> Emit:
    """``emit``, and on a terminal the number of the build's step as progress."""
    from podbot.events import Event

    def tell(event: Event) -> None:
        emit(event)
        match = _STEP.match(event.message) if event.kind == "setup.line" and _is_terminal(sys.stderr) else None
        if match:
            emit(Event("info", "setup.progress", f"building the sandbox image, step {match[1]} of {match[2]}"))

    return tell


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
    return f"{first} Next: podbot run --workspace ."
