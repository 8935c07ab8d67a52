"""Finds all processes of a command, including those that changed their session or lost their parent.

They are marked by the soft limit RLIMIT_RTTIME, which child processes inherit and which only affects processes with
real-time priority. Each command is started with its own value of it. A process can change its limit; then it is found
only by its process group, as a descendant of a process that was found, or by an earlier search. The same applies to
all processes where the kernel has no such limit.
"""

from __future__ import annotations

import os
import resource
import time

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LIMIT = getattr(resource, "RLIMIT_RTTIME", None)
_LINE = b"Max realtime timeout"
_BASE = (1 << 61) | (int.from_bytes(os.urandom(4), "big") << 24)  # different for each guest of a machine
_MARKS = 1 << 24
_TICKS = os.sysconf("SC_CLK_TCK")
_SIGNALS = 64
_FULL = 16_000_000  # bytes: FULL_MEGABYTES of podbot's disk_notice, which says why


def mark_next(counter: int) -> bytes | None:
    """Mark the process that is started next; returns the mark, or None if the kernel does not support it."""
    value = _BASE | counter % _MARKS
    if _LIMIT is None:
        return None
    try:
        _, hard = resource.getrlimit(_LIMIT)
        resource.setrlimit(_LIMIT, (value, hard))
    except (OSError, ValueError):
        return None
    return b"%d" % value


class _Process:
    """A process as ``/proc/PID/stat`` describes it."""

    def __init__(self, stat: bytes) -> None:
        words = stat[stat.rindex(b")") + 2 :].split()
        self.ended = words[0] in (b"Z", b"X")
        self.parent, self.group, self.session = int(words[1]), int(words[2]), int(words[3])
        self.begun = int(words[19])


def now() -> int:
    """The time in clock ticks since boot, the unit in which the kernel reports when a process was started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def members(root: int, since: int, mark: bytes | None, known: dict[int, int]) -> dict[int, int]:
    """The pids and process groups of the command's processes that have not ended.

    ``root``: the pid of its first process. ``since``: the value of :func:`now` before that was started. ``known``: the
    processes that earlier calls found, by pid, with their start times; this call adds its own. One that changed its
    limit and has lost its parent since then is found by that.
    """
    found: dict[int, _Process] = {}
    own = b"%d" % os.getpid()  # the guest itself has the mark of the last command that it started
    for name in os.listdir(b"/proc"):
        if name.isdigit() and name != own:
            try:
                found[int(name)] = _Process(_content(int(name), "stat"))
            except (OSError, ValueError, IndexError):
                continue
    later = {pid: process for pid, process in found.items() if process.begun >= since - 1}
    chosen = {pid for pid, process in later.items() if known.get(pid) == process.begun}
    chosen |= {pid for pid, process in later.items() if _belongs(pid, process, root, mark)}
    _add_descendants(chosen, found)
    known.update((pid, found[pid].begun) for pid in chosen)
    return {pid: found[pid].group for pid in chosen if not found[pid].ended}


def others() -> bool:
    """Whether any process other than the init and the guest runs in the sandbox."""
    here = (1, os.getpid())
    for name in os.listdir(b"/proc"):
        if name.isdigit() and int(name) not in here:
            try:
                if not _Process(_content(int(name), "stat")).ended:
                    return True
            except (OSError, ValueError, IndexError):
                continue
    return False


def _belongs(pid: int, process: _Process, root: int, mark: bytes | None) -> bool:
    if mark is None:
        return root in (pid, process.session, process.group)
    try:
        limits = _content(pid, "limits")
    except OSError:
        return False
    at = limits.find(_LINE)
    return at >= 0 and limits[at + len(_LINE) :].split(None, 1)[:1] == [mark]


def _add_descendants(chosen: set[int], found: dict[int, _Process]) -> None:
    size = -1
    while len(chosen) != size:
        size = len(chosen)
        chosen.update(pid for pid, process in found.items() if process.parent in chosen)


def end(root: int, pids: dict[int, int], number: int) -> None:
    """Send a signal to all processes that ``members`` found.

    The group of ``root`` gets it in one call, so that no process of the group sees another one end first. Processes
    that have ended or belong to another user are skipped.
    """
    if root in pids.values():
        quietly(os.killpg, root, number)
    for pid, group in pids.items():
        if group != root:
            quietly(os.kill, pid, number)


def keep(fd: int) -> None:
    """Prevent commands from inheriting this descriptor."""
    os.set_inheritable(fd, False)


def quietly(function: Callable[..., object], *words: Any) -> None:
    """Call ``function`` and ignore an OSError. The module contextlib would cost 0.3 MB."""
    try:
        function(*words)
    except OSError:
        return


def is_signal(number: object) -> bool:
    """Whether Linux has a signal of this number."""
    return isinstance(number, int) and 1 <= number <= _SIGNALS


def _content(pid: int, name: str) -> bytes:
    fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


class Counter:
    """A count that the kernel keeps of this sandbox: the number after ``word`` in the first of ``paths`` that opens.

    The file stays open, because it is read at the start and the end of each command; a read takes 2 µs.
    """

    _content, _count = b"", 0  # of the last read: unchanged content is not parsed again, which would take 2 µs more

    def __init__(self, paths: tuple[str, ...], word: bytes) -> None:
        self._word = word
        self._fd = -1
        for path in paths:
            try:
                self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                break
            except OSError:
                continue

    def count(self) -> int:
        """The count; 0 if the kernel does not report it."""
        try:
            content = os.pread(self._fd, 4096, 0) if self._fd >= 0 else b""
            if content != self._content:
                words = content.split()
                self._content, self._count = content, int(words[words.index(self._word) + 1])
        except (OSError, ValueError, IndexError):
            return 0
        return self._count


class Counters:
    """What the kernel did to this sandbox because of its limits: processes killed for memory, and new ones refused."""

    def __init__(self) -> None:
        memory = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
        self._kills = Counter(memory, b"oom_kill")
        self._forks = Counter(("/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"), b"max")

    def counts(self) -> tuple[int, int]:
        """Kills and refused processes since the sandbox started; 0 what the kernel does not report."""
        return self._kills.count(), self._forks.count()

    def since(self, before: tuple[int, int]) -> tuple[int, int]:
        """The same since ``before``."""
        kills, forks = self.counts()
        return max(0, kills - before[0]), max(0, forks - before[1])


def is_full(path: str) -> bool:
    """Whether no file can be written on the file system of ``path`` for want of space or inodes.

    Asked only of ``/``, which the guest has had since before the first command: of a path below it, a file system that
    an agent has mounted there could leave the question unanswered for ever.
    """
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    if found.f_flag & os.ST_RDONLY:  # nothing is written there
        return False
    # Some have no number of inodes: btrfs reports 0 of 0.
    return found.f_bavail * found.f_frsize < _FULL or (found.f_files > 0 and found.f_favail == 0)


def outcome(status: int) -> tuple[int, int | None]:
    """Exit code and signal of a wait status. The code of a process that a signal ended is 128 + the signal."""
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status), os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None
