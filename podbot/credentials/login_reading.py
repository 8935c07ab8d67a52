"""Where an agent's logins are on this host, and the files of which they are judged: the operator's own, and small."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from podbot.agents.definition import Family
from podbot.agents.login_state import LARGEST
from podbot.agents.registry import agent
from podbot.credentials.own_login import Refused, accepted, without_refresh
from podbot.errors import InvalidValue

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def place_of(family: Family, home: str, environ: Mapping[str, str]) -> str:
    """The family's directory, which the agent's own variable may name.

    Raises InvalidValue for a path that is not absolute, and for one that holds the home directory.
    """
    given = environ.get(family.variable, "")
    if not given:
        return os.path.join(home, family.directory)
    found, real = os.path.realpath(given), os.path.realpath(home)
    reason = ""
    if not os.path.isabs(given):
        # Relative to the working directory, it would lead to whatever a repository put there.
        reason = f"{given!r} is not an absolute path"
    elif os.path.commonpath((found, real)) == found:
        reason = f"{given!r} holds the home directory, all of which would be copied"
    if reason:
        hint = f"Name the directory of {family.name}'s own files, or switch the copy off: creds.copy_{family.name}."
        raise InvalidValue(field=family.variable, origin="variable of the host", reason=reason, hint=hint)
    return os.path.normpath(given)


def read_login_files(directory: str, names: tuple[str, ...]) -> dict[str, bytes | str]:
    """The content of the files ``names`` in ``directory``, or why there is none; missing ones are omitted."""
    found = {}
    for name in names:
        path = os.path.join(directory, name)
        if os.path.lexists(path):
            found[name] = _content(directory, path)
    return found


def login_to_copy(family: str, content: bytes | str, *, renewable: bool) -> tuple[bytes | str, bool]:
    """A login's file as a sandbox gets it, and whether that is a login that can be kept apart from other files.

    ``renewable``: with the token that renews it. Without it, a file in which podbot does not find that token is not
    copied, and the text says why.
    """
    spec = agent(family).own_login
    if spec is None or isinstance(content, str):
        return content, False
    try:
        if renewable:
            accepted(spec, content)
            return content, True
        return without_refresh(spec, content), True
    except Refused as exc:
        return (content if renewable else f"creds.copy_refresh_tokens is false, and {exc.reason}"), False


def _content(directory: str, path: str) -> bytes | str:
    top, real = os.path.realpath(directory), os.path.realpath(path)
    if os.path.commonpath((top, real)) != top:
        return f"it is a link out of {directory}, which is not copied"
    try:
        with open(os.open(path, _FLAGS), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return "it is not a regular file"
            return file.read(LARGEST + 1)
    except OSError as exc:
        return exc.strerror or str(exc)
