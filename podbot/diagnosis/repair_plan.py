"""What `podbot doctor --fix` runs. Pure: checks in, commands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podbot.engine.check import Check, Repair, installation, packages_of
from podbot.engine.driver import EngineMachine


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The commands to run, and whether set-up follows them. ``left``: failed checks that only a person can fix.

    ``helpers``: packages, of which set-up installs one more set, when it is known which Podman the commands brought.
    """

    commands: tuple[Repair, ...] = ()
    setup: bool = False
    left: tuple[Check, ...] = ()
    helpers: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to run."""
        return not self.commands and not self.setup


def plan_repairs(checks: Sequence[Check], machine: EngineMachine, *, builds_image: bool) -> RepairPlan:
    """Decide from doctor's ``checks`` of ``machine``. All packages are installed with one command.

    ``builds_image``: a missing image is podbot's own; it builds no other.
    """
    programs = [program for check in checks for program in check.install]
    if "podman" in programs:
        programs += machine.missing()  # nothing else is known of an engine that is not there
    if machine.unusable():
        programs = []  # the engine that they are for would be refused
    install = installation(machine.facts, dict.fromkeys(programs)) if programs else ()
    others = dict.fromkeys(repair for check in checks for repair in check.repairs)
    failed = [check for check in checks if check.status == "fail"]
    names = {check.name for check in failed}
    # Nobody has asked an engine that is only now installed for the image: set-up builds it where there is none.
    engine_comes = "engine" in names and "podman" in programs and bool(install)
    setup = builds_image and ("image" in names or engine_comes)
    handled = {"engine"} if engine_comes or setup else set()
    handled |= {"image"} if setup else set()
    failed = [check for check in failed if check.name not in handled]
    left = [check for check in failed if not check.repairs and not (check.install and install)]
    undecided = machine.undecided() if install and "podman" in programs else ()
    helpers = tuple(" ".join(packages_of(machine.facts, names)) for names in undecided)
    return RepairPlan((*install, *others), setup, tuple(left), helpers if setup else ())
