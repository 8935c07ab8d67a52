"""``podbot image build``, and the part of ``podbot setup`` that builds: a base, the sandbox image on it, and its tag.

First :func:`plan_build` decides, from what the engine has, what is to be done; then :func:`build_image` does it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from podbot.engine.port import Engine, EngineWords, ImageBuilder, ImageInfo
from podbot.errors import ImageBuildFailed, ImageNotFound, InvalidValue, NoImageBuilder
from podbot.events import Emit, Event, ignore
from podbot.images import base_image
from podbot.images.context import context_archive
from podbot.images.recipe import (
    CONTAINERFILE,
    DEFAULT_AGENTS,
    LABEL_AGENTS,
    LABEL_RECIPE,
    PASSED_ON,
    Recipe,
    agents_in,
    host_files,
)
from podbot.machine import MachineFacts

# Where packages cannot come from this machine: a short name, which the engine resolves by its own table.
PULLED_BASE = "debian:bookworm-slim"
# Measured on two cores with the packages' mirrors near: mmdebstrap 40 s, Node 8 s, an agent 11 s.
BASE_MEGABYTES, BASE_SECONDS = 230, 40
NODE_MEGABYTES, NODE_SECONDS = 121, 10
AGENT_SECONDS = 15

StepKind = Literal["base", "pull", "build", "config"]
FindImage = Callable[[str], ImageInfo | None]

_STEP = re.compile(r"STEP (\d+)/(\d+): ([A-Z]+)")
_TITLE = re.compile(r": '([^']+)';")
_CACHED = "--> Using cache"
_REFERENCE = re.compile(
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::\d{1,5}(?=/))?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::[A-Za-z0-9_][\w.-]{0,127})?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class BuildContext:
    """Where images are made: the engine's part that makes them, this machine, and podbot's recipe.

    ``base_hint``: why this user's own engine may be unable to unpack a base image; empty when nothing is known.
    """

    recipe: Recipe
    facts: MachineFacts
    environ: Mapping[str, str]
    find_image: FindImage
    builder: ImageBuilder
    words: EngineWords
    emit: Emit = ignore
    base_hint: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. ``megabytes`` and ``seconds`` are estimates, 0 when there is nothing to say."""

    kind: StepKind
    text: str
    megabytes: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What the caller wants built. ``agents``: None is what the image of that tag has, or claude.

    ``base``: build on this image; ``from_debian``: make the base from packages or fail. ``build_args``: other
    versions, or proxy settings. ``fresh_base``: make the base anew although it is there.
    """

    agents: Collection[str] | None = None
    base: str = ""
    from_debian: bool = False
    build_args: Mapping[str, str] = field(default_factory=dict)
    no_cache: bool = False
    fresh_base: bool = False
    tag: str = ""
    agents_origin: str = "flag --agents"


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What a build will do. ``replaces``: ids of images that it leaves without a name."""

    image: str
    base: str
    agents: tuple[str, ...]
    recipe: Recipe
    steps: tuple[Step, ...]
    no_cache: bool = False
    replaces: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # what the build's steps may see of

    def has(self, kind: StepKind) -> bool:
        """Such a step is in the plan."""
        return any(step.kind == kind for step in self.steps)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """An image that was built. ``cached``: every layer was there. ``seconds`` is wall time, ``size`` bytes."""

    image: str
    agents: Mapping[str, str]
    cached: bool
    seconds: float
    size: int


def builder_of(engine: Engine) -> ImageBuilder:
    """What makes images on ``engine``. Raises NoImageBuilder for an engine of a kind that cannot."""
    builder = engine.image_builder
    if builder is None:
        raise NoImageBuilder(engine=engine.words.name)
    return builder


def plan_build(context: BuildContext, request: BuildRequest) -> BuildPlan:
    """Decide. Raises InvalidValue for what cannot be built, ImageNotFound for a named base that is missing."""
    settings = {name: value for name, value in request.build_args.items() if name in PASSED_ON}
    versions = {name: value for name, value in request.build_args.items() if name not in PASSED_ON}
    recipe = context.recipe.changed(versions, "flag --build-arg")
    image = request.tag or recipe.image
    if not _REFERENCE.fullmatch(image):
        raise InvalidValue(field="tag", origin="flag --tag", reason=f"{image!r} is not the name of an image")
    present = context.find_image(image)
    there = agents_in(present.labels.get(LABEL_AGENTS, "")) if present else {}
    if request.agents is not None:
        chosen = recipe.check_agents(request.agents, request.agents_origin)
    else:
        chosen = tuple(name for name in recipe.agents if name in there) or DEFAULT_AGENTS
    # Those that are there first, in their order: their layers are found again, and only new ones are installed.
    chosen = (*(name for name in there if name in chosen), *(name for name in chosen if name not in there))
    base, steps, old_base = _plan_base(context, request)
    names = ", ".join(f"{name} {recipe.agents[name].version}" for name in chosen) or "no agent"
    megabytes = NODE_MEGABYTES + sum(recipe.agents[name].megabytes for name in chosen)
    seconds = NODE_SECONDS + AGENT_SECONDS * len(chosen)
    steps.append(Step("build", f"build {image} with {names}", megabytes, seconds))
    return BuildPlan(
        image=image,
        base=base,
        agents=chosen,
        recipe=recipe,
        steps=tuple(steps),
        no_cache=request.no_cache,
        replaces=tuple(found.id for found in (present, old_base) if found is not None),
        environ={**context.environ, **settings},
    )


