"""One JSON-RPC message inside a frame: the members a verdict relies on, each there once and plainly spelled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from podbot.protocol.jsontext import PROTOTYPE, BadFrame, Part, fold_key

ENVELOPE = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
CLIPPED = 200  # characters of a refused method that go back to its sender


class Refuse(BadFrame):
    """A message that was understood and is not forwarded; ``answer`` goes back to its sender."""

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


class Message(NamedTuple):
    """``method``: None when there is none. ``id``: its JSON text.

    ``fields``: the envelope's members by name; ``params``, ``result`` and ``error`` for sure, when they are there.
    """

    text: str
    fields: dict[str, Part]
    method: str | None
    id: str | None


def read_envelope(parts: Sequence[Part]) -> dict[str, Part]:
    """The envelope's members by name. Raises BadFrame for a second one, or for one spelled like it."""
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


def read_id(text: str, fields: dict[str, Part]) -> str | None:
    """The id as it is spelled; None when there is none. Raises BadFrame when it can be no id."""
    part = fields.get("id")
    if part is None:
        return None
    if text[part.place] not in '"-0123456789n':
        raise BadFrame("bad_id")
    return text[part.place : part.end]


def read_method(text: str, fields: dict[str, Part]) -> str | None:
    """The method, decoded; None when there is none. Raises BadFrame when it is not a string."""
    part = fields.get("method")
    if part is None:
        return None
    if text[part.place] != '"':  # not isinstance: the scanner keeps numbers as text
        raise BadFrame("bad_method")
    return str(part.value)


def error_answer(
    raw_id: str | None, code: int, message: str, data: dict[str, Any], *, versioned: bool = True
) -> bytes | None:
    """A JSON-RPC error as a frame; None for a notification, which gets no answer. ``versioned``: with "jsonrpc"."""
    if raw_id is None:
        return None
    error = json.dumps({"code": code, "message": message, "data": data}, separators=(",", ":"))
    head = '"jsonrpc":"2.0",' if versioned else ""
    return f'{{{head}"id":{raw_id},"error":{error}}}\n'.encode()
