"""A separate process, started by its path: scans a workspace, and compares it with an earlier scan.

A file system that does not answer blocks a process in the kernel, where no signal reaches it. Then this process hangs,
and podbot continues. It imports only this room, the list of public registries where there is a lock file, and cheap
parts of the standard library: json and signal take as long to import as the interpreter takes to start. stdin carries
the job and, for a comparison, a byte that starts it, unless the end of a process does (see ``comparison``). The job,
the record and the parts of the answer on stdout are in ``marshal`` format, which is safe between processes of one
podbot.
"""

from __future__ import annotations

import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from podbot.guard.marks import GuardReport, Known, Snapshot

ANSWER = 8 << 20  # bytes of the findings in one part; podbot reads three times as much
EARLY = 40 << 10  # of the first part: a pipe takes more than that, with gaps, while podbot is not reading yet
_PATH, _WHAT = 1000, 300  # characters of a finding's fields
LIMIT = 60  # seconds before and after the scan, which has limits of its own; the waiting does not count
ENDED = 3
"""A descriptor that becomes readable when nothing of the session runs any more, if the job has ``ended``."""


def record(job: dict[str, Any]) -> dict[str, Any]:
    """Do the first scan and write it to ``job["record"]`` for the comparison, which another podbot may make."""
    from podbot.guard.halves import alarm
    from podbot.guard.marks import to_plain

    alarm(LIMIT)
    snapshot = _scan(job, {}, modes=False)
    about = {name: job[name] for name in ("workspace", "git", "session")}
    _write(job["record"], marshal.dumps({**about, "snapshot": to_plain(snapshot)}))
    return {"entries": snapshot.entries, "gaps": list(snapshot.gaps)}


def comparison(job: dict[str, Any]) -> dict[str, Any]:
    """Do the second scan and compare. The first scan is read while podbot is still removing the container.

    The scan begins when podbot sends a byte. With ``job["ended"]`` it also begins when the container's first process,
    and so every process in it, has ended, while the engine is still removing the container. What the repository at the
    top has is sent before the rest is scanned, so that nothing in the rest can take it away.
    """
    from podbot.guard.compare import compare
    from podbot.guard.halves import alarm
    from podbot.guard.marks import from_plain

    with open(job["record"], "rb") as file:
        data = marshal.load(file)  # noqa: S302 - written by podbot, in its own directory
    before = from_plain(data["snapshot"])
    _await(ended=job.get("ended", False))
    alarm(LIMIT)
    begin = time.perf_counter()

    def answer(after: Snapshot, *, whole: bool) -> dict[str, Any]:
        left = bounded(compare(before, after), ANSWER if whole else EARLY)
        findings = [tuple(found) for found in left.findings]
        parts = (findings, left.gaps, left.more, left.entries, time.perf_counter() - begin)
        return {"workspace": data["workspace"], "session": data["session"], "left": parts, "whole": whole}

    after = _scan({**job, **data}, before.values, modes=True, early=lambda first: _send(answer(first, whole=False)))
    alarm(0)  # it may take podbot a while to read the answer
    return answer(after, whole=True)


def _await(*, ended: bool) -> None:
    poller = select.poll()
    poller.register(0, select.POLLIN)
    if ended:
        poller.register(ENDED, select.POLLIN)
    ready = [handle for handle, _ in poller.poll()]
    if ENDED not in ready and not os.read(0, 1):
        raise SystemExit(0)  # podbot has ended; a later one will compare


def bounded(left: GuardReport, room: int = ANSWER) -> GuardReport:
    """Limit the report to ``room`` bytes: shorten long names, and only count findings that do not fit.

    The findings are cut at the end, where the least dangerous are.
    """
    gaps = tuple(_shortened(gap, _WHAT) for gap in left.gaps[: room // (8 * _WHAT)])
    kept = []
    for found in left.findings:
        short = found._replace(path=_shortened(found.path, _PATH), what=_shortened(found.what, _WHAT))
        room -= len(marshal.dumps(tuple(short)))
        if room < 0:
            break
        kept.append(short)
    return left._replace(findings=tuple(kept), gaps=gaps, more=left.more + len(left.findings) - len(kept))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2) + 1 :]}"


def _scan(
    job: dict[str, Any],
    known: Mapping[str, Known],
    *,
    modes: bool,
    early: Callable[[Snapshot], None] | None = None,
) -> Snapshot:
    from podbot.guard.halves import alarm, can_share, interrupt_after
    from podbot.guard.tree import Limits
    from podbot.guard.walk import Scan

    limits = Limits(**job["limits"])
    scan = Scan(limits, known, modes=modes, beside=can_share(), early=early)
    interrupt_after(limits.seconds, scan.interrupt)
    found = scan.directories(job["workspace"], job["git"])
    alarm(LIMIT)
    return found


def _write(path: str, data: bytes) -> None:
    """Write atomically into podbot's own directory. No fsync: a record need not survive a crash of the machine."""
    temporary = f"{path}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(data)
    os.rename(temporary, path)


def framed(job: Mapping[str, Any]) -> bytes:
    """A job, or a part of the answer, as it is written to a pipe: four bytes of its length first."""
    data = marshal.dumps(dict(job))
    return len(data).to_bytes(4, "big") + data


def _send(answer: Mapping[str, Any]) -> None:
    with open(1, "wb", closefd=False) as file:
        file.write(framed(answer))


def _read(count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            raise SystemExit(1)
        data += more
    return data


def main() -> None:
    """Never returns."""
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package = type(sys)("podbot")  # bypasses podbot/__init__.py, which imports typing
    package.__path__ = [place]
    sys.modules["podbot"] = package
    job = marshal.loads(_read(int.from_bytes(_read(4), "big")))  # noqa: S302 - from the podbot that started this
    answer = record(job) if job["what"] == "record" else comparison(job)
    _send(answer)
    os._exit(0)  # noqa: TID251 - skips the interpreter's slow tear-down


if __name__ == "__main__":
    main()
