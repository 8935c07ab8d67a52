"""Who waits for an answer to a frame that is refused for its form, and the error that they get in its place.

Such a frame cannot be read reliably, or not at all, so its ids are searched for leniently: a wrong one is an answer to
an id that nobody waits for, which peers ignore. Of a long frame only its ends are looked at, where serializers put ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podbot.protocol.jsontext import ALIKE, Part, fold_key
from podbot.protocol.message import error_answer
from podbot.protocol.refusal import REASONS

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
FORM = "podbot_frame_form"  # ``data.reason`` of the error

_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'  # without the closing quote, which is missing where the beginning of a frame ends
# A string (its closing quote; the colon after a member's name), or the start or end of an object or list.
_TOKEN = re.compile(rf'{_TEXT}("?+)([ \t\n\r]*+:)?|[][{{}}]', re.DOTALL)
_SCALAR = rf'{_TEXT}"|[^][{{}}:,"\s]++'
_VALUE = re.compile(rf"[ \t\n\r]*+({_SCALAR})[ \t\r]*+[\n,}}]", re.DOTALL)
_MEMBER = re.compile(rf',[ \t\r]*+"(\w{{1,16}}+)"[ \t\r]*+:[ \t\r]*+({_SCALAR})[ \t\r]*+', re.ASCII | re.DOTALL)
_LAST = re.compile(rf"(?:{_MEMBER.pattern}){{1,4}}\}}[ \t\r]*+\n?\Z", re.ASCII | re.DOTALL)
_ASKING = frozenset({"method", "params"})


class Wait(NamedTuple):
    """``id``: JSON text. ``asks``: it is a request's, whose sender waits; otherwise its receiver does."""

    id: str
    asks: bool


class _Message:
    """What can be read of one message."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._ids: list[str] = []

    def add(self, name: str, value: str) -> None:
        """A member; ``value``: its JSON text, empty if it is unknown."""
        name = name.partition("\0")[0]
        folded = fold_key(name) if len(name) <= ALIKE else ""
        self._names.add(folded)
        if folded == "id":
            self._ids.append(value)

    def waits(self) -> list[Wait]:
        """A message with neither a request's nor a response's members counts as a response."""
        asks = not self._names.isdisjoint(_ASKING)
        usable = dict.fromkeys(raw for raw in self._ids if _is_id(raw))
        # JSON-RPC: the answer to a request whose id cannot be read has the id null.
        return [Wait(raw, asks) for raw in usable or (["null"] if asks and self._ids else [])]


def waits_of(text: str, parts: Sequence[Part]) -> list[Wait]:
    """Who waits for a message whose members are ``parts`` of ``text``."""
    message = _Message()
    for part in parts:
        message.add(part.key, text[part.place : part.end])
    return message.waits()


def waits_in(head: bytes, tail: bytes = b"") -> list[Wait]:
    """Who waits for the messages in a frame: ``head`` is all of it, or it ends with ``tail``."""
    text = head.decode(errors="surrogateescape")
    messages: list[_Message] = []
    level = {"{": 1, "[": 2}.get(text.lstrip("\ufeff \t\r\n")[:1], 0)  # of the messages: in a batch they are deeper
    depth = 0
    for token in _TOKEN.finditer(text) if level else ():
        piece = token[0]
        if piece in ("{", "["):
            depth += 1
            if depth == level:
                messages.append(_Message())
        elif piece in ("}", "]"):
            depth -= 1
            if depth <= 0:
                break
        elif not token[1]:  # the text ends inside this string
            break
        elif token[2] and depth == level:
            value = _VALUE.match(text, token.end())
            messages[-1].add(_name(piece), value[1] if value else "")
    if level == 1 and depth > 0:
        last = _LAST.search(tail.decode(errors="surrogateescape"))
        for name, raw in _MEMBER.findall(last[0]) if last else ():
            messages[0].add(name, raw)
    return [wait for message in messages for wait in message.waits()]


def errors_for(waits: Iterable[Wait], reason: str, *, versioned: bool) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """The errors for the sender of a frame that was refused because of ``reason``, and those for its receiver."""
    found: tuple[list[bytes], list[bytes]] = ([], [])
    for wait in waits:
        what, code = ("request", INVALID_REQUEST) if wait.asks else ("answer", INTERNAL_ERROR)
        text = f"podbot did not pass this {what} on: {REASONS[reason]}"
        data = {"reason": FORM, "rule": reason}
        found[not wait.asks].append(error_answer(wait.id, code, text, data, versioned=versioned))
    return tuple(found[0]), tuple(found[1])


def _name(token: str) -> str:
    """The name in a token such as ``"id" :``; empty for one with invalid escapes."""
    quoted = token.rstrip(": \t\n\r")
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError:
        return ""


def _no_constant(_word: str) -> None:
    """NaN and Infinity are not JSON."""


def _is_id(raw: str) -> bool:
    """Whether it is the JSON text of a string or number that can be sent."""
    try:
        raw.encode()
        value = json.loads(raw, parse_int=float, parse_constant=_no_constant)  # an int of many digits is an error
    except ValueError:
        return False
    return isinstance(value, str | float)
