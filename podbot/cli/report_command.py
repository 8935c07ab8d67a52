"""``podbot report``: shows what hosted sessions have left."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from podbot.cli.globals import Globals
from podbot.cli.ps import age
from podbot.cli.report import say
from podbot.errors import GuardTripped, ReportsUnreadable
from podbot.guard.marks import ACTS_AT, GIT_OR_SHELL
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.session.kept_reports import KeptReport

_UNKNOWN: Final = {
    "guard.incomplete": "podbot could not check all of it",
    "guard.unnamed": "not all of its findings are named",
    "report.cut": "not all of its report could be kept",
    "report.dropped": "older reports were dropped before they were shown",
}


_NONE = "no hosted session has left a report that you have not seen; --all shows those that you have"
_NONE_AT_ALL = "no report of a hosted session is kept"


def mistake(*, session: str | None, all_: bool, **_: Any) -> str:
    """An error about the combination of values, or empty."""
    return "SESSION and --all exclude each other" if session is not None and all_ else ""


def invoke(g: Globals, *, session: str | None, all_: bool, guard_exit: bool, as_json: bool) -> int:
    """Show the reports; returns podbot's exit code. Raises GuardTripped with ``guard_exit``.

    With that, those of which it is raised do not count as shown: a script that is repeated gets the same answer.
    """
    from podbot.api import inspecting as api

    try:
        found = api.reports(session, shown=all_)
    except ReportsUnreadable as exc:
        if not guard_exit:
            raise
        raise GuardTripped(workspace="the workspace", reason=f"podbot could not find out: {exc.message}") from exc
    if as_json:
        import json

        sys.stdout.write(json.dumps([_document(report) for report in found], indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_text(report, time.time()) for report in found))
    sys.stdout.flush()  # what the reader did not take counts as not shown
    api.mark_shown([report for report in found if not (guard_exit and (_acts(report) or _unknown(report)))])
    if not found and not as_json and not g.quiet:
        say(f"podbot: {_NONE_AT_ALL if all_ else _NONE}")
    if guard_exit:
        check(found)
    return 0


def _text(report: KeptReport, now: float) -> str:
    when = age(now - report.made) if report.made else "time unknown"
    lines = [event.message for event in report.events if event.kind != "guard.finding"]
    return "".join(f"{printable(line)}\n" for line in (f"{report.session}, {when}:", *lines))


def _document(report: KeptReport) -> dict[str, Any]:
    events = [
        {**event.fields, "level": event.level, "kind": event.kind, "message": event.message}
        for event in report.events
        if event.kind != "guard.summary"
    ]
    return {"session": report.session, "made": report.made, "shown": report.shown, "events": events}


def check(found: Sequence[KeptReport]) -> None:
    """Raise GuardTripped for findings that act at `git status` or `cd`, and for what is not known."""
    for look in (_acts, _unknown):
        for report in found:
            if (why := look(report)) is not None:
                raise why


def _acts(report: KeptReport) -> GuardTripped | None:
    for event in report.events:
        if event.kind == "guard.finding" and event.fields.get("danger") == GIT_OR_SHELL:
            path, workspace = (str(event.fields.get(key, ""))[:200] for key in ("path", "workspace"))
            return GuardTripped(workspace=workspace or os.curdir, reason=f"{path} acts {ACTS_AT[GIT_OR_SHELL]}")
    return None


def _unknown(report: KeptReport) -> GuardTripped | None:
    for event in report.events:
        if event.kind in _UNKNOWN:
            workspace = str(event.fields.get("workspace") or "the workspace")
            return GuardTripped(workspace=workspace, reason=_UNKNOWN[event.kind])
    return None
