"""``podbot cp``: a tar program in the sandbox at one end, podbot at the other."""

from __future__ import annotations

import errno
import os
import posixpath
import signal
from collections.abc import Callable
from typing import NamedTuple

from podbot.atomic import file_errors
from podbot.engine.port import Engine
from podbot.errors import CopyFailed
from podbot.exec_spec import ExecSpec
from podbot.execution.capture import Kept, run_fed
from podbot.launch.types import HostFacts
from podbot.streams.wake import Interrupted, Signal, Wake
from podbot.tools.inside.writing import umask
from podbot.transfer.copy_operands import Inside, Location, inside
from podbot.transfer.host_places import HostPlace, opened_source, opened_target
from podbot.transfer.limits import AFTER_END, CopyLimits, CopyReport, TooMuch, check
from podbot.transfer.receiver import Receiver
from podbot.transfer.sender import send
from podbot.transfer.tar_reader import BadArchive, TarReader

# Prints d for a directory, f for anything else that is there, and n for nothing.
_LOOK = 'if [ -d "$1" ]; then echo d; elif [ -e "$1" ] || [ -h "$1" ]; then echo f; else echo n; fi'
_MAKE = "Make it in the sandbox first."
_SAID = 4096  # bytes of what tar prints that are kept
_NO_TAR = 127
_CHANGED = 1  # GNU tar: a file changed while it was read; the archive is complete


class CopyJob(NamedTuple):
    """A copy from or to the running session ``name``. ``guest``: the directory of its guest's socket, if it has one."""

    engine: Engine
    name: str
    guest: str | None
    wake: Wake
    facts: HostFacts
    limits: CopyLimits
    report: CopyReport


def copy_from(job: CopyJob, source: Location, target: str) -> None:
    """Copy a file or directory of a sandbox to ``target`` on this host.

    Raises CopyFailed, DiskFull, PathError, Interrupted, and what ``run_exec`` raises.
    """
    there = inside(source.path)
    with opened_target(target, job.facts) as place:
        name = there.name if place.is_directory else place.name
        if not place.is_directory and _exists(place):
            _refuse_directory(job, source, target)
        receiver = Receiver(
            place.fd, source=os.fsencode(there.name), name=os.fsencode(name), umask=umask(), report=job.report,
            limits=job.limits,
        )  # fmt: skip
        with receiver, file_errors(target, "write the copy"):
            _receive(job, source, there, receiver)


def copy_to(job: CopyJob, source: str, target: Location) -> None:
    """Copy a file or directory of this host to a path of a job. Raises as :func:`copy_from`."""
    with opened_source(source, job.facts) as place:
        above, name = _placed(job, source, place, target)
        failed: list[BaseException] = []

        def fill(write: Callable[[bytes], object]) -> None:
            try:
                send(place.fd, place.name, name, write, job.report, limits=job.limits)
            except BaseException as exc:  # noqa: BLE001 - raised below, in the caller's thread
                failed.append(exc)

        words = ("tar", "-C", above, "-o", "-xf", "-")
        said, code = _run(job, words, fill=fill)
        if failed and not isinstance(failed[0], BrokenPipeError):
            raise _explained(source, failed[0])
        if code:
            raise _tar_failed(target.text, code, said)
        _check_copied(job.report, source, name)


def _check_copied(report: CopyReport, path: str, name: str) -> None:
    """Raise CopyFailed if what was to be copied was itself left out. ``name``: its name in the archive."""
    for left in report.left_out:
        if left.path == name and not report.files:
            raise CopyFailed(path=path, reason=left.reason)


def _exists(place: HostPlace) -> bool:
    try:
        os.lstat(place.name, dir_fd=place.fd)
    except OSError:
        return False
    return True


def _refuse_directory(job: CopyJob, source: Location, target: str) -> None:
    """A directory does not replace what is no directory."""
    if _kind(job, source.path) == "d":
        raise CopyFailed(path=target, reason=f"it is no directory, and {source.text} is one")


