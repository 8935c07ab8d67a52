"""Turns a comparison into events: one for each finding, for programs, and a short summary for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podbot.events import Event
from podbot.guard.marks import ACTS_AT, GIT_OR_SHELL, Finding, GuardReport

_LINES = 8  # files of the first class that get a line each
_ITEMS = 6  # findings that are named in the line of one file
_NAMES = 4  # findings of another class that are named in its one line, or one of each rule if these are more
_LONGEST = 120  # characters of a path


def events(left: GuardReport, session: str, workspace: str) -> Iterator[Event]:
    """The events for a session that has ended; ``workspace``: its path."""
    about = {"session": session, "workspace": workspace}
    for found in left.findings:
        level = "warning" if found.danger == GIT_OR_SHELL else "notice"
        fields = {**about, **found._asdict()}
        yield Event(level, "guard.finding", f"{found.path}: {_said(found)}", fields)  # type: ignore[arg-type]
    for line in lines(left, workspace):
        yield Event("notice", "guard.summary", line, about)
    if left.more:
        text = f"{left.more} more findings in {workspace} were counted, but are not named"
        yield Event("warning", "guard.unnamed", text, {**about, "findings": left.more})
    if left.gaps:
        text = f"podbot could not check all of {workspace}: {'; '.join(left.gaps)}"
        yield Event("warning", "guard.incomplete", text, {**about, "reasons": list(left.gaps)})
    spent = {"entries": left.entries, "seconds": round(left.seconds, 3)}
    yield Event("debug", "guard.end", f"checked {left.entries} entries of {workspace}", {**about, **spent})


def lines(left: GuardReport, workspace: str) -> list[str]:
    """A header, followed by the findings, the most dangerous first; empty when there are none."""
    count = len(left.findings) + left.more
    if not count:
        return []
    items = "1 new or changed item acts" if count == 1 else f"{count} new or changed items act"
    summary = [f"after this session {items} on this machine, in {workspace}:"]
    for danger, when in ACTS_AT.items():
        found = [finding for finding in left.findings if finding.danger == danger]
        if danger == GIT_OR_SHELL:
            files = _by_path(found)
            summary += [f"  {when}: {_short(path)} ({_said_of(files[path])})" for path in list(files)[:_LINES]]
            found = [one for path in list(files)[_LINES:] for one in files[path]]
        if found:
            names = list(dict.fromkeys(_short(one.path) for one in found))
            shown = max(_NAMES, len({(one.acts, one.why) for one in found}))  # the first of each rule come first
            more = f" and {len(names) - shown} more" if len(names) > shown else ""
            summary.append(f"  {when}: {', '.join(names[:shown])}{more}")
    return summary


def _by_path(found: Sequence[Finding]) -> dict[str, list[Finding]]:
    files: dict[str, list[Finding]] = {}
    for one in found:
        files.setdefault(one.path, []).append(one)
    return files


def _said_of(found: Sequence[Finding]) -> str:
    """What is said of one file. Most have one finding; a configuration of git has one for each key."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        kinds.setdefault((one.change, one.acts, one.why), []).append(one.what)
    said = []
    for (change, acts, why), items in kinds.items():
        more = f"{len(items) - _ITEMS} more" if len(items) > _ITEMS else ""
        said.append(", ".join(filter(None, (change, *items[:_ITEMS], more, f"{acts}: {why}"))))
    return "; ".join(said)


def _said(found: Finding) -> str:
    return _said_of([found])


def _short(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[:50]}…{path[-(_LONGEST - 51) :]}"
