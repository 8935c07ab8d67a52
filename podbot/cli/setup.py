"""``podbot setup``: builds the sandbox image and writes its name into the configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.cli.interaction import Streams, confirm
from podbot.cli.own_name import own_name
from podbot.cli.signals import end_on_signals
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.provisioning.setup import SetupPlan, SetupResult


def setup(
    g: Globals, *, also: tuple[str, ...], yes: bool, agents: str | None, packages: str | None, force: bool
) -> int:
    """Build the sandbox image and write its name into the configuration; returns podbot's exit code."""
    from podbot.api.preparing import setup as carry_out
    from podbot.cli.image import names
    from podbot.cli.report import Reporter

    end_on_signals()
    reporter = Reporter(g, progress=True)

    def approve(plan: SetupPlan) -> None:
        reporter.clear()
        if not yes:
            _confirm(plan)

    chosen = None if agents is None else names(agents)
    added = None if packages is None else names(packages)
    _check(chosen or (), also, added or ())
    try:
        result = carry_out(
            g.load_options(os.environ, {}, {}),
            agents=chosen,
            also=also,
            packages=added,
            force=force,
            may_install=True,
            may_ask=Streams.of_process().person,
            approve=approve,
            emit=reporter,
        )
    finally:
        reporter.clear()
    sys.stdout.write(printable(_summary(result)) + "\n")
    return 0


def _check(agents: Sequence[str], also: Sequence[str], packages: Sequence[str]) -> None:
    """Raise InvalidValue for what set-up would refuse, with the option or the argument that named it."""
    from podbot.config.checks import Refusal, check_packages
    from podbot.errors import InvalidValue
    from podbot.images.recipe import load_recipe

    recipe = load_recipe()
    recipe.check_agents(agents, "flag --agents")
    recipe.check_agents(also, "argument AGENT")
    try:
        check_packages(tuple(packages))
    except Refusal as exc:
        raise InvalidValue(field="packages", origin="flag --packages", reason=exc.reason, hint=exc.hint) from None


def _confirm(plan: SetupPlan) -> None:
    from podbot.cli.offer import described

    seconds = f"This takes about {plan.seconds} s if the package mirrors are near.\n" if plan.seconds else ""
    sys.stderr.write("podbot setup will\n")
    confirm(described(plan), f"{seconds}Go ahead?", default=True)


def _summary(result: SetupResult) -> str:
    agents = f" with {', '.join(result.agents)}" if result.agents else ""
    if result.built:
        first = f"{result.image}{agents} was built in {result.seconds:.0f} s."
    else:
        first = f"{result.image}{agents} exists already; nothing was built."
    if result.other_image:
        return f"{first} It is not in use: {result.other_origin} names {result.other_image}."
    return f"{first} Next, in a project: {own_name()} run"
