"""Runs as a process of its own, by its path: scans a workspace, and compares with an earlier scan.

A file system that does not answer holds whoever looks at it, in the kernel, where no signal reaches: then it is this
process that hangs, and podbot goes on. Standard library and this room only. stdin has the job, a line of JSON, and for
a comparison a second line when it is time; stdout gets one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podbot.guard.marks import GuardReport, Snapshot, Stamp

ANSWER = 8 << 20  # bytes of the findings; podbot reads twice as much
_PATH, _WHAT = 1000, 300  # characters of a finding
LIMIT = 60  # seconds for all of it but the waiting


def record(job: dict[str, Any]) -> dict[str, Any]:
    """The first scan, written to ``job["record"]`` for the comparison, whoever makes it."""
    from podbot.guard.marks import to_json

    snapshot = _scan(job, {}, modes=False)
    data = {"workspace": job["workspace"], "git": job["git"], "session": job["session"], "snapshot": to_json(snapshot)}
    _write(job["record"], json.dumps(data).encode())
    return {"entries": snapshot.entries, "gaps": list(snapshot.gaps)}


def comparison(job: dict[str, Any]) -> dict[str, Any]:
    """The second scan, and what differs. The first is read while podbot still removes the container."""
    from podbot.guard.compare import compare
    from podbot.guard.marks import from_json

    with open(job["record"], encoding="utf-8") as file:
        data = json.load(file)
    before = from_json(data["snapshot"])
    if not sys.stdin.readline():
        raise SystemExit(0)  # podbot has gone, and another one will ask
    signal.alarm(LIMIT)
    begin = time.perf_counter()
    left = compare(before, _scan({**job, **data}, before.values, modes=True))
    about = {"workspace": data["workspace"], "session": data["session"]}
    return {**about, "left": bounded(left)._replace(seconds=time.perf_counter() - begin)}


def bounded(left: GuardReport) -> GuardReport:
    """As an answer that podbot reads whole: long names are shortened, and what is too much is counted.

    It is from the end of the findings that something is left out, where the least dangerous are.
    """
    kept, room = [], ANSWER
    for found in left.findings:
        short = found._replace(path=_shortened(found.path, _PATH), what=_shortened(found.what, _WHAT))
        room -= len(json.dumps(short))
        if room < 0:
            break
        kept.append(short)
    return left._replace(findings=tuple(kept), more=left.more + len(left.findings) - len(kept))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2) + 1 :]}"


def _scan(job: dict[str, Any], known: Mapping[str, tuple[Stamp, str]], *, modes: bool) -> Snapshot:
    from podbot.guard.modes import can_fork
    from podbot.guard.tree import Limits
    from podbot.guard.walk import Scan

    scan = Scan(Limits(**job["limits"]), known, modes=modes, beside=modes and can_fork())
    return scan.directories(job["workspace"], job["git"])


def _write(path: str, data: bytes) -> None:
    """The directory is podbot's own. Whole or not at all; a record need not survive the machine."""
    temporary = f"{path}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(data)
    os.rename(temporary, path)


def main() -> None:
    """Ends with the process."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    job = json.loads(sys.stdin.readline())
    if job["what"] == "record":
        signal.alarm(LIMIT)
        answer = record(job)
    else:
        answer = comparison(job)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # noqa: TID251 - the interpreter's tear-down frees what the kernel frees at once


if __name__ == "__main__":
    main()
