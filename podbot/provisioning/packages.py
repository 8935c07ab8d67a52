"""What a session needs of this machine, and the installation of packages without which no engine of podbot's runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from podbot.config.models import AppConfig
from podbot.engine.check import Check, Repair, install_command, installation, packages_of
from podbot.engine.driver import EngineMachine
from podbot.engine.port import Engine
from podbot.errors import MachineNotReady, RepairFailed
from podbot.events import Event
from podbot.images.image_build import Step
from podbot.provisioning.repairs import Root, Runner, way_to_root
from podbot.provisioning.setup import SetupPlan

SECONDS = 40  # estimate for all of them on a minimal Debian, with a nearby mirror
_BUS = "user-bus"
_START_BUS = Repair("systemctl --user daemon-reload && systemctl --user start dbus.socket", root=False)


def can_install(machine: EngineMachine) -> bool:
    """Whether podbot knows how to install on this machine what its engine lacks."""
    return machine.facts.platform == "linux" and bool(installation(machine.facts, machine.missing()))


def lacks_helpers(machine: EngineMachine, network: str) -> bool:
    """Whether the engine of this machine runs no session, and packages would change that."""
    return any(check.install for check in machine.problems(network)) and can_install(machine)


def installed_first(plan: SetupPlan, machine: EngineMachine, network: str) -> SetupPlan:
    """The plan with the installation of what is missing before its steps.

    Raises MachineNotReady if something else is wrong with this machine, or if the packages are too old.
    """
    require_ready([check for check in _failed(machine, network) if not check.install])
    _require_usable(machine)
    commands = installation(machine.facts, machine.missing())
    text = " && ".join(repair.typed(machine.facts) for repair in commands)
    if also := [" ".join(packages_of(machine.facts, programs)) for programs in machine.undecided()]:
        text += f", with {' or '.join(also)} as the version needs"
    step = Step("packages", f"install packages: {text}", seconds=SECONDS)
    return replace(plan, steps=(step, *plan.steps), install=commands)


def require_root(machine: EngineMachine, environ: Mapping[str, str], network: str, *, may_ask: bool) -> Root:
    """How this user runs commands as root. Raises MachineNotReady, with the commands, if it cannot."""
    root = way_to_root(machine.facts, environ, may_ask=may_ask)
    if root is None:
        found = "; ".join(f"{check.name}: {check.found}" for check in _failed(machine, network))
        commands = " && ".join(repair.typed(machine.facts) for repair in installation(machine.facts, machine.missing()))
        raise MachineNotReady(
            problems=f"{found}. podbot may not install packages as this user", fixes=f"To install them: `{commands}`."
        )
    return root


def _require_usable(machine: EngineMachine) -> None:
    if reason := machine.unusable():
        raise MachineNotReady(problems=reason, fixes="Install a newer one, or upgrade the distribution.")


def _failed(machine: EngineMachine, network: str) -> list[Check]:
    return [check for check in machine.checks(network, private=True) if check.status == "fail"]


def install(look: Callable[[], EngineMachine], runner: Runner) -> None:
    """Install what is missing on the machine that ``look`` finds.

    Raises RepairFailed, and MachineNotReady where podbot does not know how, or where the packages are too old.
    """
    machine = look()
    missing = machine.missing()
    commands = installation(machine.facts, missing)
    if missing and not commands:
        fix = install_command(machine.facts, *missing)
        problems = f"podbot does not know how to install packages on this distribution: no {', '.join(missing)}"
        raise MachineNotReady(problems=problems, fixes=f"{fix[:1].upper()}{fix[1:]}.")
    runner.run(commands[:-1])
    if commands[:-1]:  # with fresh lists it is known which Podman they contain, and so what that needs
        machine = look()
        _require_usable(machine)
        missing = machine.missing()
        commands = installation(machine.facts, missing)
    runner.run(commands[-1:])
    if _BUS in missing:
        try:
            runner.run([_START_BUS])
        except RepairFailed:
            text = "log out and in again before you rely on limits (sandbox.memory, cpus, pids): they need your D-Bus"
            runner.emit(Event("notice", "setup.bus", text))


def is_here(engine: Engine, machine: EngineMachine, *, is_private: bool) -> bool:
    """Whether what ``engine`` needs is on this machine.

    It is not for an engine on another machine, nor for one whose socket is mounted into this container (toolbox,
    distrobox, CI): what that needs is on its own side. ``is_private``: podbot started it, so it is here.
    """
    return engine.local and (is_private or not machine.facts.container)


def machine_problems(engine: Engine, machine: EngineMachine, config: AppConfig, *, is_private: bool) -> list[Check]:
    """The failed checks of this machine because of which no session starts on ``engine``, if it is on this machine.

    ``is_private``: see :func:`is_here`.
    """
    if not is_here(engine, machine, is_private=is_private):
        return []
    version, network = engine.ping().version, config.sandbox.network  # the engine's, not that of a program on PATH
    if not machine.problems(network, version=version):
        return []  # without the third of a second that the engine takes to describe itself
    return machine.problems(network, version=version, rootless=engine.host().rootless)


def require_ready(failed: Sequence[Check], said: str = "") -> None:
    """Raise MachineNotReady, in doctor's words, when a check ``failed``.

    ``said``: a sentence about an engine that did not start, in its words: the checks may have found something else.
    """
    if failed:
        problems = [f"{check.name}: {check.found}. {check.meaning.rstrip('.')}" for check in failed]
        raise MachineNotReady(
            problems="; ".join([*problems, *([said] if said else [])]),
            fixes=" ".join(f"To fix {check.name}: {_quoted(check.fix)}." for check in failed),
        )


def _quoted(fix: str) -> str:
    """A command with its ends marked; a sentence, which begins with a capital or marks those in it, as it is."""
    return fix if "`" in fix or fix[:1].isupper() else f"`{fix}`"
