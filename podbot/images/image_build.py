"""Builds the base and the sandbox image, for ``podbot image build`` and ``podbot setup``.

:func:`plan_build` decides the steps from what the engine has; then :func:`build_image` carries them out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from podbot.config.checks import Refusal, check_packages
from podbot.config.models import Origin
from podbot.engine.port import Engine, EngineWords, ImageBuilder, ImageInfo
from podbot.errors import ImageBuildFailed, ImageNotFound, InvalidValue, NoImageBuilder
from podbot.events import Emit, Event, ignore
from podbot.frozen import refuse_text
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
    chosen_in,
    host_files,
)
from podbot.machine import MachineFacts

# For machines without mmdebstrap: a short name, which the engine resolves with its own table.
PULLED_BASE = "debian:bookworm-slim"
# Measured on two cores with nearby package mirrors: mmdebstrap 40 s, Node 8 s, an agent 11 s.
BASE_MEGABYTES, BASE_SECONDS = 230, 40
NODE_MEGABYTES, NODE_SECONDS = 121, 10
AGENT_SECONDS = 15

StepKind = Literal["packages", "base", "pull", "build", "config"]
FindImage = Callable[[str], ImageInfo | None]

_STEP = re.compile(r"STEP (\d+)/(\d+): ([A-Z]+)")
_TITLE = re.compile(r": '([^']+)';")
_CACHED = "--> Using cache"
_REFERENCE = re.compile(
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::\d{1,5}(?=/))?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::[A-Za-z0-9_][\w.-]{0,127})?",
    re.ASCII,
)


_NO_PACKAGE = re.compile("Unable to locate package|has no installation candidate")
_NO_PROXY = re.compile(r"ProxyError|Cannot connect to proxy|Tunnel connection failed|ECONNREFUSED|[Pp]roxy CONNECT")
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The surroundings of a build: the engine's image builder, this machine, and podbot's recipe.

    ``builder``: None while there is no engine yet; a build can then only be planned. ``base_hint``: why this
    user's own engine may be unable to unpack a base image; empty when nothing is known. ``apt_targets``: this
    machine's package sources, in apt's words.
    """

    recipe: Recipe
    facts: MachineFacts
    environ: Mapping[str, str]
    find_image: FindImage
    builder: ImageBuilder | None
    words: EngineWords
    emit: Emit = ignore
    base_hint: str = ""
    apt_targets: Callable[[], str] = base_image.apt_targets

    @property
    def works(self) -> ImageBuilder:
        """The builder. Raises NoImageBuilder."""
        if self.builder is None:
            raise NoImageBuilder(engine=self.words.name)
        return self.builder


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a build. ``megabytes`` and ``seconds`` are estimates, or 0."""

    kind: StepKind
    text: str
    megabytes: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The caller's request. ``agents``: None means those of the existing image with that tag, or of ``earlier``, or
    ``usual``, or claude; ``also``: others that must be in it, too.

    ``base``: build on this image; ``from_debian``: make the base from packages or fail. ``build_args``: other
    versions, or proxy settings. ``fresh_base``: make the base again even if it exists. ``versions``: those that the
    configuration chose, by agent; without one, an agent keeps what a build argument chose for the existing image, and
    otherwise gets podbot's. ``packages``: Debian packages to add to the image; None means the configuration's.
    ``earlier``: the image in use until now, if another podbot built it under another tag.
    ``flags``: field -> the option that set it, for error messages, as in LoadOptions.
    """

    agents: Collection[str] | None = None
    also: Collection[str] = ()
    usual: Collection[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    packages: Collection[str] | None = None
    earlier: str = ""
    base: str = ""
    from_debian: bool = False
    build_args: Mapping[str, str] = field(default_factory=dict)
    no_cache: bool = False
    fresh_base: bool = False
    tag: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("agents", "also", "usual", "packages"):
            refuse_text("BuildRequest()", name, getattr(self, name))

    def origin(self, name: str) -> str:
        """Where the field ``name`` came from, in the caller's words."""
        return str(Origin("flag", self.flags.get(name, f"BuildRequest.{name}")))


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """The plan of a build. ``replaces``: ids of images that lose their name."""

    image: str
    base: str
    agents: tuple[str, ...]
    recipe: Recipe
    steps: tuple[Step, ...]
    no_cache: bool = False
    replaces: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # passed to the build's steps

    def has(self, kind: StepKind) -> bool:
        """Whether the plan has a step of that kind."""
        return any(step.kind == kind for step in self.steps)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A built image. ``cached``: every layer existed. ``seconds``: wall time; ``size``: bytes."""

    image: str
    agents: Mapping[str, str]
    cached: bool
    seconds: float
    size: int


def builder_of(engine: Engine) -> ImageBuilder:
    """The image builder of ``engine``. Raises NoImageBuilder, and UnsupportedEndpoint over ssh and https."""
    builder = engine.image_builder
    if builder is None:
        raise NoImageBuilder(engine=engine.words.name)
    return builder


def plan_build(context: BuildContext, request: BuildRequest) -> BuildPlan:
    """Plan the build. Raises InvalidValue for an invalid request, ImageNotFound if the named base is missing."""
    settings = {name: value for name, value in request.build_args.items() if name in PASSED_ON}
    versions = {name: value for name, value in request.build_args.items() if name not in PASSED_ON}
    image = request.tag or context.recipe.image
    if not _REFERENCE.fullmatch(image):
        raise InvalidValue(field="tag", origin=request.origin("tag"), reason=f"{image!r} is not the name of an image")
    present = context.find_image(image)
    earlier = present or (context.find_image(request.earlier) if request.earlier else None)
    labels = earlier.labels if earlier else {}
    kept = {name: version for name, version in chosen_in(labels).items() if name not in request.versions}
    recipe = replace(context.recipe.with_versions({**kept, **request.versions}), chosen=frozenset(kept))
    recipe = recipe.changed(versions, request.origin("build_args"))
    recipe = replace(recipe, added=_packages(request))
    there = agents_in(labels.get(LABEL_AGENTS, ""))
    chosen = _chosen_agents(recipe, request, there)
    # Existing agents come first, in their order, so that their layers are reused and only new ones are installed.
    chosen = (*(name for name in there if name in chosen), *(name for name in chosen if name not in there))
    base, steps, old_base = _plan_base(context, request)
    names = ", ".join(f"{name} {recipe.agents[name].version}" for name in chosen) or "no agent"
    megabytes = NODE_MEGABYTES + sum(recipe.agents[name].megabytes for name in chosen)
    seconds = NODE_SECONDS + AGENT_SECONDS * len(chosen)
    added = f", and the packages {', '.join(recipe.added)}, whose size is not known," if recipe.added else ""
    steps.append(Step("build", f"build {image} with {names}{added}", megabytes, seconds))
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


def _packages(request: BuildRequest) -> tuple[str, ...]:
    names = tuple(sorted({*(request.packages or ())}))
    try:
        check_packages(names)
    except Refusal as exc:
        raise InvalidValue(
            field="packages", origin=request.origin("packages"), reason=exc.reason, hint=exc.hint
        ) from exc
    return names


def _chosen_agents(recipe: Recipe, request: BuildRequest, there: Collection[str]) -> tuple[str, ...]:
    """The agents to build in. ``there``: those of the existing image. Raises InvalidValue for an unknown one."""
    if request.agents is not None:
        return recipe.check_agents([*request.agents, *request.also], request.origin("agents"))
    known = {name for name in there if name in recipe.agents}
    usual = known or {name for name in request.usual if name in recipe.agents} or DEFAULT_AGENTS
    return recipe.check_agents([*usual, *request.also], request.origin("agents"))


def build_image(plan: BuildPlan, context: BuildContext) -> BuildResult:
    """Carry out ``plan``. A failure leaves the tag unchanged.

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
    recipe, origin = context.recipe, request.origin("from_debian")
    if request.base:
        if request.from_debian:
            reason = "a named base is not made from Debian packages"
            raise InvalidValue(field="base", origin=origin, reason=reason, hint="Leave one of them out.")
        if context.find_image(request.base) is None:
            hint = context.words.fetch(request.base)
            raise ImageNotFound(image=request.base, origin=request.origin("base"), engine_hint=hint)
        return request.base, [], None
    found = context.find_image(recipe.base)
    if found is not None and not request.fresh_base and found.labels.get(LABEL_RECIPE) == recipe.base_digest:
        return recipe.base, [], None
    if base_image.can_debootstrap(context.facts):
        text = f"make {recipe.base} from this machine's own {context.facts.codename} packages"
        return recipe.base, [Step("base", text, BASE_MEGABYTES, BASE_SECONDS)], found
    if request.from_debian:
        reason = "this machine cannot make a base from packages: that requires Debian or Ubuntu, and mmdebstrap"
        hint = "Install mmdebstrap, or name a base."
        raise InvalidValue(field="base", origin=origin, reason=reason, hint=hint)
    if context.find_image(PULLED_BASE) is not None:
        return PULLED_BASE, [], None
    return PULLED_BASE, [Step("pull", f"pull {PULLED_BASE}", BASE_MEGABYTES, BASE_SECONDS)], None


def _make_base(context: BuildContext) -> None:
    recipe = context.recipe
    _info(context.emit, "image.base", f"making {recipe.base} from Debian packages with mmdebstrap")
    sources = base_image.sources(context.apt_targets(), context.facts)
    words = base_image.command(context.facts, recipe.packages, recipe.left_out, sources)
    _line(context.emit, " ".join(words))
    changes = ["CMD /bin/bash", f"LABEL {LABEL_RECIPE}={recipe.base_digest}"]
    archive = base_image.root_filesystem(words, context.environ, recipe.base)
    try:
        context.works.import_rootfs(archive=archive, tag=recipe.base, changes=changes)
    except ImageBuildFailed as exc:
        # Without a range of user ids, mmdebstrap's only message is "unable to pick chroot mode automatically".
        hint = context.base_hint or exc.hint
        raise ImageBuildFailed(image=exc.image, step=exc.step, reason=exc.reason, hint=hint) from exc
    finally:
        archive.close()


def _pull_base(context: BuildContext, reference: str) -> None:
    _info(context.emit, "image.pull", f"pulling {reference}")
    try:
        context.works.pull(reference=reference, on_line=lambda line: _line(context.emit, line))
    except ImageBuildFailed as exc:
        load = f"load {reference} with `{context.words.load}`, or " if context.words.load else ""
        hint = (
            "The engine cannot reach an image registry. On Debian or Ubuntu install mmdebstrap, and podbot makes its"
            f" base from packages; elsewhere {load}name an image of your own."
        )
        raise ImageBuildFailed(image=exc.image, step=exc.step, reason=exc.reason, hint=hint) from exc


def _build(plan: BuildPlan, context: BuildContext) -> bool:
    """Build, tag and remove replaced images; returns whether every layer came from the cache."""
    _info(context.emit, "image.build", f"building {plan.image}")
    recipe, text = plan.recipe, plan.recipe.containerfile(plan.agents)
    progress = _Progress(context.emit, titles_in(text))
    files = {**host_files(plan.environ, recipe.directory), CONTAINERFILE: text.encode()}
    try:
        context.works.build(
            context=context_archive(recipe.directory, files),
            containerfile=CONTAINERFILE,
            tag=plan.image,
            build_args=recipe.build_args(plan.base),
            no_cache=plan.no_cache,
            on_line=progress,
        )
    except ImageBuildFailed as exc:
        raise _explained(exc, plan) from exc
    # Remove the replaced images, which would stay as gigabytes without a name; one that a container uses stays.
    current = {found.id for name in (plan.image, plan.base) if (found := context.find_image(name)) is not None}
    for image in plan.replaces:
        if image not in current:
            context.works.remove(image=image)
    return progress.cached


def _explained(exc: ImageBuildFailed, plan: BuildPlan) -> ImageBuildFailed:
    """With the proxy in the reason if the step could not use it: pip and npm print a page of their own retries. With
    a remedy for a package that apt does not know.
    """
    if plan.recipe.added and _NO_PACKAGE.search(exc.reason):
        named = f"The packages that are added are {', '.join(plan.recipe.added)} (sandbox.packages)."
        hint = f"{named} Correct the name, or leave the package out."
        return ImageBuildFailed(image=exc.image, step=exc.step, reason=exc.reason, hint=hint)
    environ = plan.environ
    if not _NO_PROXY.search(exc.reason):
        return exc
    names = [name for name in PROXIES if environ.get(name)]
    if not names:
        return exc
    address = environ[names[0]].rpartition("@")[2]  # without a password
    reason = f"the package index cannot be reached through {names[0]} ({address.rpartition('//')[2]})"
    hint = f"Correct or unset {names[0]}."
    return ImageBuildFailed(image=exc.image, step=exc.step, reason=reason, hint=hint)


def titles_in(containerfile: str) -> list[str]:
    """The titles of the steps of a Containerfile, in order: the word of the command ``:`` with which a step begins."""
    return re.findall(r"^RUN .*?: '([^']+)';", containerfile, re.MULTILINE)


class _Progress:
    """Emits the engine's output as events: each line for -v, and each step with a title as progress.

    ``titles``: those of all steps, in order.
    """

    def __init__(self, emit: Emit, titles: Sequence[str]) -> None:
        self._emit = emit
        self._titles = [*titles, ""]
        self._open = False  # whether a step with its own layer has begun and not ended
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
            following = self._titles[self._titles.index(found[1]) + 1] if found[1] in self._titles[:-1] else ""
            fields |= {"next": following} if following else {}
            self._emit(Event("info", "image.step", f"step {step[1]} of {step[2]}: {found[1]}", fields))


def _info(emit: Emit, kind: str, text: str) -> None:
    emit(Event("info", kind, text))


def _line(emit: Emit, line: str) -> None:
    emit(Event("debug", "image.line", line))
