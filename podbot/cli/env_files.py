"""Reads the files of ``--env-file``, through no link that an agent could have made."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.errors import InvalidValue

if TYPE_CHECKING:
    from podbot.launch.types import HostFacts

LARGEST_FILE = 1 << 20  # bytes
_FAULTS = {  # by the error's number: what is wrong with the path, and what to do
    errno.EISDIR: ("is a directory", "Name a file."),
    errno.ELOOP: ("cannot be read: its symbolic links lead in a circle", "Correct the links, or name the file itself."),
    errno.ENOTDIR: ("cannot be read: a part of its path is a file", "Check the path."),
    errno.EACCES: ("cannot be read: this user may not open it", "Name a file that this user can read."),
}
_KERNELS = ("/dev/", "/proc/")  # no agent makes links there: /dev/stdin, and /dev/fd/N for a shell's <(command)
# O_NONBLOCK: do not wait for an agent that holds a lease on a file in the workspace, or for a pipe's other end.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_env_file(path: str, environ: Mapping[str, str]) -> bytes:
    """What the file or pipe at ``path`` contains. Raises InvalidValue."""
    try:
        with open(_opened(path, environ), "rb") as file:
            if not any(of(os.fstat(file.fileno()).st_mode) for of in (stat.S_ISREG, stat.S_ISFIFO)):
                raise _refused(f"{path} is neither a file nor a pipe", "Name a file.")
            os.set_blocking(file.fileno(), True)
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError as exc:
        from podbot.cli.repeating import masked

        raise _refused(f"there is no file {masked(path)}", "Check the path.") from exc
    except (OSError, ValueError) as exc:
        found = _FAULTS.get(getattr(exc, "errno", None) or 0)
        if found is None:
            found = f"cannot be read: {getattr(exc, 'strerror', None) or exc}", "Name a file that this user can read."
        raise _refused(f"{path} {found[0]}", found[1]) from exc
    if len(data) > LARGEST_FILE:
        raise _refused(f"{path} is larger than 1 MiB", "Name a smaller file.")
    return data


def _opened(path: str, environ: Mapping[str, str]) -> int:
    place = os.path.abspath(path)
    if place.startswith(_KERNELS):
        return os.open(place, _READ)
    from podbot.sections.host_tree import opened_below

    parts = [part for part in _checked(path, place, environ).split("/") if part]
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The path without links, so that one that an agent makes now is not followed either.
        with opened_below(root, parts or ["."], _READ | os.O_NOFOLLOW) as file:
            return os.dup(file)
    finally:
        os.close(root)


def _checked(path: str, place: str, environ: Mapping[str, str]) -> str:
    """Where ``place`` is without links. Raises InvalidValue for a link that an agent could have made, and leads out."""
    from podbot.frozen import replace
    from podbot.launch.mount_paths import leading_out
    from podbot.session.host_paths import links_to_cwd, path_facts

    found = path_facts(path, place)
    if not os.path.isabs(path):
        found = replace(found, links=(*links_to_cwd(environ, os.getcwd()), *found.links))
    link = leading_out(found, _facts(environ)) if found.links else None
    if link is not None:
        reason = f"the link {link.path} leads out of its repository or directory, to {link.leads_to}"
        raise _refused(reason, f"An agent could have made that link. If you mean {found.resolved}, write that.")
    return found.resolved


def _facts(environ: Mapping[str, str]) -> HostFacts:
    from podbot.session.facts import facts_without_session
    from podbot.session.host_paths import with_protected

    return with_protected(facts_without_session(environ))


def _refused(reason: str, hint: str = "") -> InvalidValue:
    return InvalidValue(field="env-file", origin="flag --env-file", reason=reason, hint=hint)
