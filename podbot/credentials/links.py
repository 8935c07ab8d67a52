"""Which links of a family are copied: those that end inside it. Pure: decided on the tree as it was read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from podbot.credentials.login_files import Entry, Skipped, Tree
from podbot.frozen import replace

_MOST_LINKS = 40  # followed on one way, as the kernel does


def settle(tree: Tree, tops: Iterable[str]) -> Tree:
    """``tree`` with every link that ends at one of its own files or directories as a relative link to that.

    The others are skipped. ``tops``: the absolute paths by which a link's text may spell the family's top.
    A link never leads through another one afterwards, so inside it cannot lead anywhere else.
    """
    found = {entry.path: entry for entry in tree.entries}
    spelled = [top.split("/")[1:] for top in tops]
    entries, skipped = [], list(tree.skipped)
    for entry in tree.entries:
        if entry.kind != "link":
            entries.append(entry)
            continue
        end = _end(entry, found, spelled)
        if end is None:
            skipped.append(Skipped(entry.path, "it is a link that does not end inside", notify=True))
        else:
            start = "/" + os.path.dirname(entry.path)
            entries.append(replace(entry, link=os.path.relpath("/" + end, start)))
    return Tree(tuple(entries), tuple(skipped))


def _end(entry: Entry, found: Mapping[str, Entry], tops: list[list[str]]) -> str | None:
    """Path within the family where the link ends; None when that is outside, missing, or never."""
    home = tops[0]
    where = [*home, *entry.path.split("/")[:-1]]
    steps = _steps(entry.link, where)
    budget = _MOST_LINKS
    while steps:
        step = steps.pop()
        if step == "..":
            where = where[:-1]
            continue
        where = [*where, step]
        if where in tops:
            where = [*home]
        inside = _inside(where, home)
        here = found.get(inside) if inside is not None else None
        if here is not None and here.kind == "link":
            budget -= 1
            if budget == 0:
                return None
            where = where[:-1]
            steps += _steps(here.link, where)
        elif inside is not None and (here is None or (steps and here.kind == "file")):
            return None
    end = _inside(where, home)
    return end if end is not None and end in found else None


def _steps(text: str, where: list[str]) -> list[str]:
    """The components of a link's text, the last one first; an absolute one starts at the top of everything."""
    if text.startswith("/"):
        where.clear()
    return [part for part in reversed(text.split("/")) if part not in ("", ".")]


def _inside(where: list[str], home: list[str]) -> str | None:
    return "/".join(where[len(home) :]) if where[: len(home)] == home else None
