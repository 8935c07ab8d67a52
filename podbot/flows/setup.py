"""``podbot setup``: the sandbox image on the engine, and its name in the configuration. Idempotent.

First :func:`plan_setup` decides, from what the engine has, what is to be done; then :func:`setup` does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from podbot.config.models import AppConfig
from podbot.engine.port import ImageInfo
from podbot.engine.private.machine import MachineFacts
from podbot.errors import ImageBuildFailed
from podbot.events import Emit, Event, ignore
from podbot.flows import base_image
from podbot.flows.recipe import (
    CONTAINERFILE,
    DEFAULT_AGENTS,
    LABEL_AGENTS,
    LABEL_RECIPE,
    SANDBOX_REPOSITORY,
    Recipe,
    host_files,
)

# Where packages cannot come from this machine: a short name, which the engine resolves by its own table.
PULLED_BASE = "debian:bookworm-slim"
BASE_MEGABYTES = 280
NODE_MEGABYTES = 145
# Measured on two cores with the packages' mirrors near: mmdebstrap 40 s, Node 8 s, an agent 11 s.
BASE_SECONDS = 40
NODE_SECONDS = 10
AGENT_SECONDS = 15

StepKind = Literal["base", "pull", "build", "config"]
FindImage = Callable[[str], ImageInfo | None]


class ImageWorks(Protocol):
    """What setup needs of :mod:`podbot.engine.images`."""

    def build(
        self, endpoint: str, *, context: bytes, containerfile: str, tag: str,
        build_args: Mapping[str, str], labels: Mapping[str, str], no_cache: bool, on_line: Callable[[str], None],
    ) -> None: ...  # fmt: skip

    def import_rootfs(self, endpoint: str, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None: ...

    def pull(self, endpoint: str, *, reference: str, on_line: Callable[[str], None]) -> None: ...

    def remove(self, endpoint: str, *, image: str) -> bool: ...

    def context_archive(self, directory: str, extra: Mapping[str, bytes]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. ``megabytes`` and ``seconds`` are estimates, 0 when there is nothing to say."""

    kind: StepKind
    text: str
    megabytes: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """What setup will do. ``replaces``: ids of images that a new build leaves without a name.

    ``other_image``: the image that the configuration names instead of podbot's, and which is left
    alone; ``other_origin`` says where.
    """

    image: str
    base: str
    agents: tuple[str, ...]
    steps: tuple[Step, ...]
    config_path: str
    no_cache: bool = False
    replaces: tuple[str, ...] = ()
    other_image: str = ""
    other_origin: str = ""

    def has(self, *kinds: StepKind) -> bool:
        """One of these steps is in the plan."""
        return any(step.kind in kinds for step in self.steps)


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where setup works: the engine, this machine, and the functions that reach them."""

    endpoint: str
    recipe: Recipe
    facts: MachineFacts
    environ: Mapping[str, str]
    find_image: FindImage
    works: ImageWorks
    emit: Emit = ignore


@dataclass(frozen=True, slots=True)
class SetupResult:
    """What setup did; ``seconds`` is its wall time."""

    image: str
    built: bool
    config_path: str
    wrote_config: bool
    seconds: float


def plan_setup(
    shop: Workshop,
    *,
    config: AppConfig,
    config_path: str,
    agents: Collection[str] | None = None,
    origin: str = "flag --agents",
    force: bool = False,
) -> SetupPlan:
    """Decide. ``agents``: None is whatever the image has, or claude. Raises InvalidValue for an unknown one."""
    recipe = shop.recipe
    present = shop.find_image(recipe.image)
    chosen = recipe.check_agents(agents, origin) if agents is not None else _present_agents(present, recipe)
    steps: list[Step] = []
    replaces: list[str] = []
    base = recipe.base
    if force or not _is_current(present, recipe, chosen):
        base, steps, old_base = _plan_base(shop, force=force)
        names = ", ".join(f"{name} {recipe.agents[name].version}" for name in chosen) or "no agent"
        megabytes = NODE_MEGABYTES + sum(recipe.agents[name].megabytes for name in chosen)
        seconds = NODE_SECONDS + AGENT_SECONDS * len(chosen)
        steps.append(Step("build", f"build {recipe.image} with {names}", megabytes, seconds))
        replaces = [found.id for found in (present, old_base) if found is not None]
    other = _other_image(config)
    if not other and config.image != recipe.image:
        steps.append(Step("config", f'write image = "{recipe.image}" into {config_path}'))
    return SetupPlan(
        image=recipe.image,
        base=base,
        agents=chosen,
        steps=tuple(steps),
        config_path=config_path,
        no_cache=force,
        replaces=tuple(replaces),
        other_image=other if other != recipe.image else "",
        other_origin=str(config.origin("image")),
    )


def setup(plan: SetupPlan, shop: Workshop) -> SetupResult:
    """Do what ``plan`` says. Raises ImageBuildFailed, DiskFull, EngineGone, and PathError for the configuration."""
    began = time.monotonic()
    if plan.has("base"):
        _make_base(shop)
    if plan.has("pull"):
        _pull_base(shop, plan.base)
    if plan.has("build"):
        _build(plan, shop)
    if plan.has("config"):
        from podbot.config.write import set_key

        set_key(plan.config_path, "image", plan.image)
        _info(shop.emit, "setup.config", f'wrote image = "{plan.image}" into {plan.config_path}')
    if plan.other_image:
        text = f"the configuration names another image, {plan.other_image} ({plan.other_origin}); it is left as it is"
        shop.emit(Event("notice", "setup.other_image", text, {"image": plan.other_image, "origin": plan.other_origin}))
    seconds = time.monotonic() - began
    return SetupResult(plan.image, plan.has("build"), plan.config_path, plan.has("config"), seconds)


def _present_agents(present: ImageInfo | None, recipe: Recipe) -> tuple[str, ...]:
    label = present.labels.get(LABEL_AGENTS, "") if present else ""
    names = {part.partition("=")[0] for part in label.split(",")}
    return tuple(name for name in recipe.agents if name in names) or DEFAULT_AGENTS


def _is_current(present: ImageInfo | None, recipe: Recipe, agents: Iterable[str]) -> bool:
    """The image was built from this recipe and has at least these agents."""
    if present is None or present.labels.get(LABEL_RECIPE) != recipe.digest:
        return False
    return set(recipe.agents_label(agents).split(",")) <= set(present.labels.get(LABEL_AGENTS, "").split(","))


def _plan_base(shop: Workshop, *, force: bool) -> tuple[str, list[Step], ImageInfo | None]:
    """(base to build on, steps that make it, the base that it replaces)."""
    recipe = shop.recipe
    found = shop.find_image(recipe.base)
    if found is not None and not force and found.labels.get(LABEL_RECIPE) == recipe.base_digest:
        return recipe.base, [], None
    if base_image.can_debootstrap(shop.facts):
        text = f"make {recipe.base} from this machine's own {shop.facts.codename} packages"
        return recipe.base, [Step("base", text, BASE_MEGABYTES, BASE_SECONDS)], found
    if shop.find_image(PULLED_BASE) is not None:
        return PULLED_BASE, [], None
    return PULLED_BASE, [Step("pull", f"pull {PULLED_BASE}", BASE_MEGABYTES, BASE_SECONDS)], None


def _other_image(config: AppConfig) -> str:
    """The image that the operator chose; an earlier version's own image in the file is not a choice."""
    if not config.image:
        return ""
    ours = config.image.startswith(f"{SANDBOX_REPOSITORY}:")
    return "" if ours and config.origin("image").kind == "file" else config.image


