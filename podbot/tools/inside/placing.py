"""``put``, ``stage``, ``commit``, ``link``, ``mode`` and ``mkdir``: files of any bytes, links and directories.

A content that is too long for one request is staged: written piece by piece to a temporary file beside its place, whose
name podbot chooses, and then committed. Another process can change that file in between, as it can the final one.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import re

from podbot.tools.inside import beneath
from podbot.tools.inside.refusals import Clock, Refused, close_quietly, refused
from podbot.tools.inside.writing import (
    TEMPORARY,
    keep_attributes,
    locked,
    take_free_place,
    temporary_file,
    umask,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOKEN = re.compile(r"[0-9a-f]{16}\Z")
_READ = 1 << 18
_ROUNDS = 100  # another process may remove and create the file all the time


def put(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Write a file whose content is in one request.

    ``how``: "create" refuses an existing file; "overwrite" replaces its content and keeps its attributes; "append"
    writes at its end; "replace" puts a new file in the place of any file or link. ``make``: make the directories on
    the way. ``bits``: the permissions; None: those that it had, or 0644 less the umask.
    """
    path, data = beneath.segments(args["path"]), _decoded(args["data"])
    with beneath.parent(root, path, make=args["make"]) as (fd, name):
        _check_free(fd, name, args["how"], len(path))
        try:
            with temporary_file(fd) as (temporary, file):
                write_all(file, data)
                return _Place(fd, name, temporary, file, len(path)).take(args, clock)
        except OSError as error:
            raise refused(error, at=len(path)) from None


