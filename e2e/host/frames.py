"""Frames that the tests of ``podbot host`` send to agents, and make them send."""

from __future__ import annotations

import json

SECRET = "contents-that-no-log-may-show"


def line(frame: object) -> bytes:
    """One frame."""
    return json.dumps(frame).encode() + b"\n"


def request(method: object, number: object = 1, **params: object) -> dict[str, object]:
    """A frame with contents."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"secret": SECRET, **params}}


def offers(**more: object) -> dict[str, object]:
    """Capabilities of a client that can do everything."""
    return {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True, "auth": {"terminal": True}, **more}