def build_image(plan: BuildPlan, context: BuildContext) -> BuildResult:
    """Do what ``plan`` says. The tag is what it was after a failure.

    Raises ImageBuildFailed, EngineStorageFull, DiskFull, EngineGone.
    """
    began = time.monotonic()
    if plan.has("base"):
        _make_base(context)
    if plan.has("pull"):
        _pull_base(context, plan.base)
    cached = _build(plan, context)
    found = context.find_image(plan.image)
    agents = {name: plan.recipe.agents[name].version for name in plan.agents}
    return BuildResult(plan.image, agents, cached, time.monotonic() - began, found.size if found else 0)


def _plan_base(context: BuildContext, request: BuildRequest) -> tuple[str, list[Step], ImageInfo | None]:
    """(base to build on, steps that make it, the base that it replaces)."""
    recipe = context.recipe
    if request.base:
        if request.from_debian:
            reason = "a base that is named is not made from Debian packages"
            raise InvalidValue(field="base", origin="flag --from-debian", reason=reason, hint="Say one of the two.")
        if context.find_image(request.base) is None:
            hint = context.words.fetch(request.base)
            raise ImageNotFound(image=request.base, origin="flag --base", engine_hint=hint)
        return request.base, [], None
    found = context.find_image(recipe.base)
    if found is not None and not request.fresh_base and found.labels.get(LABEL_RECIPE) == recipe.base_digest:
        return recipe.base, [], None
    if base_image.can_debootstrap(context.facts):
        text = f"make {recipe.base} from this machine's own {context.facts.codename} packages"
        return recipe.base, [Step("base", text, BASE_MEGABYTES, BASE_SECONDS)], found
    if request.from_debian:
        reason = "this machine cannot make a base from packages: it takes Debian or Ubuntu, and mmdebstrap"
        hint = "Install mmdebstrap (`podbot doctor` shows how), or name a base with --base."
        raise InvalidValue(field="base", origin="flag --from-debian", reason=reason, hint=hint)
    if context.find_image(PULLED_BASE) is not None:
        return PULLED_BASE, [], None
    return PULLED_BASE, [Step("pull", f"pull {PULLED_BASE}", BASE_MEGABYTES, BASE_SECONDS)], None


def _make_base(context: BuildContext) -> None:
    recipe = context.recipe
    _info(context.emit, "image.base", f"making {recipe.base} from Debian packages with mmdebstrap")
    sources = base_image.sources(base_image.apt_targets(), context.facts)
    words = base_image.command(context.facts, recipe.packages, recipe.left_out, sources)
    _line(context.emit, " ".join(words))
    changes = ["CMD /bin/bash", f"LABEL {LABEL_RECIPE}={recipe.base_digest}"]
    archive = base_image.root_filesystem(words, context.environ, recipe.base)
    try:
        context.builder.import_rootfs(archive=archive, tag=recipe.base, changes=changes)
    except ImageBuildFailed as exc:
        # Without a range of user ids mmdebstrap says no more than "unable to pick chroot mode automatically".
        hint = context.base_hint or exc.hint
        raise ImageBuildFailed(image=exc.image, step=exc.step, reason=exc.reason, hint=hint) from exc
    finally:
        archive.close()


def _pull_base(context: BuildContext, reference: str) -> None:
    _info(context.emit, "image.pull", f"pulling {reference}")
    try:
        context.builder.pull(reference=reference, on_line=lambda line: _line(context.emit, line))
    except ImageBuildFailed as exc:
        load = f"load {reference} with `{context.words.load}`, or " if context.words.load else ""
        hint = (
            "The engine cannot reach an image registry. On Debian or Ubuntu install mmdebstrap, and podbot makes its"
            f" base from packages; elsewhere {load}name an image of your own."
        )
        raise ImageBuildFailed(image=exc.image, step=exc.step, reason=exc.reason, hint=hint) from exc


def _build(plan: BuildPlan, context: BuildContext) -> bool:
    """Build, tag and sweep; whether every layer came from the cache."""
    _info(context.emit, "image.build", f"building {plan.image}")
    recipe, progress = plan.recipe, _Progress(context.emit)
    context.builder.build(
        context=context_archive(
            recipe.directory,
            {**host_files(plan.environ, recipe.directory), CONTAINERFILE: recipe.containerfile(plan.agents).encode()},
        ),
        containerfile=CONTAINERFILE,
        tag=plan.image,
        build_args=recipe.build_args(plan.base),
        no_cache=plan.no_cache,
        on_line=progress,
    )
    # What the new images replaced would stay as nameless gigabytes; one that a container still uses stays.
    current = {found.id for name in (plan.image, plan.base) if (found := context.find_image(name)) is not None}
    for image in plan.replaces:
        if image not in current:
            context.builder.remove(image=image)
    return progress.cached


class _Progress:
    """The engine's lines of output as events: each line for -v, and each step that has a title as progress."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open = False  # a step began that has a layer of its own, and its end was not seen
        self.cached = True

    def __call__(self, line: str) -> None:
        _line(self._emit, line)
        if step := _STEP.match(line):
            self._open = step[3] != "FROM"
            self._tell(step, line)
        elif line.startswith(_CACHED):
            self._open = False
        elif line.startswith("--> "):
            self.cached = self.cached and not self._open
            self._open = False

    def _tell(self, step: re.Match[str], line: str) -> None:
        found = _TITLE.search(line)
        if found:
            fields = {"step": int(step[1]), "steps": int(step[2]), "title": found[1]}
            self._emit(Event("info", "image.step", f"step {step[1]} of {step[2]}: {found[1]}", fields))


def _info(emit: Emit, kind: str, text: str) -> None:
    emit(Event("info", kind, text))


def _line(emit: Emit, line: str) -> None:
    emit(Event("debug", "image.line", line))
