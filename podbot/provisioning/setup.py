"""``podbot setup``: the sandbox image on the engine, and its name in the configuration. Idempotent.

First :func:`plan_setup` decides, from what the engine has, what is to be done; then :func:`setup` does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from podbot.config.models import AppConfig, Origin
from podbot.config.write import edited, literal, set_keys
from podbot.engine.driver import EngineMachine
from podbot.engine.port import Engine, EngineHost, ImageInfo
from podbot.errors import InvalidValue
from podbot.events import Event
from podbot.images.image_build import BuildContext, BuildPlan, BuildRequest, Step, build_image, plan_build
from podbot.images.recipe import LABEL_AGENTS, LABEL_RECIPE, SANDBOX_REPOSITORY, Recipe, other_image, packages_in

if TYPE_CHECKING:
    from podbot.diagnosis.disk_checks import Disks
    from podbot.engine.check import Repair


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """What setup will do. ``build`` is None when the image is there and current.

    ``versions``: of the agents. ``install``: commands that install packages of the machine's; what is built then
    depends on them. ``settings``: the keys that are written into the configuration. ``other_image``: the image that the
    configuration names instead of podbot's, and which is left alone; ``other_origin`` says where.
    """

    image: str
    agents: tuple[str, ...]
    steps: tuple[Step, ...]
    config_path: str
    versions: Mapping[str, str] = field(default_factory=dict)
    build: BuildPlan | None = None
    install: tuple[Repair, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    other_image: str = ""
    other_origin: str = ""

    @property
    def writes_config(self) -> bool:
        """Whether the configuration is changed."""
        return bool(self.settings)

    @property
    def seconds(self) -> int:
        """An estimate of the time that all steps take, with packages that are near."""
        return sum(step.seconds for step in self.steps)


@dataclass(frozen=True, slots=True)
class SetupResult:
    """What setup did; ``seconds`` is its wall time.

    ``agents``: those in the image, and ``versions`` theirs. ``other_image``: the image that the configuration names
    instead of podbot's, and which was left alone, and ``other_origin``, where; both are empty when there is none.
    """

    image: str
    agents: tuple[str, ...]
    built: bool
    config_path: str
    wrote_config: bool
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
    other_image: str = ""
    other_origin: str = ""


def plan_setup(
    context: BuildContext,
    *,
    config: AppConfig,
    config_path: str,
    agents: Collection[str] | None = None,
    also: Collection[str] = (),
    versions: Mapping[str, str] | None = None,
    packages: Collection[str] | None = None,
    origin: str = "named for set-up",
    force: bool = False,
) -> SetupPlan:
    """Decide. ``agents``: None is whatever the image has, or what the configuration names, or claude; ``also``: more.
    ``versions``: of agents, beside those in the configuration, which will have them then. ``packages``: in place of
    the configuration's, which will name them then.

    Raises InvalidValue for an unknown one, and the errors of :func:`podbot.config.write.edited` for a file that
    podbot cannot change: they come before anything is built.
    """
    other = other_image(config)
    packages = None if packages is None else tuple(dict.fromkeys(packages))
    flags = {"agents": origin, "packages": origin}
    asked = BuildRequest(agents=agents, also=also, packages=packages, flags=flags, no_cache=force, fresh_base=force)
    request = requested(asked, config)
    if versions:
        versions = {**config.agent.versions, **versions}
        request = replace(request, versions=versions)
    build = plan_build(context, request)
    image, chosen = build.image, build.agents
    is_current = not force and _is_current(context.find_image(image), build.recipe, chosen)
    steps = [] if is_current else list(build.steps)
    named = agents is not None or (bool(also) and not is_current)  # what the image has, it remembers itself
    settings = {} if other else _settings(config, image, chosen if named else config.agent.install)
    if versions and dict(versions) != dict(config.agent.versions):
        settings["agent.versions"] = dict(versions)
    if packages is not None and packages != config.sandbox.packages:
        _check_decides(config.origin("sandbox.packages"))
        settings["sandbox.packages"] = packages
    if settings:
        edited(config_path, settings)
        texts = " and ".join(f"{name} = {literal(value)}" for name, value in settings.items())
        steps.append(Step("config", f"write {texts} into {config_path}"))
    return SetupPlan(
        image=image,
        agents=chosen,
        steps=tuple(steps),
        config_path=config_path,
        versions={name: build.recipe.agents[name].version for name in chosen},
        build=None if is_current else build,
        settings=settings,
        other_image=other if other != image else "",
        other_origin=str(config.origin("image")),
    )


def check_ready(
    plan: SetupPlan,
    engine: Engine,
    machine: EngineMachine,
    config: AppConfig,
    *,
    is_private: bool,
    disks: Callable[[EngineHost], Disks],
) -> None:
    """Look at what a session needs of this machine, before minutes are spent on an image for it. Changes nothing.

    Raises MachineNotReady when none could start, or none with the configured network, or when the image has no
    room. ``is_private``: see :func:`podbot.provisioning.packages.is_here`. ``disks``: the space where a build writes.
    """
    from podbot.diagnosis.disk_checks import check_disk, room_for
    from podbot.provisioning.packages import is_here, machine_problems, require_ready

    failed = machine_problems(engine, machine, config, is_private=is_private)
    if plan.build is not None and is_here(engine, machine, is_private=is_private):
        room = check_disk(disks(engine.host()), room_for(plan.build), engine.words)
        failed += [room] if room.status == "fail" else []
    require_ready(failed)


def check_machine_ready(machine: EngineMachine, config: AppConfig, engine: str, said: str) -> None:
    """The same where podbot's own engine service did not start, for the reason ``said``. Raises MachineNotReady."""
    from podbot.provisioning.packages import require_ready

    require_ready(machine.problems(config.sandbox.network), f"{engine} did not start: {said.rstrip('.')}")


