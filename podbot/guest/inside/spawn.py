"""Starts a program: finds it, prepares its variables, limits and terminal, and reports why it cannot be started."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import struct
import termios

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # the module `signal` costs 0.9 MB

_DEFAULT_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Programs start with the kernel's default action for each of these signals. posix_spawn of the glibc makes two system
# calls instead of one for a signal that is not listed: 10 us for all. C libraries reserve two or three more signals.
_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_CELLS = 65535  # the most columns or rows of a terminal
_OF_A_SHELL = (b"PWD", b"OLDPWD", b"SHLVL", b"_")


class Refusal(Exception):
    """A request that is refused because of its part ``field``, which has the value ``value``."""

    def __init__(self, field: str, value: str, reason: str) -> None:
        super().__init__(reason)
        self.field, self.value, self.reason = field, value, reason


class CannotStart(Exception):
    """The program does not exist (``code`` 127) or cannot be executed (126). ``counts``: see Counters.since."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason, self.counts = code, reason, (0, 0)


def seconds(field: str, value: Any) -> float:
    """A duration in seconds. Raises Refusal."""
    found = float(value)
    if not 0 <= found < float("inf"):
        raise Refusal(field, str(value), "it is not a number of seconds")
    return found


def raw(text: str) -> bytes:
    """The bytes that podbot sent as ``text``, independent of this interpreter's locale."""
    return text.encode("utf-8", "surrogateescape")


def first_environment() -> dict[bytes, bytes]:
    """The variables that the guest was started with, without those that Python (LC_CTYPE) or a shell (PWD) added."""
    try:
        with open("/proc/self/environ", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    found = dict(word.split(b"=", 1) for word in words if b"=" in word)
    return {name: value for name, value in found.items() if name not in _OF_A_SHELL}


def environment(base: dict[bytes, bytes], added: dict[str, str], mode: str) -> dict[bytes, bytes]:
    """A command's variables: ``added``, and those of ``base``, of which modes other than "extend" keep only PATH."""
    chosen = dict(base) if mode == "extend" else {b"PATH": base.get(b"PATH", _DEFAULT_PATH)}
    for name, value in added.items():
        chosen[raw(name)] = raw(value)
    return chosen


def find_program(name: bytes, path: bytes) -> bytes:
    """The path of a program, looked up as a shell does. Raises CannotStart, with the status that a shell gives."""
    places = [name] if b"/" in name else [(part or b".").rstrip(b"/") + b"/" + name for part in path.split(b":")]
    for place in places:
        # A missing file costs `access` 1 µs, but `isfile` 6, because that raises an exception.
        if os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    if b"/" in name:
        try:
            os.stat(name)
        except OSError as exc:
            code = 127 if exc.errno == errno.ENOENT else 126
            raise CannotStart(code, os.strerror(exc.errno or 0).lower()) from None
    elif not any(map(os.path.isfile, places)):
        raise CannotStart(127, "not found")
    raise CannotStart(126, "permission denied")


class Terminal:
    """A pseudo terminal: ``master`` is the guest's end."""

    def __init__(self, columns: Any, rows: Any) -> None:
        """Raises Refusal for a size that no terminal can have."""
        if not all(isinstance(size, int) and 0 <= size <= _CELLS for size in (columns, rows)):
            raise Refusal("tty", f"{columns}x{rows}"[:40], f"columns and rows are numbers from 0 to {_CELLS}")
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size in character cells."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def enter_directory(path: bytes, within: bytes = b"") -> None:
    """Change to the directory in which the next program starts. Raises Refusal, also for one outside ``within``."""
    if not path.startswith(b"/"):
        raise Refusal("cwd", path.decode("utf-8", "replace"), "it is not an absolute path")
    try:
        root = b""
        if within:
            os.chdir(within)
            root = os.getcwdb().rstrip(b"/") + b"/"
        os.chdir(path)
        reason = "" if (os.getcwdb() + b"/").startswith(root) else "it leads out through a link"
    except OSError as exc:
        reason = os.strerror(exc.errno or 0)
    if reason:
        os.chdir("/")  # see Command
        raise Refusal("cwd", path.decode("utf-8", "replace"), reason)


def checked_limits(wanted: dict[str, int]) -> list[tuple[int, int]]:
    """The numbers and values of resource limits, given by their names without ``RLIMIT_``. Raises Refusal."""
    found = []
    for name, value in wanted.items():
        known = getattr(resource, "RLIMIT_" + name, None)
        if not name.isupper() or known is None:
            raise Refusal("rlimits", name, "there is no such limit")
        hard = resource.getrlimit(known)[1]
        if value < 0 or (hard != resource.RLIM_INFINITY and value > hard):
            raise Refusal("rlimits", f"{name}={value}", f"it is over the sandbox's own limit, {hard}")
        found.append((known, value))
    return found


class Program:
    """A program to start: its arguments, variables and limits, and ``fds``, the descriptors that become 0, 1 and 2."""

    def __init__(self, argv: list[bytes], env: dict[bytes, bytes], limits: list[tuple[int, int]]) -> None:
        self.argv, self.env, self.limits = argv, env, limits
        self.path = b""
        self.fds = (0, 1, 2)
        self.user: Any = None  # the Identity to assume
        self.terminal = False  # whether `fds` are a terminal that becomes the controlling terminal

    def start(self) -> int:
        """Start it in a new session and in the current directory; returns its pid. Raises CannotStart."""
        self.path = find_program(self.argv[0], self.env.get(b"PATH", _DEFAULT_PATH))
        try:
            if self.limits or self.terminal or self.user is not None:
                return self._forked()
            try:
                return self._spawned()
            except NotImplementedError:  # a C library whose posix_spawn cannot create sessions
                return self._forked()
        except OSError as exc:
            code = 127 if exc.errno in (errno.ENOENT, errno.ENOTDIR) else 126
            raise CannotStart(code, os.strerror(exc.errno or 0).lower()) from None

    def _spawned(self) -> int:
        """Start it with posix_spawn, which does not copy the guest's page tables and takes 0.4 ms less than a fork."""
        actions: list[Any] = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(self.fds)]
        return os.posix_spawn(
            self.path, self.argv, self.env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_SIGNALS
        )

    def _forked(self) -> int:
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            self._become(writer)
        os.close(writer)
        failed = os.read(reader, 16)
        os.close(reader)
        if failed:
            os.waitpid(pid, 0)
            raise OSError(int(failed), "")
        return pid

    def _become(self, writer: int) -> None:
        """In the child; never returns. The guest has one thread, so any function may be called here."""
        failure = None
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                if signal.getsignal(number) != signal.SIG_DFL:
                    signal.signal(number, signal.SIG_DFL)
            if self.terminal:
                fcntl.ioctl(self.fds[0], termios.TIOCSCTTY, 0)
            for to, fd in enumerate(self.fds):
                os.dup2(fd, to)
            for limit, value in self.limits:
                resource.setrlimit(limit, (value, value))
            if self.user is not None:
                self.user.assume()
            os.execve(self.path, self.argv, self.env)  # noqa: S606 - running programs is what a guest is for
        except OSError as exc:
            failure = exc.errno
        finally:
            os.write(writer, b"%d" % (failure or errno.EINVAL))
            os._exit(127)  # noqa: TID251 - a child process that could not execute its program
