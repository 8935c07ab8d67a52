"""The paths of podbot's files on the host, and directories that only this user can access.

On Linux the XDG rules are implemented here, because importing platformdirs costs 14 ms, an eighth of a
``podbot exec``. ``tests/test_places.py`` checks that both give the same paths; other systems use platformdirs.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping

from podbot.errors import PathError, UnsafeDirectory

RUN_USER = "/run/user"
OWN_PROC: str | None = "/proc/self" if sys.platform == "linux" else None  # None: a system without one


def home_dir(environ: Mapping[str, str], uid: int | None = None) -> str:
    """The operator's home: ``$HOME`` when it is absolute, else what the user database says of ``uid`` (this user)."""
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid() if uid is None else uid).pw_dir
    except KeyError:
        return "/"


def xdg_dir(environ: Mapping[str, str], variable: str, usual: str) -> str:
    """The directory that ``variable`` names, else ``usual`` in the home. The XDG rules: a relative path is ignored."""
    chosen = environ.get(variable, "").strip()
    return chosen if os.path.isabs(chosen) else os.path.join(home_dir(environ), usual)


def config_file(environ: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """The default configuration file: ``~/.config/podbot/config.toml`` on Linux."""
    return os.path.join(_base(environ, "config", platform), "config.toml")


def state_dir(environ: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """Small files that sessions share and that outlive a reboot: ``~/.local/state/podbot`` on Linux."""
    return _base(environ, "state", platform)


def cache_dir(environ: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """What can be lost: ``$PODBOT_CACHE``, or ``~/.cache/podbot`` on Linux. Not created here."""
    chosen = environ.get("PODBOT_CACHE", "").strip()
    return chosen if os.path.isabs(chosen) else _base(environ, "cache", platform)


def shipped_dir(name: str) -> str:
    """A directory that comes with podbot: inside the installed package as ``_NAME``, or beside it in a source tree."""
    package = os.path.dirname(os.path.abspath(__file__))
    shipped = os.path.join(package, f"_{name}")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), name)


def runtime_root(
    environ: Mapping[str, str], *, uid: int | None = None, run_user: str = RUN_USER, platform: str = sys.platform
) -> str:
    """podbot's runtime directory, which holds sessions and the private service's socket. Not created here.

    On Linux ``$XDG_RUNTIME_DIR/podbot``; without that variable below ``/run/user/UID``, which only the login manager
    can make; without that, below podbot's state directory. Never in ``/tmp``, where any user could make
    the directory first. ``uid``: of this process, unless given.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "").strip()
    if os.path.isabs(runtime):  # the XDG rules: a relative path counts as unset
        return os.path.join(runtime, "podbot")
    if platform == "linux":
        uid = os.getuid() if uid is None else uid
        run = os.path.join(run_user, str(uid))
        base = (
            run if is_own_directory(run, uid) and os.access(run, os.W_OK) else os.path.join(state_dir(environ), "run")
        )
        return os.path.join(base, "podbot")
    import platformdirs

    return str(platformdirs.user_runtime_dir("podbot"))


def _base(environ: Mapping[str, str], kind: str, platform: str) -> str:
    if platform == "linux":
        usual = os.path.join(".local", "state") if kind == "state" else f".{kind}"
        return os.path.join(xdg_dir(environ, f"XDG_{kind.upper()}_HOME", usual), "podbot")
    import platformdirs

    return str(getattr(platformdirs, f"user_{kind}_dir")("podbot"))


def private_runtime_root(environ: Mapping[str, str]) -> str:
    """podbot's runtime directory, created if missing, and checked to be safe for sockets and tokens."""
    return trusted_dir(runtime_root(environ))


def trusted_dir(path: str) -> str:
    """Like :func:`private_dir`, and also check that no other user can replace the directory.

    A user who can write to the parent can rename its entries, so the parent must be ours and not writable by others.
    """
    parent = os.path.dirname(path)
    if not os.path.lexists(parent):
        private_dir(parent)
    if _own_directory(parent).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafeDirectory(path=parent, reason="others can write to it")
    return private_dir(path)


def exposed(path: str, uid: int | None = None, group: int | None = None) -> list[str]:
    """What to tell of ``path``, which is absolute, and directories above it that another user or a group can change.

    Directories on the way of its links are included. Files in such a directory can be replaced at any moment, for
    example the seccomp profile that an engine reads. Raises UnsafeDirectory for a world-writable one. These cause only
    a warning: a home of another user, which root may have in a container or with sudo, and a group with write access,
    except the user's own group as in Debian and Fedora. ``uid`` and ``group`` default to those of this process.
    """
    uid, group = os.getuid() if uid is None else uid, os.getgid() if group is None else group
    warnings: list[str] = []
    spelled, real = os.path.normpath(path), os.path.realpath(path)
    for directory in dict.fromkeys((*_above(spelled), *_above(real), real)):
        try:
            found = os.stat(directory)
        except OSError:
            continue  # it does not exist yet, and will be private to this user
        if found.st_uid not in (0, uid) and found.st_uid != _unmapped():
            text = f"{directory} belongs to user {found.st_uid}, who can replace podbot's files in {path}"
            warnings.append(text)
        if found.st_mode & stat.S_ISVTX:  # others can rename only their own files in it
            continue
        if found.st_mode & stat.S_IWOTH:
            raise UnsafeDirectory(path=directory, reason=f"every user can write to it, and it contains {path}")
        if found.st_mode & stat.S_IWGRP and found.st_gid not in (0, uid if uid == group else 0):
            warnings.append(f"group {found.st_gid} can write to {directory}, and replace podbot's files in {path}")
    return warnings


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) or "/" for end in range(1, len(parts))]


