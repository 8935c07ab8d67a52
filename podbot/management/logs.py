"""``podbot logs``: reads what a session has recorded of its agent's output."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping

from podbot.engine.port import Engine
from podbot.errors import NoLog, PathError
from podbot.execution.output_log import CURRENT, EARLIER
from podbot.launch.names import LABEL
from podbot.launch.own_file import DIRECTORY, kept_directory, log_directory
from podbot.places import is_own_directory, runtime_root, state_dir
from podbot.session.flags import is_live
from podbot.session.session_names import session_meant

PAUSE = 0.2  # seconds between looks for more
_CHUNK = 1 << 16
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SessionLog:
    """A log of a session. ``session``: its name; ``directory``: of its files, ours; ``live``: it is being written.

    ``names``: of the file that is being written, and of the one before it.
    """

    def __init__(
        self, session: str, directory: str, live: Callable[[], bool], names: tuple[str, str] = (CURRENT, EARLIER)
    ) -> None:
        self.session, self._directory, self._live = session, directory, live
        self._current, self._earlier = names

    def lines(self, last: int | None = None) -> list[bytes]:
        """The recorded lines, or the last ones, each with its ending if it has one. Raises PathError."""
        fd, lines = self._recorded()
        if fd is not None:
            os.close(fd)
        return _last(lines, last)

    def follow(self, last: int | None = None, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[bytes]:
        """The same lines, and then what is recorded until the session ends. Raises PathError.

        Without a gap, unless the caller lets two files pass between two lines.
        """
        fd, lines = self._recorded()
        opened = [] if fd is None else [fd]  # the file that is being read, and those after it
        try:
            yield b"".join(_last(lines, last))
            while True:
                live = self._live()
                if opened:
                    yield from _chunks(opened[0])
                    if len(opened) > 1:
                        os.close(opened.pop(0))
                        continue
                newer = self._newer(opened[0] if opened else None)
                opened += newer
                if newer:
                    continue
                if not live:
                    return
                sleep(PAUSE)
        finally:
            for fd in opened:
                os.close(fd)

    def _newer(self, fd: int | None) -> list[int]:
        """The files after ``fd``, the older one first."""
        current, earlier = self._both()
        if current is not None and not _is_same(fd, current):
            if fd is not None and earlier is not None and not _is_same(fd, earlier):
                return [earlier, current]
            newer, current = [current], None
        else:
            newer = []
        for unused in (current, earlier):
            if unused is not None:
                os.close(unused)
        return newer

    def _recorded(self) -> tuple[int | None, list[bytes]]:
        """The file that is being written, read to its present end, and the lines of both files."""
        fd, earlier = self._both()
        try:
            data = b"".join(_chunks(earlier)) if earlier is not None else b""
            data += b"".join(_chunks(fd)) if fd is not None else b""
        except BaseException:
            if fd is not None:
                os.close(fd)
            raise
        finally:
            if earlier is not None:
                os.close(earlier)
        found = data.split(b"\n")
        return fd, [line + b"\n" for line in found[:-1]] + ([found[-1]] if found[-1] else [])

    def _both(self) -> tuple[int | None, int | None]:
        """The file that is being written and the one before it, opened so that no rotation came between."""
        while True:
            fd = earlier = again = None
            whole = False
            try:
                fd, earlier, again = (self._open(name) for name in (self._current, self._earlier, self._current))
                whole = _is_same(fd, again)
                if whole:
                    return fd, earlier
            finally:
                for opened in (again, *(() if whole else (fd, earlier))):
                    if opened is not None:
                        os.close(opened)

    def _open(self, name: str) -> int | None:
        """A file of ours, through no link; None if there is none."""
        path = os.path.join(self._directory, name)
        try:
            fd = os.open(path, _FLAGS)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise PathError(path=path, operation="read", reason=exc.strerror or str(exc)) from exc
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            os.close(fd)
            raise PathError(path=path, operation="read", reason="it is no file of this user's")
        return fd


def _last(lines: list[bytes], last: int | None) -> list[bytes]:
    return lines if last is None else lines[len(lines) - min(last, len(lines)) :]


def _is_same(first: int | None, second: int | None) -> bool:
    if first is None or second is None:
        return first is second
    return os.path.samestat(os.fstat(first), os.fstat(second))


def _chunks(fd: int) -> Iterator[bytes]:
    while chunk := os.read(fd, _CHUNK):
        yield chunk


def session_log(engine: Engine, environ: Mapping[str, str], given: str) -> SessionLog:
    """The log of a session. Raises NoLog if it has none, ContainerNotFound, AmbiguousName and NotOurs."""
    container = session_meant(engine, given)
    path = os.path.join(runtime_root(environ), container.name)
    kept = kept_directory(state_dir(environ), container.name, container.labels.get(f"{LABEL}.created", ""))
    for files in (os.path.join(path, DIRECTORY), kept):
        directory = log_directory(files)
        if is_own_directory(files) and is_own_directory(directory):
            return SessionLog(container.name, directory, lambda: is_live(path))
    raise NoLog(session=container.name)
