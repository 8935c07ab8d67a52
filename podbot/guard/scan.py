"""Runs as a process of its own, by its path: scans a workspace, and compares with an earlier scan.

A file system that does not answer holds whoever looks at it, in the kernel, where no signal reaches: then it is this
process that hangs, and podbot goes on. Standard library and this room only, and of the library what costs little: json
and signal take as long to import as the interpreter to start. stdin has the job, and for a comparison a byte when it is
time, unless that is told by the end of a process (see ``comparison``). The job, the record and the answer on stdout are
``marshal``'s, between processes of one podbot.
"""

from __future__ import annotations

import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from podbot.guard.marks import GuardReport, Snapshot, Stamp

ANSWER = 8 << 20  # bytes of the findings; podbot reads twice as much
_PATH, _WHAT = 1000, 300  # characters of a finding
LIMIT = 60  # seconds for all of it but the waiting
ENDED = 3
"""The descriptor that can be read once nothing of the session runs any more, where a job has ``ended``."""


def record(job: dict[str, Any]) -> dict[str, Any]:
    """The first scan, written to ``job["record"]`` for the comparison, whoever makes it."""
    from podbot.guard.halves import alarm
    from podbot.guard.marks import to_plain

    alarm(LIMIT)
    snapshot = _scan(job, {}, modes=False)
    about = {name: job[name] for name in ("workspace", "git", "session")}
    _write(job["record"], marshal.dumps({**about, "snapshot": to_plain(snapshot)}))
    return {"entries": snapshot.entries, "gaps": list(snapshot.gaps)}


def comparison(job: dict[str, Any]) -> dict[str, Any]:
    """The second scan, and what differs. The first is read while podbot still removes the container.

    With ``job["ended"]`` it begins when the container's first process has ended, and with it each other one in it,
    while the engine still takes the container apart; in any case when podbot says so.
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
    left = bounded(compare(before, _scan({**job, **data}, before.values, modes=True)))
    alarm(0)  # podbot may be a while until it reads the answer
    findings = [tuple(found) for found in left.findings]
    answer = (findings, left.gaps, left.more, left.entries, time.perf_counter() - begin)
    return {"workspace": data["workspace"], "session": data["session"], "left": answer}


def _await(*, ended: bool) -> None:
    poller = select.poll()
    poller.register(0, select.POLLIN)
    if ended:
        poller.register(ENDED, select.POLLIN)
    ready = [handle for handle, _ in poller.poll()]
    if ENDED not in ready and not os.read(0, 1):
        raise SystemExit(0)  # podbot has gone, and another one will ask


def bounded(left: GuardReport) -> GuardReport:
    """As an answer that podbot reads whole: long names are shortened, and what is too much is counted.

    It is from the end of the findings that something is left out, where the least dangerous are.
    """
    kept, room = [], ANSWER
    for found in left.findings:
        short = found._replace(path=_shortened(found.path, _PATH), what=_shortened(found.what, _WHAT))
        room -= len(marshal.dumps(tuple(short)))
        if room < 0:
            break
        kept.append(short)
    return left._replace(findings=tuple(kept), more=left.more + len(left.findings) - len(kept))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2) + 1 :]}"


def _scan(job: dict[str, Any], known: Mapping[str, tuple[Stamp, str]], *, modes: bool) -> Snapshot:
    from podbot.guard.halves import can_share
    from podbot.guard.tree import Limits
    from podbot.guard.walk import Scan

    scan = Scan(Limits(**job["limits"]), known, modes=modes, beside=modes and can_share())
    return scan.directories(job["workspace"], job["git"])


def _write(path: str, data: bytes) -> None:
    """The directory is podbot's own. Whole or not at all; a record need not survive the machine."""
    temporary = f"{path}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(data)
    os.rename(temporary, path)


def framed(job: Mapping[str, Any]) -> bytes:
    """A job as this process reads it."""
    data = marshal.dumps(dict(job))
    return len(data).to_bytes(4, "big") + data


def _read(count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            raise SystemExit(1)
        data += more
    return data


def main() -> None:
    """Ends with the process."""
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package = type(sys)("podbot")  # without its __init__, which is the library's and imports typing
    package.__path__ = [place]
    sys.modules["podbot"] = package
    job = marshal.loads(_read(int.from_bytes(_read(4), "big")))  # noqa: S302 - from the podbot that started this
    answer = record(job) if job["what"] == "record" else comparison(job)
    with open(1, "wb", closefd=False) as file:
        file.write(marshal.dumps(answer))
    os._exit(0)  # noqa: TID251 - the interpreter's tear-down frees what the kernel frees at once


if __name__ == "__main__":
    main()
