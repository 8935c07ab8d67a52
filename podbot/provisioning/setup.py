"""``podbot setup``: the sandbox image on the engine, and its name in the configuration. Idempotent.

First :func:`plan_setup` decides, from what the engine has, what is to be done; then :func:`setup` does it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from podbot.config.models import AppConfig
from podbot.engine.driver import EngineMachine
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
    """What setup did; ``seconds`` is its wall time.

    ``agents``: those in the image. ``other_image``: the image that the configuration names instead of podbot's, and
    which was left alone, and ``other_origin``, where; both are empty when there is none.
    """

    image: str
    agents: tuple[str, ...]
    built: bool
    config_path: str
    wrote_config: bool
    seconds: float
    other_image: str = ""
    other_origin: str = ""


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


def check_ready(
    plan: SetupPlan,
    context: BuildContext,
    engine: Engine,
    machine: EngineMachine,
    config: AppConfig,
    *,
    is_private: bool,
) -> None:
    """Look at what a session needs of this machine, before minutes are spent on an image for it. Changes nothing.

    Raises MachineNotReady when none could start, or none with the configured network, or when the image has no
    room. An engine on another machine is not checked from this one, nor one whose socket is mounted into this container
    (toolbox, distrobox, CI): what it needs is on its own side. ``is_private``: podbot started it, so it is here.
    """
    if not engine.local or (machine.facts.container and not is_private):
        return
    from podbot.diagnosis.disk_checks import check_disk, look_at_disks, room_for
    from podbot.provisioning.readiness import require_ready

    version, network = engine.ping().version, config.sandbox.network  # the engine's, not that of a program on PATH
    if plan.build is None and not machine.problems(network, version=version):
        return  # without the third of a second that the engine takes to describe itself
    host = engine.host()
    failed = machine.problems(network, version=version, rootless=host.rootless)
    if plan.build is not None:
        room = check_disk(look_at_disks(host, context.environ), room_for(plan.build), engine.words)
        failed += [room] if room.status == "fail" else []
    require_ready(failed)


def check_machine_ready(machine: EngineMachine, config: AppConfig, engine: str, said: str) -> None:
    """The same where podbot's own engine service did not start, for the reason ``said``. Raises MachineNotReady."""
    from podbot.provisioning.readiness import require_ready

    require_ready(machine.problems(config.sandbox.network), f"{engine} did not start: {said.rstrip('.')}")


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
    return SetupResult(
        image=plan.image,
        agents=plan.agents,
        built=plan.build is not None,
        config_path=plan.config_path,
        wrote_config=plan.writes_config,
        seconds=seconds,
        other_image=plan.other_image,
        other_origin=plan.other_origin,
    )


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
