"""The user of a command, by the sandbox's own files, as engines look it up: a name or a number, and perhaps a group."""

from __future__ import annotations

import os
import stat

from podbot.guest.inside.spawn import Refusal, raw

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 1 << 20  # bytes of a file that are read
_IDS = (1 << 31) - 1


class Identity:
    """``groups``: the supplementary ones. ``home``: the home directory, ``/`` for a user without one."""

    def __init__(self, uid: int, gid: int, groups: list[int], home: str) -> None:
        self.uid, self.gid, self.groups, self.home = uid, gid, groups, home

    def assume(self) -> None:
        """Become this user, for good; for a child of a guest that is root. Raises OSError."""
        os.setgroups(self.groups)
        os.setgid(self.gid)
        os.setuid(self.uid)


def identity(text: str) -> Identity:
    """The user that ``text`` names: ``USER`` or ``USER:GROUP``. Raises Refusal."""
    if os.geteuid() != 0:
        raise Refusal("user", text, "the guest is not root")
    return find(text, "/etc/passwd", "/etc/group")


def change_home(env: dict[bytes, bytes], added: dict[str, str], user: Identity) -> None:
    """Set HOME as an engine does: not if the sandbox's configuration or the command has a value of its own."""
    if "HOME" not in added and env.get(b"HOME", b"") in (b"", raw(identity("0").home)):
        env[b"HOME"] = raw(user.home)


def find(text: str, users_file: str, groups_file: str) -> Identity:
    """As :func:`identity`, from these files and for any guest."""
    user, _, wanted = text.partition(":")
    name, uid, gid, home = _user(text, user or "0", users_file)
    if wanted:
        return Identity(uid, _group(text, wanted, groups_file), [], home)
    return Identity(uid, gid, _memberships(name, groups_file), home)


def _user(text: str, user: str, path: str) -> tuple[str, int, int, str]:
    """Name, id, primary group and home directory; for a number that is not in the file, no name and group 0."""
    for fields, uid in _entries(path, 2):
        if len(fields) > 3 and user in (fields[0], str(uid)) and _number(fields[3]) is not None:
            return fields[0], uid, _number(fields[3]) or 0, "".join(fields[5:6]) or "/"
    number = _number(user)
    if number is None:
        raise Refusal("user", text, "no matching entries in passwd file")
    return "", number, 0, "/"


def _memberships(name: str, path: str) -> list[int]:
    return [number for fields, number in _entries(path, 2) if name and name in "".join(fields[3:4]).split(",")]


def _group(text: str, group: str, path: str) -> int:
    for fields, gid in _entries(path, 2):
        if group in (fields[0], str(gid)):
            return gid
    number = _number(group)
    if number is None:
        raise Refusal("user", text, "no matching entries in group file")
    return number


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _IDS else None


def _entries(path: str, number: int) -> Iterator[tuple[list[str], int]]:
    """The fields of each line, and the one that is the id. Nothing of a file that is not a regular one."""
    for line in _content(path).splitlines():
        fields = line.strip().split(":")
        ident = _number(fields[number]) if len(fields) > number else None
        if ident is not None:
            yield fields, ident


def _content(path: str) -> str:
    """A process inside may have put anything there, such as a named pipe, which must not hold the guest up."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.read(fd, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