def _unmapped() -> int:
    """The overflow user id, which stands for all unmapped users in a user namespace; -1 outside one."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            whole = file.read().split()[2:3] == ["4294967295"]
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            return -1 if whole else int(file.read())
    except (OSError, ValueError):
        return -1


def private_dir(path: str, uid: int | None = None) -> str:
    """Make ``path`` (and its parents) and be sure that it is a real directory of ours with mode 0700.

    Raises UnsafeDirectory when it is a link, another user's, or cannot be made private; PathError
    when it cannot be made at all. ``uid``: ours, unless given.
    """
    make_dirs(path)
    if stat.S_IMODE(_own_directory(path, uid).st_mode) != 0o700:
        os.chmod(path, 0o700)
    return path


def is_own_directory(path: str, uid: int | None = None) -> bool:
    """A real directory of this user's: what others have put there is not to be read, let alone believed."""
    try:
        _own_directory(path, uid)
    except (PathError, UnsafeDirectory):
        return False
    return True


def make_dirs(path: str) -> None:
    """Create ``path`` and its missing parents with mode 0700. Raises PathError.

    ``os.makedirs`` applies its mode only to the last one, so with umask 0 others could write to the parents.
    """
    parent = os.path.dirname(path)
    if parent not in ("", path) and not os.path.lexists(parent):
        make_dirs(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass  # usually a directory; otherwise its use fails later
    except OSError as exc:
        raise PathError(path=path, operation="create", reason=exc.strerror or str(exc)) from exc


def path_of(handle: int, path: str, proc: str | None = OWN_PROC) -> str:
    """Where an open file lies, without a link in its path. ``path``: resolved again where ``proc`` is None."""
    return os.readlink(f"{proc}/fd/{handle}") if proc is not None else os.path.realpath(path)


def _own_directory(path: str, uid: int | None = None) -> os.stat_result:
    """``lstat`` of a real directory that belongs to this user; UnsafeDirectory otherwise."""
    try:
        found = os.lstat(path)
    except OSError as exc:
        raise PathError(path=path, operation="read", reason=exc.strerror or str(exc)) from exc
    if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
        raise UnsafeDirectory(path=path, reason="it is a link or no directory")
    if found.st_uid != (os.getuid() if uid is None else uid):
        raise UnsafeDirectory(path=path, reason=f"it belongs to user {found.st_uid}")
    return found
