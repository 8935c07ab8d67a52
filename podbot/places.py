"""Where podbot's files live on the host, and directories that only this user can reach.

On Linux the XDG rules are applied here by hand: importing platformdirs costs 14 ms, an eighth of a
``podbot exec``. ``tests/test_places.py`` holds both to the same answers; other systems ask platformdirs.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping

from podbot.errors import PathError, UnsafeDirectory

_LINUX: bool = sys.platform == "linux"
_RUN_USER = "/run/user"


def home_dir(environ: Mapping[str, str]) -> str:
    """The operator's home: ``$HOME`` when it is absolute, else what the user database says."""
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def config_file(environ: Mapping[str, str]) -> str:
    """The default configuration file: ``~/.config/podbot/config.toml`` on Linux."""
    return os.path.join(_base(environ, "config"), "config.toml")


def state_dir(environ: Mapping[str, str]) -> str:
    """Small files that sessions share and that outlive a reboot: ``~/.local/state/podbot`` on Linux."""
    return _base(environ, "state")


def runtime_root(environ: Mapping[str, str]) -> str:
    """podbot's runtime directory, which holds sessions and the private service's socket. Not created here.

    On Linux ``$XDG_RUNTIME_DIR/podbot``; without that variable below ``/run/user/UID``, which the login manager makes
    and nobody else can; without that, below podbot's state directory. Never in ``/tmp``, where any user could make
    the directory first.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "").strip()
    if os.path.isabs(runtime):  # the XDG rules: a relative path counts as unset
        return os.path.join(runtime, "podbot")
    uid = os.getuid()
    if _LINUX:
        run = os.path.join(_RUN_USER, str(uid))
        base = run if is_own_directory(run) and os.access(run, os.W_OK) else os.path.join(state_dir(environ), "run")
        return os.path.join(base, "podbot")
    import platformdirs

    return str(platformdirs.user_runtime_dir("podbot"))


def _base(environ: Mapping[str, str], kind: str) -> str:
    if _LINUX:
        usual = os.path.join(".local", "state") if kind == "state" else f".{kind}"
        chosen = environ.get(f"XDG_{kind.upper()}_HOME", "").strip()
        home = home_dir(environ)
        return os.path.join(chosen if os.path.isabs(chosen) else os.path.join(home, usual), "podbot")
    import platformdirs

    return str(getattr(platformdirs, f"user_{kind}_dir")("podbot"))


def private_runtime_root(environ: Mapping[str, str]) -> str:
    """podbot's runtime directory, made when missing and safe to keep sockets and tokens in."""
    return trusted_dir(runtime_root(environ))


def trusted_dir(path: str) -> str:
    """:func:`private_dir`, where nobody else can put another directory in its place either.

    Whoever can write in the parent can rename what lies in it: the parent must be ours, and closed to others.
    """
    parent = os.path.dirname(path)
    if not os.path.lexists(parent):
        private_dir(parent)
    if _own_directory(parent).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafeDirectory(path=parent, reason="others can write to it")
    return private_dir(path)


def exposed(path: str, uid: int | None = None, group: int | None = None) -> list[str]:
    """What to tell of directories above ``path``, which is absolute, that another user or a group can change.

    Those on the way of its links as well. What is in such a one can be exchanged between any two looks at it, the
    seccomp profile that an engine reads for one. Raises UnsafeDirectory for one that everybody can write. Told and not
    refused: a home of another user's, for root in a container or by sudo; a group, but for one that has the user's own
    number, as Debian and Fedora make them. ``uid`` and ``group``: of this process, unless given.
    """
    uid, group = os.getuid() if uid is None else uid, os.getgid() if group is None else group
    told = []
    for directory in dict.fromkeys((*_above(os.path.normpath(path)), *_above(os.path.realpath(path)))):
        try:
            found = os.stat(directory)
        except OSError:
            continue  # not made yet: then it is made for this user alone
        if found.st_uid not in (0, uid) and found.st_uid != _unmapped():
            told.append(f"{directory} belongs to user {found.st_uid}, who can so exchange what podbot keeps in {path}")
        if found.st_mode & stat.S_ISVTX:  # others can rename nothing in it that is not theirs
            continue
        if found.st_mode & stat.S_IWOTH:
            raise UnsafeDirectory(path=directory, reason=f"everybody can write to it, and {path} lies in it")
        if found.st_mode & stat.S_IWGRP and found.st_gid not in (0, uid if uid == group else 0):
            told.append(f"group {found.st_gid} can write to {directory}, and exchange what podbot keeps in {path}")
    return told


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) or "/" for end in range(1, len(parts))]


def _unmapped() -> int:
    """The user id of all whom a user namespace does not know, the host's root among them; -1 outside one."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            whole = file.read().split()[2:3] == ["4294967295"]
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            return -1 if whole else int(file.read())
    except (OSError, ValueError):
        return -1


def private_dir(path: str) -> str:
    """Make ``path`` (and its parents) and be sure that it is a real directory of ours with mode 0700.

    Raises UnsafeDirectory when it is a link, somebody else's, or cannot be made private; PathError
    when it cannot be made at all.
    """
    make_dirs(path)
    if stat.S_IMODE(_own_directory(path).st_mode) != 0o700:
        os.chmod(path, 0o700)
    return path


def is_own_directory(path: str) -> bool:
    """A real directory of this user's: what others have put there is not to be read, let alone believed."""
    try:
        _own_directory(path)
    except (PathError, UnsafeDirectory):
        return False
    return True


def make_dirs(path: str) -> None:
    """Make ``path`` and its parents, as far as they are missing, for this user alone. Raises PathError.

    Not ``os.makedirs``, whose mode is for the last one: with umask 0 others could put their own below the parents.
    """
    parent = os.path.dirname(path)
    if parent not in ("", path) and not os.path.lexists(parent):
        make_dirs(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass  # a directory, most often; whatever else it is, its user will see
    except OSError as exc:
        raise PathError(path=path, operation="create", reason=exc.strerror or str(exc)) from exc


def _own_directory(path: str) -> os.stat_result:
    """``lstat`` of a real directory that belongs to this user; UnsafeDirectory otherwise."""
    try:
        found = os.lstat(path)
    except OSError as exc:
        raise PathError(path=path, operation="read", reason=exc.strerror or str(exc)) from exc
    if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
        raise UnsafeDirectory(path=path, reason="it is a link or no directory")
    if found.st_uid != os.getuid():
        raise UnsafeDirectory(path=path, reason=f"it belongs to user {found.st_uid}")
    return found