def _make_base(shop: Workshop) -> None:
    recipe = shop.recipe
    _info(shop.emit, "setup.base", f"making {recipe.base} from Debian packages with mmdebstrap")
    sources = base_image.sources(base_image.apt_targets(), shop.facts)
    words = base_image.command(shop.facts, recipe.packages, sources)
    _lines(shop.emit)(" ".join(words))
    changes = ["CMD /bin/bash", f"LABEL {LABEL_RECIPE}={recipe.base_digest}"]
    archive = base_image.root_filesystem(words, shop.environ, recipe.base)
    try:
        shop.works.import_rootfs(shop.endpoint, archive=archive, tag=recipe.base, changes=changes)
    finally:
        archive.close()


def _pull_base(shop: Workshop, reference: str) -> None:
    _info(shop.emit, "setup.pull", f"pulling {reference}")
    try:
        shop.works.pull(shop.endpoint, reference=reference, on_line=_lines(shop.emit))
    except ImageBuildFailed as exc:
        hint = (
            "The engine cannot reach an image registry. On Debian or Ubuntu install mmdebstrap, and podbot makes its"
            f" base from packages; elsewhere load {reference} with `podman load`, or name an image of your own."
        )
        raise ImageBuildFailed(image=exc.image, step=exc.step, reason=exc.reason, hint=hint) from exc


def _build(plan: SetupPlan, shop: Workshop) -> None:
    _info(shop.emit, "setup.build", f"building {plan.image}")
    recipe = shop.recipe
    shop.works.build(
        shop.endpoint,
        context=shop.works.context_archive(recipe.directory, host_files(shop.environ, recipe.directory)),
        containerfile=CONTAINERFILE,
        tag=plan.image,
        build_args=recipe.build_args(plan.base, plan.agents),
        labels=recipe.labels(plan.agents),
        no_cache=plan.no_cache,
        on_line=_lines(shop.emit),
    )
    # What the new images replaced would stay as nameless gigabytes; one that a container still uses stays.
    current = {found.id for name in (plan.image, plan.base) if (found := shop.find_image(name)) is not None}
    for image in plan.replaces:
        if image not in current:
            shop.works.remove(shop.endpoint, image=image)


def _info(emit: Emit, kind: str, text: str) -> None:
    emit(Event("info", kind, text))


def _lines(emit: Emit) -> Callable[[str], None]:
    return lambda line: emit(Event("debug", "setup.line", line))
