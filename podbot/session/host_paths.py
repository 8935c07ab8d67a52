"""Facts about host paths that planning needs: where they lead, and through which links."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Literal

from podbot.frozen import replace
from podbot.launch.refused_paths import PROGRAMS, SYSTEM_UNLESS_NAMED, refused_sources, within
from podbot.launch.types import HostFacts, LinkFacts, PathFacts
from podbot.places import home_dir

_MOST_LINKS = 64  # on one path; the kernel gives up after 40
_MOST_ENTRIES = 4096  # of a home directory that are read
PASSWD = "/etc/passwd"  # noqa: S105 - not getpwall(), which may query a directory server for a whole company
_FIRST_USER, _NOBODY = 1000, 65534  # people's user ids are from the first to below the second


def expanded(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def path_facts(given: str, path: str) -> PathFacts:
    """Resolve every link of an absolute ``path`` and look at what is there."""
    try:
        resolved = os.path.realpath(path)
        kind = kind_of(resolved)
    except ValueError:  # a NUL byte, for which planning refuses the path
        return PathFacts(given, path, "missing")
    return PathFacts(given, resolved, kind, links=links_on(path))


def kind_of(resolved: str) -> Literal["directory", "other", "missing", "circle", "unreadable"]:
    import errno
    import stat

    try:
        mode = os.stat(resolved).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as exc:  # no permission for a parent, a mount whose server is gone
        return "circle" if exc.errno == errno.ELOOP else "unreadable"
    if not stat.S_ISDIR(mode):
        return "other"
    return "directory" if os.access(resolved, os.R_OK | os.X_OK) else "unreadable"


def spelled_path(found: PathFacts, environ: Mapping[str, str], cwd: str) -> str | None:
    """The workspace's path as the operator and the editor write it, with links unresolved, also in $HOME and $PWD.

    None when it equals the resolved path, or leads to another directory: ``link/..`` names another directory when it is
    normalized as text than when its links are followed.
    """
    path = os.path.normpath(os.path.join(_named(cwd, environ), expanded(found.given, home_dir(environ))))
    path = "/" + path.lstrip("/")  # normpath leaves two slashes as they are
    return path if path != found.resolved and _leads_to(path, found.resolved) else None


def links_to_cwd(environ: Mapping[str, str], cwd: str) -> tuple[LinkFacts, ...]:
    """The links through which the operator entered the working directory, as far as $PWD shows them.

    Every relative path begins with them. For the kernel they are gone: ``..`` is then the parent of where they led,
    and not the directory that a shell's ``cd ..`` goes back to.
    """
    return links_on(_named(cwd, environ))


def _named(cwd: str, environ: Mapping[str, str]) -> str:
    """The working directory as a shell names it, and an editor that ran one; ``cwd`` when $PWD names another one."""
    pwd = environ.get("PWD", "")
    return pwd if os.path.isabs(pwd) and _leads_to(pwd, cwd) else cwd


def _leads_to(path: str, end: str) -> bool:
    try:
        return os.path.realpath(path) == end
    except ValueError:  # a NUL byte
        return False


def links_on(path: str) -> tuple[LinkFacts, ...]:
    """Every symbolic link that the kernel follows for an absolute ``path``, including the last component."""
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
        except (OSError, ValueError):  # not a link, or missing
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
    """Whether the relative path ``name`` exists in a directory, or has a link in it, which may resolve inside only."""
    path = directory
    for part in name.split("/"):
        path = os.path.join(path, part)
        if os.path.islink(path):
            return True
    return os.path.lexists(path)


def other_homes(uid: int, passwd: str = PASSWD) -> tuple[str, ...]:
    """Home directories of this machine's local users, and of user ``uid``, wherever they are."""
    found = []
    with contextlib.suppress(OSError), open(passwd, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.rstrip("\n").split(":")
            if len(fields) == 7 and fields[2].isascii() and fields[2].isdigit() and os.path.isabs(fields[5]):
                known = _FIRST_USER <= int(fields[2]) < _NOBODY or int(fields[2]) == uid
                found += [os.path.realpath(fields[5])] if known else []
    return tuple(dict.fromkeys(home for home in found if home != "/"))


def with_protected(facts: HostFacts) -> HostFacts:
    """Add the targets of refused paths that are links: with ~/.ssh -> /data/keys, /data/keys is refused too."""
    paths = {found.resolved for found in (facts.workspace, *facts.extra_mounts) if found is not None}
    if facts.repository.linked is not None and facts.repository.linked.directory:
        paths.add(facts.repository.linked.directory)
    places = {place.path for path in paths for place in refused_sources(facts, path) if place.below}
    led = {os.path.realpath(place) for place in places} - places
    # A link in the home to the home itself or its parent is skipped, because a home is refused anyway.
    settings = {end for end in _settings_elsewhere(facts.home) if not within(facts.home, end)}
    return replace(facts, protected=tuple(sorted(led)), named_only=tuple(sorted(settings)))


def _settings_elsewhere(home: str) -> Iterator[str]:
    """Targets of links among the home's dot-entries, ~/.config's entries and ~/bin, e.g. in a directory of dotfiles."""
    for directory, prefix in ((home, "."), (os.path.join(home, ".config"), "")):
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                if entry.name.startswith(prefix) and entry.is_symlink():
                    yield os.path.realpath(entry.path)
    for place in (*SYSTEM_UNLESS_NAMED, os.path.join(home, PROGRAMS)):
        if (end := os.path.realpath(place)) != place:
            yield end
