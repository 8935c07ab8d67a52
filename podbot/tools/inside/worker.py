"""The files worker: answers one request after another on stdin and stdout, and ends when stdin does."""

from __future__ import annotations

import json
import os
import signal
import sys

from podbot.tools import worker_frames as frames
from podbot.tools.inside import finding, grep, inventory, pieces, placing, reading, removal, writing
from podbot.tools.inside.refusals import Clock, Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPERATIONS = {
    "stat": reading.stat_entry,
    "ls": reading.ls,
    "read": reading.read,
    "write": writing.write,
    "edit": writing.edit,
    "glob": finding.glob,
    "grep": grep.grep,
    "rm": removal.rm,
    "piece": pieces.piece,
    "put": placing.put,
    "stage": placing.stage,
    "commit": placing.commit,
    "link": placing.link,
    "mode": placing.mode,
    "mkdir": placing.mkdir,
    "inventory": inventory.inventory,
}


class _End(Exception):
    """podbot has closed the connection."""


def main(root: str) -> int:
    """Serve the directory ``root``, an absolute path. Returns the exit status."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        _say({"id": 0, "error": refused(error).answer()})
        return 1
    _say({"id": 0, "ok": {"version": frames.VERSION, "python": list(sys.version_info[:2])}})
    try:
        while True:
            _serve(fd)
    except _End:
        return 0


def _terminated(number: int, frame: object) -> None:
    """An exception, so that a temporary file is removed."""
    del number, frame
    raise SystemExit(1)


def _serve(fd: int) -> None:
    """Receive a request and answer it."""
    size = frames.HEADER.unpack(_received(frames.HEADER.size))[0]
    if size > frames.REQUEST_BYTES:
        raise _End
    request = json.loads(_received(size).decode("utf-8"))
    _say(dict(_outcome(fd, request), id=request["id"]))


def _outcome(fd: int, request: dict[str, Any]) -> dict[str, Any]:
    clock = Clock(request["seconds"])
    try:
        return {"ok": _OPERATIONS[request["op"]](fd, request["args"], clock)}
    except Refused as refusal:
        return {"error": refusal.answer()}
    except OSError as error:
        return {"error": refused(error).answer()}
    except Exception as error:  # noqa: BLE001 - a defect here concerns one request
        return {"error": {"kind": "failed", "reason": type(error).__name__}}


def _received(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            raise _End
        data += part
    return bytes(data)


def _say(message: dict[str, Any]) -> None:
    data = json.dumps(message, ensure_ascii=False).encode("utf-8")
    writing.write_all(1, frames.HEADER.pack(len(data)) + data)