def _placed(job: CopyJob, source: str, place: HostPlace, target: Location) -> tuple[str, str]:
    """The directory inside that the archive is unpacked in, and the copy's name in the archive."""
    there = inside(target.path)
    whole = posixpath.join(there.directory, there.name)
    kind = _kind(job, whole)
    content = source.endswith("/.") or place.name == "."
    if kind == "d":
        return whole, "." if content else os.path.basename(os.path.abspath(source))
    if target.path.endswith("/") or (kind == "f" and place.is_directory):
        raise CopyFailed(path=target.text, reason="there is no such directory", hint=_MAKE)
    if kind == "n" and _kind(job, there.directory) != "d":
        raise CopyFailed(path=target.text, reason=f"there is no directory {there.directory}", hint=_MAKE)
    return there.directory, there.name


def _kind(job: CopyJob, path: str) -> str:
    """What is at a path inside: d, f or n. The sandbox may say anything, and decides only what it gets where."""
    kept = Kept(_SAID)
    _run(job, ("/bin/sh", "-c", _LOOK, "sh", path), out=kept)
    return kept.data[:1].decode("ascii", "replace")


class _Intake:
    """Called with pieces of the archive. After a failure, which its maker raises, the rest is of no use."""

    def __init__(self, job: CopyJob, receiver: Receiver) -> None:
        self._job, self._receiver, self._reader = job, receiver, TarReader()
        self._read = self._after = 0  # bytes of the archive, and behind its end mark
        self.failed: list[Exception] = []

    @property
    def ended(self) -> bool:
        return self._reader.ended

    def __call__(self, data: bytes) -> None:
        if self.failed:
            return
        try:
            self._take(data)
        except Exception as exc:  # noqa: BLE001 - raised later
            self.failed.append(exc)
            self._job.wake.post(Signal(signal.SIGTERM))

    def _take(self, data: bytes) -> None:
        if self.ended:
            self._after += len(data)
            if self._after > AFTER_END:
                raise BadArchive("it continues after its end mark")
            return
        self._read += len(data)
        for item in self._reader.feed(data):
            self._receiver.take(item)
        check(self._job.report, self._job.limits, archive=self._read)


def _receive(job: CopyJob, source: Location, there: Inside, receiver: Receiver) -> None:
    intake = _Intake(job, receiver)
    words = ("tar", "-C", there.directory, "-cf", "-", f"./{there.name}" if there.name else ".")
    said, code = _run(job, words, out=intake, failed=intake.failed)
    if intake.failed:
        raise _explained(source.text, intake.failed[0])
    if intake.ended:
        receiver.finish()
    if code == _CHANGED and intake.ended and job.report.entries:
        job.report.warnings.append(_said(code, said))
    elif code:
        raise _tar_failed(source.text, code, said)
    if not intake.ended:
        raise CopyFailed(path=source.text, reason="the archive that the sandbox sent is incomplete")
    _check_copied(job.report, source.text, there.name)


def _run(
    job: CopyJob,
    words: tuple[str, ...],
    *,
    out: Callable[[bytes], object] | None = None,
    fill: Callable[[Callable[[bytes], object]], object] | None = None,
    failed: list[Exception] | None = None,
) -> tuple[str, int]:
    """Run a program inside; returns what it printed on stderr, and its status. Raises Interrupted."""
    said = Kept(_SAID)
    spec = ExecSpec(words, workdir="/", stdin=fill is not None)
    status = run_fed(job.engine, job.name, spec, job.wake, fill=fill, out=out, err=said, guest=job.guest)
    if status.signal is not None and not failed:
        raise Interrupted(status.signal)
    return said.text, status.code


def _explained(path: str, error: BaseException) -> BaseException:
    if isinstance(error, TooMuch):
        hint = f"{error.hint} What was copied until then is left where it is."
        return CopyFailed(path=path, reason=str(error), hint=hint)
    if isinstance(error, BadArchive):
        return CopyFailed(path=path, reason=f"the archive that the sandbox sent is refused: {error}")
    return error


def _tar_failed(path: str, code: int, said: str) -> CopyFailed:
    if code == _NO_TAR:
        return CopyFailed(path=path, reason="the image has no program tar", hint="Install tar in the image.")
    if os.strerror(errno.ENOENT) in said:
        reason = "there is no such file or directory in the sandbox"
        return CopyFailed(path=path, reason=reason, hint="Check the path in the sandbox.")
    return CopyFailed(path=path, reason=_said(code, said))


def _said(code: int, said: str) -> str:
    first = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return f"tar in the sandbox says: {first[:300]}" if first else f"tar in the sandbox ended with status {code}"
