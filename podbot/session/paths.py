"""What podbot finds out about paths of the host before planning: where they lead, through which links."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Literal

from podbot.launch.refused_paths import PROGRAMS, SYSTEM_UNLESS_NAMED, refused_sources, within
from podbot.launch.types import HostFacts, LinkFacts, PathFacts
from podbot.places import home_dir

_MOST_LINKS = 64  # on one path; the kernel gives up after 40
_MOST_ENTRIES = 4096  # of a home directory that are looked at
_PASSWD = "/etc/passwd"  # noqa: S105 - not the user database: that can be a directory server with all of a company
_FIRST_USER, _NOBODY = 1000, 65534  # user ids of people lie between them


def expanded(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def path_facts(given: str, path: str) -> PathFacts:
    """Resolve every link of an absolute ``path`` and look at what is there."""
    try:
        resolved = os.path.realpath(path)
        kind = kind_of(resolved)
    except ValueError:  # a NUL byte; planning refuses the text for it
        return PathFacts(given, path, "missing")
    return PathFacts(given, resolved, kind, links=links_on(path))


def kind_of(resolved: str) -> Literal["directory", "other", "missing", "unreadable"]:
    import stat

    try:
        mode = os.stat(resolved).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:  # no permission on the way there, a loop of links, a mount whose server is gone
        return "unreadable"
    if not stat.S_ISDIR(mode):
        return "other"
    return "directory" if os.access(resolved, os.R_OK | os.X_OK) else "unreadable"


def spelled_path(found: PathFacts, environ: Mapping[str, str], cwd: str) -> str | None:
    """The workspace as its operator, and the editor, spell it: links stay, in the home and the directory too.

    None when that is the resolved path, or leads elsewhere: ``link/..`` is another directory by its spelling
    than by a walk.
    """
    pwd = environ.get("PWD", "")  # what a shell, and an editor that asked one, calls the working directory
    base = pwd if os.path.isabs(pwd) and _leads_to(pwd, cwd) else cwd
    path = os.path.normpath(os.path.join(base, expanded(found.given, home_dir(environ))))
    path = "/" + path.lstrip("/")  # normpath leaves two slashes as they are
    return path if path != found.resolved and _leads_to(path, found.resolved) else None


def _leads_to(path: str, end: str) -> bool:
    try:
        return os.path.realpath(path) == end
    except ValueError:  # a NUL byte
        return False


def links_on(path: str) -> tuple[LinkFacts, ...]:
    """Every symbolic link that the kernel follows on the way along an absolute ``path``, the last component's too."""
    return walked(path)[1]


def walked(path: str) -> tuple[str, tuple[LinkFacts, ...]]:
    """Where ``path`` ends, and the links on the way."""
    here, found = "/", []
    left = path.split("/")[::-1]
    while left:
        name = left.pop()
        if name == "..":
            here = os.path.dirname(here)
        if name in ("", ".", ".."):
            continue
        step = os.path.join(here, name)
        try:
            text = os.readlink(step)
        except (OSError, ValueError):  # no link, or nothing at all
            here = step
            continue
        found.append(LinkFacts(step, os.path.realpath(step), _repository_around(here)))
        if len(found) >= _MOST_LINKS:
            break
        left += text.split("/")[::-1]
        here = "/" if text.startswith("/") else here
    return here, tuple(found)


def _repository_around(directory: str) -> str | None:
    while True:
        if os.path.lexists(os.path.join(directory, ".git")):
            return directory
        if directory == "/":
            return None
        directory = os.path.dirname(directory)


def may_be_in(directory: str, name: str) -> bool:
    """Whether ``name``, a relative path, is in a directory, or a link on the way, which leads elsewhere inside."""
    path = directory
    for part in name.split("/"):
        path = os.path.join(path, part)
        if os.path.islink(path):
            return True
    return os.path.lexists(path)


def other_homes() -> tuple[str, ...]:
    """Home directories of this machine's own users, wherever they are."""
    found = []
    with contextlib.suppress(OSError), open(_PASSWD, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.rstrip("\n").split(":")
            if len(fields) == 7 and fields[2].isascii() and fields[2].isdigit() and os.path.isabs(fields[5]):
                known = _FIRST_USER <= int(fields[2]) < _NOBODY or int(fields[2]) == os.getuid()
                found += [os.path.realpath(fields[5])] if known else []
    return tuple(dict.fromkeys(home for home in found if home != "/"))


def with_protected(facts: HostFacts) -> HostFacts:
    """Add where refused places lead by links: with ~/.ssh -> /data/keys, /data/keys is refused as well."""
    paths = {found.resolved for found in (facts.workspace, *facts.extra_mounts) if found is not None}
    if facts.repository.linked is not None and facts.repository.linked.directory:
        paths.add(facts.repository.linked.directory)
    places = {place.path for path in paths for place in refused_sources(facts, path) if place.below}
    led = {os.path.realpath(place) for place in places} - places
    # A link of a home to the home itself, or to what holds it, would say no more than that a home is refused.
    settings = {end for end in _settings_elsewhere(facts.home) if not within(facts.home, end)}
    return dataclasses.replace(facts, protected=tuple(sorted(led)), named_only=tuple(sorted(settings)))


def _settings_elsewhere(home: str) -> Iterator[str]:
    """Where dot-entries of the home, what lies in ~/.config, and ~/bin lead by links, as to a directory of dotfiles."""
    for directory, prefix in ((home, "."), (os.path.join(home, ".config"), "")):
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                if entry.name.startswith(prefix) and entry.is_symlink():
                    yield os.path.realpath(entry.path)
    for place in (*SYSTEM_UNLESS_NAMED, os.path.join(home, PROGRAMS)):
        if (end := os.path.realpath(place)) != place:
            yield end
