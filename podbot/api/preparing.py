"""Prepare a machine for sessions: its packages, the sandbox image, the configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podbot.api.engines import driver_of, environment, open_engine
from podbot.api.images import build_context
from podbot.config.models import AppConfig, LoadOptions
from podbot.errors import EngineNotInstalled, MachineNotReady
from podbot.events import Emit, Event, ignore

if TYPE_CHECKING:
    from podbot.diagnosis.repair_plan import RepairPlan
    from podbot.engine.check import Check
    from podbot.engine.driver import EngineDriver, EngineMachine
    from podbot.engine.port import Engine
    from podbot.images.image_build import BuildContext
    from podbot.provisioning.setup import SetupPlan, SetupResult

__all__ = ["fix", "setup", "update_agents"]

Approve = Callable[["SetupPlan"], object]


def setup(
    options: LoadOptions,
    *,
    agents: Collection[str] | None = None,
    also: Collection[str] = (),
    packages: Collection[str] | None = None,
    force: bool = False,
    may_install: bool = False,
    may_ask: bool = False,
    approve: Approve | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> SetupResult:
    """Build the sandbox image on the engine and write its name into the configuration file. Idempotent.

    ``agents``: None means those that the image has, or claude; ``also``: agents that it must have as well.
    ``packages``: Debian packages that are added to the image, in place of the configuration's (``sandbox.packages``).
    ``force``: build again. ``may_install``: if no engine can run here for want of packages, install them, as root or
    with sudo; ``may_ask``: sudo may ask for a password on the terminal. ``approve`` is called with a plan that has
    steps, before anything is done; an exception from it ends the call. Raises MachineNotReady before anything is built
    if no session could start here, RepairFailed, ConfigError subclasses, and the errors of :func:`podbot.build_image`.
    """
    from podbot.config.load import load_without_project

    call = _Call(options, load_without_project(options), agents, also, force, environment(environ), packages=packages)
    if may_install and call.lacks_helpers():
        return call.with_packages(approve, emit, may_ask=may_ask)
    try:
        return call.on_engine(approve, emit)
    except EngineNotInstalled:
        if not may_install or not call.can_have_engine():
            raise
        return call.with_packages(approve, emit, may_ask=may_ask)


def update_agents(
    options: LoadOptions,
    agents: Mapping[str, str],
    *,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> SetupResult:
    """Install other versions of agents in the sandbox image, and write them into the configuration.

    ``agents``: agent -> version, empty for the newest that npm offers; no agent at all means the newest of all that the
    image has. Other agents of the image stay as they are. The versions are written after the build, so a failed one
    leaves everything as it was. Raises InvalidValue, ImageNotFound, MachineNotReady, and the errors of
    :func:`podbot.build_image`.
    """
    from podbot.config.load import load_without_project
    from podbot.images.newest import newest_versions
    from podbot.provisioning.agent_update import check_update

    config, environ = load_without_project(options), environment(environ)
    driver = driver_of(config)
    with open_engine(config, environ=environ, emit=emit) as engine:
        context = build_context(engine, driver.machine(environ), environ, emit)
        image, wanted = check_update(context, config, agents)
        emit(Event("info", "image.versions", "asking npm for the newest versions"))
        unknown = {name: context.recipe.agents[name].package for name, version in wanted.items() if not version}
        newest = newest_versions(context, image, unknown) if unknown else {}
    call = _Call(options, config, None, tuple(wanted), False, environ, {**wanted, **newest})
    return call.on_engine(None, emit)


def fix(
    options: LoadOptions,
    *,
    approve: Callable[[RepairPlan], object] | None = None,
    may_ask: bool = False,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> tuple[RepairPlan, list[Check]]:
    """Do what doctor's fixes say, as far as they are commands, and build the image if there is none.

    ``approve`` is called with a plan that is not empty, before anything is done; an exception from it ends the call.
    ``may_ask``: sudo may ask for a password on the terminal. Returns the plan, and the checks as they are afterwards.
    Raises RepairFailed, MachineNotReady, and the errors of :func:`setup`.
    """
    from podbot.api.diagnosis import doctor
    from podbot.config.load import load_config
    from podbot.diagnosis.repair_plan import plan_repairs
    from podbot.images.recipe import other_image
    from podbot.provisioning.repairs import Runner, way_to_root

    environ = environment(environ)
    checks = doctor(options, environ=environ, emit=emit)
    config = load_config(options)
    machine = driver_of(config).machine(environ)
    plan = plan_repairs(checks, machine, builds_image=not other_image(config))
    if plan.empty:
        return plan, checks
    if approve is not None:
        approve(plan)
    root = way_to_root(machine.facts, environ, may_ask=may_ask)
    needs_root = [repair.typed(machine.facts) for repair in plan.commands if repair.root]
    if root is None and needs_root:
        problems = "these commands need root, and podbot may not use sudo as this user"
        raise MachineNotReady(problems=problems, fixes=f"Run them: `{' && '.join(needs_root)}`.")
    Runner(root, environ, emit).run(plan.commands)
    if plan.setup:
        setup(options, may_install=True, may_ask=may_ask, environ=environ, emit=emit)
    return plan, doctor(options, environ=environ, emit=emit)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of :func:`setup`. ``versions``: of agents that it changes; ``packages``: see there."""

    options: LoadOptions
    config: AppConfig
    agents: Collection[str] | None
    also: Collection[str]
    force: bool
    environ: Mapping[str, str]
    versions: Mapping[str, str] | None = None
    packages: Collection[str] | None = None

    @property
    def driver(self) -> EngineDriver:
        return driver_of(self.config)

    @property
    def machine(self) -> EngineMachine:
        return self.driver.machine(self.environ)

    @property
    def is_private(self) -> bool:
        return self.driver.locate(self.config, self.environ) is None

    def lacks_helpers(self) -> bool:
        """Whether podbot would start the engine, and packages are missing without which it runs no session."""
        from podbot.provisioning.packages import lacks_helpers

        return self.is_private and lacks_helpers(self.machine, self.config.sandbox.network)

    def can_have_engine(self) -> bool:
        """Whether podbot could start an engine here, and can install a program for it."""
        from podbot.provisioning.packages import can_install

        return self.is_private and can_install(self.machine)

    def with_packages(self, approve: Approve | None, emit: Emit, *, may_ask: bool) -> SetupResult:
        """Set-up that begins with packages. See :func:`setup`."""
        from podbot.provisioning.packages import install, require_root
        from podbot.provisioning.repairs import Runner
        from podbot.provisioning.stages import Stages

        plan = self.plan_without_engine()
        root = require_root(self.machine, self.environ, self.config.sandbox.network, may_ask=may_ask)
        if approve is not None:
            approve(plan)
        stages = Stages(emit, plan.steps)
        install(lambda: self.machine, Runner(root, self.environ, stages))
        return self.on_engine(None, stages)

    def plan_without_engine(self) -> SetupPlan:
        """What will be done, beginning with packages. Raises MachineNotReady if they are not enough."""
        from podbot.images.image_build import BuildContext
        from podbot.images.recipe import load_recipe
        from podbot.provisioning.packages import installed_first

        machine = self.machine
        complete = {**dict.fromkeys(machine.missing(), ""), **machine.facts.programs}
        context = BuildContext(
            recipe=load_recipe(),
            facts=replace(machine.facts, programs=complete),
            environ=self.environ,
            find_image=lambda _reference: None,
            builder=None,
            words=self.driver.WORDS,
        )
        return installed_first(self.decide(context), machine, self.config.sandbox.network)

    def on_engine(self, approve: Approve | None, emit: Emit) -> SetupResult:
        """Set-up on the engine that is there. See :func:`setup`."""
        from podbot.errors import ServiceStartFailed
        from podbot.provisioning.setup import check_machine_ready

        driver, config = self.driver, self.config
        try:
            engine = driver.connect(config, self.environ, emit)
        except ServiceStartFailed as exc:
            # The engine's own error often names a file, but not the cause.
            check_machine_ready(self.machine, config, driver.WORDS.name, exc.reason)
            raise
        try:
            return self._set_up(engine, approve, emit)
        finally:
            engine.close()

    def _set_up(self, engine: Engine, approve: Approve | None, emit: Emit) -> SetupResult:
        from podbot.diagnosis.disk_checks import look_at_disks
        from podbot.images.build_turn import build_turn
        from podbot.provisioning.setup import check_ready
        from podbot.provisioning.setup import setup as carry_out
        from podbot.provisioning.stages import Stages
        from podbot.session.orphans import report_orphans

        environ, machine = self.environ, self.machine
        report_orphans(engine, environ, emit)
        context = build_context(engine, machine, environ, emit)
        plan = self.with_current_config().decide(context)
        check_ready(
            plan,
            engine,
            machine,
            self.config,
            is_private=self.is_private,
            disks=lambda host: look_at_disks(host, environ, look=machine.disk),
        )
        if plan.steps and approve is not None:
            approve(plan)
        context = replace(context, emit=emit if isinstance(emit, Stages) else Stages(emit, plan.steps))
        if not plan.steps:
            return carry_out(plan, context)
        with build_turn(environ, engine.endpoint, emit):
            # Decided again: the podbot that we waited for may have built it, and written other versions.
            return carry_out(self.with_current_config().decide(context), context)

    def with_current_config(self) -> _Call:
        """The same call, with what the configuration says by now."""
        from podbot.config.load import load_without_project

        return replace(self, config=load_without_project(self.options))

    def decide(self, context: BuildContext) -> SetupPlan:
        """What will be done."""
        from podbot.config.load import config_location
        from podbot.provisioning.setup import plan_setup

        return plan_setup(
            context,
            config=self.config,
            config_path=config_location(self.options)[0],
            agents=self.agents,
            also=self.also,
            versions=self.versions,
            packages=self.packages,
            force=self.force,
        )
