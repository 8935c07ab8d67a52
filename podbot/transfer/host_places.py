"""Opens the host's end of a copy, through no link that an agent could have made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from podbot.errors import CopyFailed
from podbot.frozen import replace
from podbot.launch.mount_paths import leading_out
from podbot.launch.types import HostFacts
from podbot.sections.host_tree import opened_below
from podbot.session.host_paths import path_facts

# O_PATH needs only the right to search a directory, which others give for their homes. Linux only.
_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class HostPlace(NamedTuple):
    """An entry of an open directory, or with ``name`` empty the directory itself."""

    fd: int
    name: str
    is_directory: bool


@contextlib.contextmanager
def opened_source(path: str, facts: HostFacts) -> Iterator[HostPlace]:
    """The file or directory at ``path``. Raises CopyFailed."""
    place = os.path.abspath(path)
    if not os.path.lexists(place):
        raise CopyFailed(path=path, reason="there is no such file or directory", hint="Check the path on this host.")
    resolved = _checked(path, place, facts)
    above, name = os.path.split(resolved)
    with _opened(path, above) as fd:
        yield HostPlace(fd, name or ".", os.path.isdir(resolved))


@contextlib.contextmanager
def opened_target(path: str, facts: HostFacts) -> Iterator[HostPlace]:
    """Where a copy called ``path`` comes: an existing directory, or an entry of the one above. Raises CopyFailed."""
    place = os.path.abspath(path)
    if os.path.isdir(place):
        with _opened(path, _checked(path, place, facts)) as fd:
            yield HostPlace(fd, "", is_directory=True)
        return
    if path.endswith("/"):
        raise CopyFailed(path=path, reason="there is no such directory", hint="Make it first, on this host.")
    above, name = os.path.split(place)
    with _opened(path, _checked(path, above, facts)) as fd:
        yield HostPlace(fd, name, is_directory=False)


def _checked(path: str, place: str, facts: HostFacts) -> str:
    """Where ``place`` is without links. Raises CopyFailed for a link that an agent could have made, and leads out."""
    found = path_facts(path, place)
    if not os.path.isabs(path):
        found = replace(found, links=(*facts.cwd_links, *found.links))
    link = leading_out(found, facts)
    if link is not None:
        reason = f"the link {link.path} leads out of its repository or directory, to {link.leads_to}"
        hint = f"An agent could have made that link. If you mean {found.resolved}, name that."
        raise CopyFailed(path=path, reason=reason, hint=hint)
    return found.resolved


@contextlib.contextmanager
def _opened(path: str, resolved: str) -> Iterator[int]:
    parts = [part for part in resolved.split("/") if part]
    with contextlib.ExitStack() as stack:
        try:
            root = stack.enter_context(_root())
            fd = stack.enter_context(opened_below(root, parts, _THROUGH, above=_THROUGH))
        except OSError as error:
            raise CopyFailed(path=path, reason=f"{resolved} cannot be opened: {error.strerror}") from error
        yield fd


@contextlib.contextmanager
def _root() -> Iterator[int]:
    fd = os.open("/", _THROUGH)
    try:
        yield fd
    finally:
        os.close(fd)
