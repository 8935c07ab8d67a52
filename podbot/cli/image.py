"""``podbot image``: build the sandbox image, and list those that are there."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from podbot.cli.globals import Globals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podbot.engine.port import Engine
    from podbot.events import Emit
    from podbot.images.image_build import BuildContext, BuildResult
    from podbot.images.images_list import SandboxImage


def build(
    g: Globals,
    *,
    agents: str | None,
    base: str,
    from_debian: bool,
    build_arg: tuple[str, ...],
    no_cache: bool,
    tag: str,
) -> int:
    """Build the sandbox image; returns podbot's exit code."""
    from podbot.cli.report import Reporter, printable
    from podbot.config.load import load_config
    from podbot.engine.podman.connect import connect
    from podbot.images.build_turn import build_turn
    from podbot.images.image_build import BuildRequest, build_image, plan_build
    from podbot.session.orphans import report_orphans

    end_on_signals()
    request = BuildRequest(
        agents=None if agents is None else names(agents),
        base=base.strip(),
        from_debian=from_debian,
        build_args=_build_args(build_arg),
        no_cache=no_cache,
        fresh_base=no_cache and from_debian,
        tag=tag.strip(),
    )
    reporter = Reporter(g, progress=True)
    engine = connect(load_config(g.load_options(os.environ, {}, {})), os.environ, reporter)
    try:
        report_orphans(engine, os.environ, reporter)
        context = build_context(engine, os.environ, reporter)
        plan_build(context, request)  # what cannot be built is refused before any waiting
        with build_turn(os.environ, engine.endpoint, reporter):
            result = build_image(plan_build(context, request), context)
    finally:
        reporter.clear()
        engine.close()
    typer.echo(printable(_summary(result)))
    return 0


def ls(g: Globals, *, as_json: bool) -> int:
    """List podbot's images: name, agents and their versions, size, age."""
    from podbot.cli.report import Reporter
    from podbot.config.load import load_config
    from podbot.engine.podman.connect import connect
    from podbot.images.images_list import sandbox_images
    from podbot.session.orphans import report_orphans

    reporter = Reporter(g)
    engine = connect(load_config(g.load_options(os.environ, {}, {})), os.environ, reporter)
    try:
        report_orphans(engine, os.environ, reporter)
        found = sandbox_images(engine)
    finally:
        engine.close()
    if as_json:
        _json(found)
    elif found:
        _table(found)
    return 0


def names(text: str) -> list[str]:
    """``a, b,c`` as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def end_on_signals() -> None:
    """TERM and HUP as Ctrl-C: the build is broken off and swept up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def build_context(engine: Engine, environ: Mapping[str, str], emit: Emit) -> BuildContext:
    """This machine, the engine and podbot's recipe."""
    from podbot.diagnosis.rootless_checks import user_ids_hint
    from podbot.engine.podman import images
    from podbot.engine.podman.private.machine import detect
    from podbot.images.image_build import BuildContext
    from podbot.images.recipe import load_recipe

    facts = detect(environ)
    find, hint = engine.image, user_ids_hint(facts)
    return BuildContext(engine.endpoint, load_recipe(), facts, environ, find, images, emit, hint)


def _build_args(pairs: Iterable[str]) -> dict[str, str]:
    from podbot.errors import InvalidValue

    args = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            # The value may be a proxy's password: it is not repeated.
            reason = "an argument is written NAME=VALUE"
            raise InvalidValue(field="build-arg", origin="flag --build-arg", reason=reason)
        args[name] = value
    return args


def _summary(result: BuildResult) -> str:
    agents = ", ".join(f"{name} {version}" for name, version in result.agents.items()) or "no agent"
    how = "is up to date: every layer was there already" if result.cached else f"was built in {result.seconds:.0f} s"
    return f"{result.image} with {agents} {how} ({result.size / 1e6:.0f} MB)."


def _json(found: Iterable[SandboxImage]) -> None:
    import json
    from dataclasses import asdict

    sys.stdout.write(json.dumps([asdict(image) for image in found], indent=2) + "\n")


def _table(found: Iterable[SandboxImage]) -> None:
    import time

    from rich.console import Console
    from rich.table import Table

    from podbot.cli.report import printable

    console = Console(highlight=False)
    if not console.is_terminal:  # a pipe has no width: nothing is to be cut off
        console = Console(highlight=False, width=1000)
    table = Table(box=None, pad_edge=False)
    for title in ("IMAGE", "AGENTS", "SIZE", "AGE"):
        table.add_column(title, overflow="fold")
    now = time.time()
    for image in found:
        agents = ", ".join(f"{name} {version}" for name, version in image.agents.items()) or "none"
        cells = (
            image.image,
            agents,
            f"{image.size / 1e6:.0f} MB",
            age(now - image.created),
        )
        table.add_row(*map(printable, cells))
    console.print(table)


def age(seconds: float) -> str:
    """Time that passed, in its largest unit: ``3 days``."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "seconds"
