"""One JSON-RPC message in a frame: the members that a verdict relies on must be unique and spelled exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from podbot.protocol.jsontext import PROTOTYPE, BadFrame, Part, fold_key

ENVELOPE = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
CLIPPED = 200  # characters of a refused method's name in the reply to its sender


class Refuse(BadFrame):
    """A valid message that is not forwarded; ``answer`` is the reply to its sender, None for a notification."""

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


class Message(NamedTuple):
    """``method``: None if missing. ``id``: its JSON text, or None.

    ``fields``: the envelope's members by name; always includes ``params``, ``result`` and ``error`` if they exist.
    """

    text: str
    fields: dict[str, Part]
    method: str | None
    id: str | None


def read_envelope(parts: Sequence[Part]) -> dict[str, Part]:
    """The envelope's members by name. Raises BadFrame for a duplicate, or for a name that is spelled similarly."""
    fields: dict[str, Part] = {}
    for part in parts:
        key = part.key
        if key in ENVELOPE:
            if key in fields:
                raise BadFrame("duplicate_key")
            fields[key] = part
        elif fold_key(key) in ENVELOPE or key == PROTOTYPE:
            raise BadFrame("ambiguous_key")
    return fields


def is_meant(parts: Sequence[Part]) -> bool:
    """Whether an object that is not a message was meant as one: an answer without its result, and not a log's line.

    Either it says so by "jsonrpc", or it has members of an envelope only.
    """
    keys = {part.key for part in parts}
    return "jsonrpc" in keys or keys <= ENVELOPE


def read_id(text: str, fields: dict[str, Part]) -> str | None:
    """The id's JSON text, or None. Raises BadFrame when its type is not allowed."""
    part = fields.get("id")
    if part is None:
        return None
    if text[part.place] not in '"-0123456789n':
        raise BadFrame("bad_id")
    return text[part.place : part.end]


def read_method(text: str, fields: dict[str, Part]) -> str | None:
    """The decoded method, or None. Raises BadFrame when it is not a string."""
    part = fields.get("method")
    if part is None:
        return None
    if text[part.place] != '"':  # not isinstance: the scanner keeps numbers as text
        raise BadFrame("bad_method")
    return str(part.value)


def error_answer(raw_id: str, code: int, message: str, data: dict[str, Any], *, versioned: bool = True) -> bytes:
    """A JSON-RPC error as a frame. ``versioned``: with "jsonrpc"."""
    error = json.dumps({"code": code, "message": message, "data": data}, separators=(",", ":"))
    head = '"jsonrpc":"2.0",' if versioned else ""
    return f'{{{head}"id":{raw_id},"error":{error}}}\n'.encode()
