"""What an operator does with a session that stays after a kill: stop it, start it again, look at it, remove it."""

from __future__ import annotations

import re

from e2e.harness import nothing_found
from e2e.kills import Target, marked, until
from e2e.patience import patient
from podbot.session.flags import is_live

# What a kept session has while it has ended: its container ("stopped" if its monitor was killed), its files, and the
# engine's entry for its network.
_STAYS = re.compile(r"container (exited|stopped)$|directory |network (?!namespace|interface)")
SERVICE = "nothing listens on that socket any more"


def more_than_kept(session: Target) -> list[str]:
    """All that is there of it and that a kept session, which is stopped, does not have."""
    return [line for line in session.left() if not _STAYS.match(line)]


def is_settled(session: Target, owner_killed: bool) -> bool:
    """Whether no process works on its end. A command that its owner had started by `podbot exec` is over by then."""
    name = session.name
    if (
        session.owner.poll() is None
        or is_live(f"{session.world.runtime}/{name}")
        or not nothing_found(lambda: session.world.watchers(name))
    ):
        return False
    if session.rules.kept != "always":
        return not more_than_kept(session)
    return not (session.kind == "start" and owner_killed and marked(session.marks[:2]))


def brought_to_its_end(session: Target, victim: str, limit: float) -> list[str]:
    """Stop it, start it, and remove it, as an operator does; returns what went wrong.

    A session whose agent has not run yet may be gone, or in doubt. ``victim``: who was killed first.
    """
    problems: list[str] = []
    must_stay = session.up and session.rules.kept != "in doubt"
    if not session.world.container(session.name):
        problems += ["there is no container, although its agent had run"] if must_stay else []
    elif session.up and not must_stay and victim == "owner":
        problems.append("it was kept without unsaved work")
    else:
        _asked(session, problems, "stop", "--time", "0", session.name)
        if session.world.container(session.name):
            problems += ["podbot stop kept it without unsaved work"] if session.up and not must_stay else []
            _started_again(session, problems, limit)
        elif must_stay:
            problems.append("podbot stop removed it")
    until(lambda: not session.left(), patient(limit))
    return problems + [f"after its removal: {line}" for line in session.left()]


def _asked(session: Target, problems: list[str], *words: str) -> str:
    for _ in range(3):
        done = session.world.podbot(*words)
        if SERVICE not in done.stderr:  # which another session's kill may have hit at this moment
            break
    if done.returncode != 0:
        problems.append(f"podbot {words}: {done.returncode} {done.stdout} {done.stderr}")
    return done.stdout


def _started_again(session: Target, problems: list[str], limit: float) -> None:
    """Start the stopped session, and remove it."""
    until(lambda: not more_than_kept(session), limit)
    problems += [f"after stop: {line}" for line in more_than_kept(session)]
    _asked(session, problems, "start", session.name)
    if session.rules.mounts:
        _asked(session, problems, "exec", session.name, "--", "test", "-e", "part-1")
    elif session.up:
        line = "git fsck --strict --no-dangling && git log --format=%s"
        said = _asked(session, problems, "exec", session.name, "--", "sh", "-c", line)
        problems += [] if "more" in said.splitlines() else [f"its commit is gone: {said!r}"]
    _asked(session, problems, "stop", "--rm", "--time", "0", session.name)
