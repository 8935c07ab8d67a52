"""``podbot setup``: the sandbox image on the engine, and its name in the configuration. Idempotent.

First :func:`plan_setup` decides, from what the engine has, what is to be done; then :func:`setup` does it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from podbot.config.models import AppConfig
from podbot.engine.port import Engine, ImageInfo
from podbot.events import Event
from podbot.images.image_build import BuildContext, BuildPlan, BuildRequest, Step, build_image, plan_build
from podbot.images.recipe import LABEL_AGENTS, LABEL_RECIPE, SANDBOX_REPOSITORY, Recipe


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """What setup will do. ``build`` is None when the image is there and current.

    ``other_image``: the image that the configuration names instead of podbot's, and which is left
    alone; ``other_origin`` says where.
    """

    image: str
    agents: tuple[str, ...]
    steps: tuple[Step, ...]
    config_path: str
    build: BuildPlan | None = None
    other_image: str = ""
    other_origin: str = ""

    @property
    def writes_config(self) -> bool:
        """The image's name goes into the configuration."""
        return any(step.kind == "config" for step in self.steps)


@dataclass(frozen=True, slots=True)
class SetupResult:
    """What setup did; ``seconds`` is its wall time."""

    image: str
    built: bool
    config_path: str
    wrote_config: bool
    seconds: float


def plan_setup(
    context: BuildContext,
    *,
    config: AppConfig,
    config_path: str,
    agents: Collection[str] | None = None,
    origin: str = "flag --agents",
    force: bool = False,
) -> SetupPlan:
    """Decide. ``agents``: None is whatever the image has, or claude. Raises InvalidValue for an unknown one."""
    recipe = context.recipe
    request = BuildRequest(agents=agents, agents_origin=origin, no_cache=force, fresh_base=force)
    build: BuildPlan | None = plan_build(context, request)
    assert build is not None  # noqa: S101 - for the type checker
    chosen = build.agents
    if not force and _is_current(context.find_image(recipe.image), recipe, chosen):
        build = None
    steps = list(build.steps) if build else []
    other = _other_image(config)
    if not other and config.image != recipe.image:
        steps.append(Step("config", f'write image = "{recipe.image}" into {config_path}'))
    return SetupPlan(
        image=recipe.image,
        agents=chosen,
        steps=tuple(steps),
        config_path=config_path,
        build=build,
        other_image=other if other != recipe.image else "",
        other_origin=str(config.origin("image")),
    )


def check_ready(plan: SetupPlan, context: BuildContext, engine: Engine, config: AppConfig) -> None:
    """Look at what a session needs of this machine, before minutes are spent on an image for it. Changes nothing.

    Raises MachineNotReady when none could start, or none with the configured network, or when the image has no
    room. An engine on another machine is not checked from this one, nor one whose socket is mounted into this container
    (toolbox, distrobox, CI): what it needs is on its own side.
    """
    from podbot.engine.podman.connect import locate

    if not engine.local or (context.facts.container and locate(config, context.environ) is not None):
        return
    from podbot.diagnosis.disk_checks import look_at_disks, room_for
    from podbot.provisioning.readiness import machine_problems, require_ready

    version, network = engine.ping().version, config.sandbox.network  # the engine's, not that of a podman on PATH
    rootless = context.facts.rootless
    if plan.build is None and not machine_problems(context.facts, version, network, rootless=rootless):
        return  # without the third of a second that the engine takes to describe itself
    host = engine.host()
    require_ready(
        context.facts,
        version,
        network=network,
        rootless=host.rootless,
        disks=look_at_disks(host, context.environ),
        needed=room_for(plan.build) if plan.build is not None else None,
    )


def check_machine_ready(config: AppConfig, environ: Mapping[str, str], said: str) -> None:
    """The same where podbot's own engine service did not start, for the reason ``said``. Raises MachineNotReady."""
    from podbot.engine.podman.private.machine import detect
    from podbot.provisioning.readiness import require_ready
    from podbot.session.facts import podman_version

    facts = detect(environ)
    require_ready(
        facts,
        podman_version(facts.programs.get("podman", "")),
        network=config.sandbox.network,
        rootless=facts.rootless,
        disks={},
        needed=None,
        said=said,
    )


def setup(plan: SetupPlan, context: BuildContext) -> SetupResult:
    """Do what ``plan`` says.

    Raises ImageBuildFailed, EngineStorageFull, DiskFull, EngineGone, and PathError for the configuration.
    """
    began = time.monotonic()
    if plan.build is not None:
        build_image(plan.build, context)
    if plan.writes_config:
        from podbot.config.write import set_key

        set_key(plan.config_path, "image", plan.image)
        context.emit(Event("info", "setup.config", f'wrote image = "{plan.image}" into {plan.config_path}'))
    if plan.other_image:
        text = f"the configuration names another image, {plan.other_image} ({plan.other_origin}); it is left as it is"
        context.emit(
            Event("notice", "setup.other_image", text, {"image": plan.other_image, "origin": plan.other_origin})
        )
    seconds = time.monotonic() - began
    return SetupResult(plan.image, plan.build is not None, plan.config_path, plan.writes_config, seconds)


def _is_current(present: ImageInfo | None, recipe: Recipe, agents: Iterable[str]) -> bool:
    """The image was built from this recipe and has at least these agents."""
    if present is None or present.labels.get(LABEL_RECIPE) != recipe.digest:
        return False
    wanted = {name for name in recipe.agents_label(agents).split(",") if name}
    return wanted <= set(present.labels.get(LABEL_AGENTS, "").split(","))


def _other_image(config: AppConfig) -> str:
    """The image that the operator chose; an earlier version's own image in the file is not a choice."""
    if not config.image:
        return ""
    ours = config.image.startswith(f"{SANDBOX_REPOSITORY}:")
    return "" if ours and config.origin("image").kind == "file" else config.image