def setup(plan: SetupPlan, context: BuildContext) -> SetupResult:
    """Do what ``plan`` says.

    Raises ImageBuildFailed, EngineStorageFull, DiskFull, EngineGone, and PathError for the configuration.
    """
    began = time.monotonic()
    if plan.build is not None:
        build_image(plan.build, context)
    if plan.settings:
        set_keys(plan.config_path, plan.settings)
    for name, value in plan.settings.items():
        context.emit(Event("info", "setup.config", f"wrote {name} = {literal(value)} into {plan.config_path}"))
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
        versions=plan.versions,
        other_image=plan.other_image,
        other_origin=plan.other_origin,
    )


def requested(request: BuildRequest, config: AppConfig) -> BuildRequest:
    """The request with what the configuration says of agents, their versions and packages, and the image in use."""
    earlier = config.image or ""
    ours = earlier.startswith(f"{SANDBOX_REPOSITORY}:")
    return replace(
        request,
        usual=config.agent.install,
        versions=config.agent.versions,
        packages=config.sandbox.packages if request.packages is None else request.packages,
        earlier=earlier if ours else "",
    )


def _settings(config: AppConfig, image: str, agents: Collection[str]) -> dict[str, Any]:
    """The keys to write. A list of agents that a variable sets is not written: it would have no effect."""
    settings: dict[str, Any] = {} if config.image == image else {"image": image}
    of_file = config.origin("agent.install").kind in {"file", "default"}
    if of_file and {*agents} != {*config.agent.install}:
        settings["agent.install"] = tuple(agents)
    return settings


def _check_decides(origin: Origin) -> None:
    """Raise InvalidValue where a variable or a flag sets the packages: the next set-up would take them out again."""
    if origin.kind not in {"file", "default"}:
        reason = "set-up writes the packages into the configuration, which would have no effect"
        raise InvalidValue(field="sandbox.packages", origin=str(origin), reason=reason, hint="Unset it first.")


def _is_current(present: ImageInfo | None, recipe: Recipe, agents: Iterable[str]) -> bool:
    """The image was built from this recipe, has at least these agents, and the packages that were added to it."""
    if present is None or present.labels.get(LABEL_RECIPE) != recipe.digest:
        return False
    if packages_in(present.labels) != {*recipe.added}:
        return False
    wanted = {name for name in recipe.agents_label(agents).split(",") if name}
    return wanted <= set(present.labels.get(LABEL_AGENTS, "").split(","))
