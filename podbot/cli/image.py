"""``podbot image``: build the sandbox image, list images, and remove them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from podbot.cli.globals import Globals
from podbot.cli.interaction import confirm
from podbot.cli.signals import end_on_signals

if TYPE_CHECKING:
    from podbot.images.image_build import BuildResult
    from podbot.images.images_list import SandboxImage
    from podbot.images.images_remove import Removable

_REQUEST_FLAGS = {
    "agents": "--agents",
    "base": "--base",
    "from_debian": "--from-debian",
    "build_args": "--build-arg",
    "tag": "--tag",
}  # fields of a BuildRequest, for errors


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
    from podbot.api.images import build_image
    from podbot.cli.report import Reporter
    from podbot.config.load import load_config
    from podbot.images.image_build import BuildRequest
    from podbot.visible_text import printable

    end_on_signals()
    request = BuildRequest(
        agents=None if agents is None else names(agents),
        base=base.strip(),
        from_debian=from_debian,
        build_args=_build_args(build_arg),
        no_cache=no_cache,
        fresh_base=no_cache and from_debian,
        tag=tag.strip(),
        flags=_REQUEST_FLAGS,
    )
    reporter = Reporter(g, progress=True)
    try:
        result = build_image(load_config(g.load_options(os.environ, {}, {})), request, emit=reporter)
    finally:
        reporter.clear()
    sys.stdout.write(printable(_summary(result)) + "\n")
    return 0


def update(g: Globals, *, agents: tuple[str, ...]) -> int:
    """Install other versions of agents; returns podbot's exit code."""
    from podbot.api.preparing import update_agents
    from podbot.cli.report import Reporter
    from podbot.visible_text import printable

    end_on_signals()
    reporter = Reporter(g, progress=True)
    try:
        result = update_agents(g.load_options(os.environ, {}, {}), versions_in(agents), emit=reporter)
    finally:
        reporter.clear()
    found = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    how = f"was built in {result.seconds:.0f} s with {found}." if result.built else f"has {found}; nothing was built."
    sys.stdout.write(printable(f"{result.image} {how}") + "\n")
    return 0


def versions_in(words: Iterable[str]) -> dict[str, str]:
    """``claude`` and ``codex=0.170.0`` as agent -> version, empty for the newest. Raises InvalidValue."""
    from podbot.errors import InvalidValue

    found: dict[str, str] = {}
    for word in words:
        name, equals, version = word.partition("=")
        agent, at, number = word.partition("@")
        if at and agent and number and not equals:  # as npm writes it
            reason = f"{word!r} is not AGENT or AGENT=VERSION"
            hint = f"Write {agent}={number}."
            raise InvalidValue(field="agents", origin="argument AGENT", reason=reason, hint=hint)
        if not name or (equals and not version) or name in found:
            reason = f"{word!r} is not AGENT or AGENT=VERSION, or names an agent twice"
            raise InvalidValue(field="agents", origin="argument AGENT", reason=reason)
        found[name] = version
    return found


def ls(g: Globals, *, names_only: bool, as_json: bool) -> int:
    """List podbot's images: name, agents and their versions, size, age."""
    from podbot.api.images import list_images
    from podbot.cli.report import Reporter
    from podbot.config.load import load_config
    from podbot.errors import UsageError
    from podbot.visible_text import printable

    if names_only and as_json:
        raise UsageError(command="podbot image ls", reason="only one of --json and --quiet can be given")
    found = list_images(load_config(g.load_options(os.environ, {}, {})), emit=Reporter(g))
    if as_json:
        from dataclasses import asdict

        _json(map(asdict, found))
    elif names_only:
        for image in found:
            sys.stdout.write(printable(image.image) + "\n")
    elif found:
        _table(found)
    elif not g.quiet:
        from podbot.cli.report import say

        say("podbot: this engine has no image of podbot's; `podbot setup` builds one")
    return 0


def mistake(*, images: tuple[str, ...], all_: bool, **_: object) -> str:
    """An error about the combination of values of ``rm``, or empty."""
    if images and all_:
        return "IMAGE and --all exclude each other"
    return "" if images or all_ else "name an IMAGE, or use --all; `podbot image ls` lists them"


def rm(g: Globals, *, images: tuple[str, ...], all_: bool, yes: bool, as_json: bool) -> int:
    """Remove images, and print each, or all as JSON; returns podbot's exit code."""
    from podbot.api.images import named_images, remove_images, unused_images
    from podbot.cli.remedies import paragraph
    from podbot.cli.report import Reporter
    from podbot.config.load import configured_images, load_config
    from podbot.events import Event
    from podbot.visible_text import printable

    end_on_signals()
    options, emit = g.load_options(os.environ, {}, {}), Reporter(g, late=True)
    config = load_config(options)
    try:
        if all_:
            chosen = unused_images(config, configured_images(options), emit=emit)
        else:
            chosen = named_images(config, images, emit=emit)
    finally:
        emit.clear()
    if all_ and chosen and not yes:
        confirm([f"{found.image} ({found.size / 1e6:.0f} MB)" for found in chosen], "Remove these images?")
    removed: list[Removable] = []
    refused = False
    try:
        for image, error in remove_images(config, chosen, emit=emit):
            if error is not None:
                refused = True
                emit(Event("warning", "image.stays", paragraph(error), {"image": error.image, "reason": error.reason}))
                continue
            removed.append(image)
            emit.clear()  # what is printed would tear the line of progress
            if not as_json:
                sys.stdout.write(printable(image.image) + "\n")
                sys.stdout.flush()  # each when it is gone, and an error before the next one
    finally:
        emit.clear()
        if as_json:
            _json({"image": image.image, "id": image.id, "size": image.size} for image in removed)
    return 1 if refused else 0


def names(text: str) -> list[str]:
    """``a, b,c`` as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _build_args(pairs: Iterable[str]) -> dict[str, str]:
    from podbot.errors import InvalidValue

    args = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            # The value may contain a proxy's password, so it is not repeated.
            reason = "an argument is written NAME=VALUE"
            raise InvalidValue(field="build-arg", origin="flag --build-arg", reason=reason)
        args[name] = value
    return args


def _summary(result: BuildResult) -> str:
    agents = ", ".join(f"{name} {version}" for name, version in result.agents.items()) or "no agent"
    how = "is up to date: every layer existed already" if result.cached else f"was built in {result.seconds:.0f} s"
    return f"{result.image} with {agents} {how} ({result.size / 1e6:.0f} MB)."


def _json(found: Iterable[dict[str, Any]]) -> None:
    import json

    sys.stdout.write(json.dumps([*found], indent=2) + "\n")


def _table(found: Iterable[SandboxImage]) -> None:
    import time

    from rich.console import Console
    from rich.table import Table

    from podbot.visible_text import printable

    console = Console(highlight=False)
    if not console.is_terminal:  # a pipe has no width, so nothing must be cut off
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
    """A duration in its largest unit, such as ``3 days``."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "seconds"
