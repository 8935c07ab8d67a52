"""The verdict on one frame in either direction: a message, or a batch that is judged message by message."""

from __future__ import annotations

from typing import NamedTuple

from podbot.protocol.jsontext import (
    MAX_MESSAGES,
    BadFrame,
    Cut,
    Part,
    cuts_for,
    elements,
    make,
    members,
    skip,
    strict_text,
    without,
)
from podbot.protocol.message import Message, Refuse, read_envelope, read_id, read_method
from podbot.protocol.policy import Rule
from podbot.protocol.refusal import NOT_JSONRPC, Refusal, shown
from podbot.streams.protocol_channel import Side

Cuts = list[Cut]
# The cuts in one message (None: drop it), what to report about it, and podbot's replies.
Finding = tuple[Cuts | None, tuple[Refusal, ...], tuple[bytes, ...]]


class Verdict(NamedTuple):
    """``forward``: the frame to forward, or None. ``said``: what to report. ``answers``: replies to its sender."""

    forward: bytes | None
    said: tuple[Refusal, ...] = ()
    answers: tuple[bytes, ...] = ()


def judge(frame: bytes, direction: Side, rule: Rule) -> Verdict:
    """The verdict on ``frame``, a line with or without its newline. Raises nothing."""
    try:
        return _judge(frame, direction, rule)
    except BadFrame as exc:
        reason = exc.reason
    except RecursionError:  # the caller's stack is nearly used up
        reason = "too_deep"
    return Verdict(None, (Refusal(direction, None, None, len(frame), reason),))


def _judge(frame: bytes, direction: Side, rule: Rule) -> Verdict:
    text = strict_text(frame)
    try:
        start = skip(text, 0)
        if text[start] == "{":
            parts, end = members(text, start)
        elif text[start] == "[":
            parts, end = elements(text, start, MAX_MESSAGES)
        else:
            raise BadFrame("unparseable")
    except (ValueError, IndexError, StopIteration):
        raise BadFrame("unparseable") from None
    if text[end:].strip(" \t\r\n"):
        raise BadFrame("unparseable")
    if text[start] == "[":
        return _judge_batch(frame, text, parts, direction, rule)
    return _verdict(frame, text, *_judge_message(text, parts, len(frame), direction, rule))


def _verdict(
    frame: bytes, text: str, cuts: Cuts | None, said: tuple[Refusal, ...], answers: tuple[bytes, ...]
) -> Verdict:
    forward = None if cuts is None else _spliced(frame, text, cuts)
    return make(Verdict, (forward, said, answers))


def _judge_batch(frame: bytes, text: str, batch: list[Part], direction: Side, rule: Rule) -> Verdict:
    if not batch:
        raise BadFrame("bad_batch")
    cuts: Cuts = []
    said: list[Refusal] = []
    answers: list[bytes] = []
    drop = set()
    for number, part in enumerate(batch):
        size = len(text[part.start : part.end].encode())
        if not isinstance(part.value, dict):
            drop.add(number)
            said.append(Refusal(direction, None, None, size, "not_object"))
            continue
        found, about, answer = _judge_message(text, members(text, part.start)[0], size, direction, rule)
        said += about
        answers += answer
        if found is None:
            drop.add(number)
        else:
            cuts += found
    if len(drop) == len(batch):
        return Verdict(None, tuple(said), tuple(answers))
    return Verdict(_spliced(frame, text, cuts + cuts_for(batch, drop)), tuple(said), tuple(answers))


def _judge_message(text: str, parts: list[Part], size: int, direction: Side, rule: Rule) -> Finding:
    method = raw_id = None
    try:
        fields = read_envelope(parts)
        raw_id = read_id(text, fields)
        method = read_method(text, fields)
        if direction == "agent":
            _check_message(fields)
    except BadFrame as exc:
        return None, (Refusal(direction, None, shown(raw_id), size, exc.reason),), ()
    return _ruled(Message(text, fields, method, raw_id), size, direction, rule)


def _check_message(fields: dict[str, Part]) -> None:
    """Raise BadFrame unless the members make a JSON-RPC message; "jsonrpc" itself is not required."""
    if "method" not in fields and not ("id" in fields and ("result" in fields or "error" in fields)):
        raise BadFrame(NOT_JSONRPC)


def _ruled(message: Message, size: int, direction: Side, rule: Rule) -> Finding:
    try:
        cuts, reason = rule(message)
    except BadFrame as exc:
        answer = exc.answer if isinstance(exc, Refuse) else None
        cuts, reason, answers = None, exc.reason, () if answer is None else (answer,)
    else:
        if not cuts:
            return cuts, (), ()
        answers = ()
    return cuts, (Refusal(direction, shown(message.method), shown(message.id), size, reason),), answers


def _spliced(frame: bytes, text: str, cuts: Cuts) -> bytes:
    return without(text, cuts).encode() if cuts else frame