def stage(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Write ``data`` at ``offset``, the end, of the temporary file ``token``. ``begin``: make that."""
    del clock
    path, data, offset = beneath.segments(args["path"]), _decoded(args["data"]), args["offset"]
    with beneath.parent(root, path, make=args["make"]) as (fd, name):
        if args["begin"]:
            _check_free(fd, name, args["how"], len(path))
        try:
            file = _staged(fd, args["token"], TEMPORARY if args["begin"] else os.O_WRONLY | os.O_APPEND)
            try:
                _check_size(file, offset)
                write_all(file, data)
            finally:
                close_quietly(file)
        except OSError as error:
            raise refused(error, at=len(path)) from None
    return {"size": offset + len(data)}


def commit(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Give what was staged, ``size`` bytes, its place. See :func:`put`. The temporary file is gone afterwards."""
    path, name_of = beneath.segments(args["path"]), _staged_name(args["token"])
    with beneath.parent(root, path) as (fd, name):
        try:
            file = _staged(fd, args["token"], os.O_RDWR)
            try:
                _check_size(file, args["size"])
                return _Place(fd, name, name_of, file, len(path)).take(args, clock)
            finally:
                close_quietly(file)
                with contextlib.suppress(OSError):  # it has its final name
                    os.unlink(name_of, dir_fd=fd)
        except OSError as error:
            raise refused(error, at=len(path)) from None


def link(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Put a symbolic link in the place of any file or link. Nothing looks where it leads."""
    del clock
    path, temporary = beneath.segments(args["path"]), b".podbot-" + os.urandom(8).hex().encode("ascii")
    with beneath.parent(root, path) as (fd, name):
        try:
            os.symlink(_decoded(args["target"]), temporary, dir_fd=fd)
            try:
                os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
            except OSError:
                os.unlink(temporary, dir_fd=fd)
                raise
        except OSError as error:
            raise refused(error, at=len(path)) from None
        return {"facts": beneath.facts(beneath.looked(fd, name, len(path)))}


def mode(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Set the permissions ``bits`` of a directory. A file may have another name outside, which would get them, too."""
    del clock
    path = beneath.segments(args["path"])
    with beneath.parent(root, path) as (fd, name):
        directory = beneath.enter(fd, name, len(path))
        try:
            os.chmod(f"/proc/self/fd/{directory}", args["bits"] & 0o777)  # such a descriptor has no fchmod
            return {"facts": beneath.facts(os.fstat(directory))}
        except OSError as error:
            raise refused(error, at=len(path)) from None
        finally:
            os.close(directory)


def mkdir(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Make a directory. ``make``: also those on the way. ``exist_ok``: it may exist, as a directory."""
    del clock
    path = beneath.segments(args["path"])
    with beneath.parent(root, path, make=args["make"]) as (fd, name):
        try:
            os.mkdir(name, 0o777, dir_fd=fd)
        except FileExistsError:
            if not args["exist_ok"] or beneath.kind_of(fd, name) != "directory":
                raise Refused("exists", at=len(path)) from None
        except OSError as error:
            raise refused(error, at=len(path)) from None
        found = beneath.looked(fd, name, len(path))
        if beneath.kind(found) != "directory":  # another process has replaced it
            raise Refused("changed")
        return {"facts": beneath.facts(found)}


def _check_free(fd: int, name: bytes, how: str, at: int) -> None:
    """Refuse early what its place would refuse."""
    kind = beneath.kind_of(fd, name)
    if how == "create" and kind != "missing":
        raise Refused("exists", at=at)
    if kind == "directory" or (kind == "other" and how != "replace"):
        raise Refused("not_a_file", at=at)
    if kind == "link" and how != "replace":
        raise Refused("link", at=at)


class _Place:
    """The place ``name`` of the directory ``fd``, and the temporary file for it. ``at``: the segments of its path."""

    def __init__(self, fd: int, name: bytes, temporary: bytes, file: int, at: int) -> None:
        self._fd, self._name, self._temporary, self._file, self._at = fd, name, temporary, file, at

    def take(self, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
        """Give the temporary file its place, or append it to what is there. Raises OSError and Refused."""
        how, bits = args["how"], args["bits"]
        if how == "replace":
            os.fchmod(self._file, 0o644 & ~umask() if bits is None else bits & 0o777)
            self._rename()
            return {"facts": beneath.facts(os.fstat(self._file))}
        for _ in range(_ROUNDS):
            found = None if how == "create" else self._onto_existing(how, clock)
            if found is not None:
                return {"facts": beneath.facts(found)}
            os.fchmod(self._file, 0o644 & ~umask())
            try:
                take_free_place(self._fd, self._temporary, self._name)
            except FileExistsError:
                if how == "create":
                    raise
                continue
            return {"facts": beneath.facts(os.fstat(self._file))}
        raise Refused("busy", at=self._at)

    def _onto_existing(self, how: str, clock: Clock) -> os.stat_result | None:
        """Overwrite or append to the file that is there; None if there is none. Raises OSError and Refused."""
        with locked(self._fd, clock, self._at - 1):
            try:
                # Both ways for a file that may be written: the kernel checks it.
                old = beneath.opened(self._fd, self._name, os.O_RDWR | (os.O_APPEND if how == "append" else 0))
            except FileNotFoundError:
                return None
            try:
                before = os.fstat(old)
                if how == "overwrite":
                    keep_attributes(old, before, self._file)
                    self._rename()
                    return os.fstat(self._file)
                _copy(self._file, old, clock)
                later = before.st_mtime_ns + 1000
                if os.fstat(old).st_mtime_ns < later:  # the kernel's clock has not moved on
                    os.utime(old, ns=(later, later))
                return os.fstat(old)
            finally:
                os.close(old)

    def _rename(self) -> None:
        os.rename(self._temporary, self._name, src_dir_fd=self._fd, dst_dir_fd=self._fd)


def _copy(file: int, target: int, clock: Clock) -> None:
    at = 0
    while True:
        clock.check()
        part = os.pread(file, _READ, at)
        if not part:
            return
        write_all(target, part)
        at += len(part)


def _decoded(data: Any) -> bytes:
    return binascii.a2b_base64(data)


def _staged_name(token: Any) -> bytes:
    if not isinstance(token, str) or not _TOKEN.match(token):
        raise Refused("bad_path")
    return b".podbot-" + token.encode("ascii")


def _staged(fd: int, token: Any, flags: int) -> int:
    """A descriptor of the temporary file. Raises OSError and Refused."""
    name = _staged_name(token)
    if flags & os.O_CREAT:
        return os.open(name, flags, 0o600, dir_fd=fd)
    return beneath.opened(fd, name, flags)


def _check_size(file: int, size: int) -> None:
    if os.fstat(file).st_size != size:
        raise Refused("changed")
