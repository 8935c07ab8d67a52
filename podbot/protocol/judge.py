"""The verdict on one frame in either direction: a message, or a batch that is judged message by message."""

from __future__ import annotations

from typing import NamedTuple

from podbot.protocol.awaited import Wait, errors_for, waits_in, waits_of
from podbot.protocol.jsontext import (
    MAX_MESSAGES,
    MAX_STRUCTURE,
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
from podbot.protocol.lines import HEAD, TAIL
from podbot.protocol.message import Message, Refuse, is_meant, read_envelope, read_id, read_method
from podbot.protocol.policy import Rule
from podbot.protocol.refusal import NOT_JSONRPC, Refusal, shown
from podbot.streams.protocol_channel import Side

Cuts = list[Cut]
Frames = tuple[bytes, ...]
# The cuts in one message (None: drop it), what to report about it, podbot's replies, and its errors for the receiver.
Finding = tuple[Cuts | None, tuple[Refusal, ...], Frames, Frames]


class Form(NamedTuple):
    """The form of a protocol's frames. ``values``: see ``strict_text``. ``versioned``: with "jsonrpc"."""

    values: int = MAX_STRUCTURE
    versioned: bool = True


FORM = Form()


class Verdict(NamedTuple):
    """``forward``: the frame to forward, or None. ``said``: what to report. ``answers``: replies to its sender.

    ``instead``: errors for its receiver, who waits for answers that the frame had.
    """

    forward: bytes | None
    said: tuple[Refusal, ...] = ()
    answers: Frames = ()
    instead: Frames = ()


def judge(frame: bytes, direction: Side, rule: Rule, form: Form = FORM) -> Verdict:
    """The verdict on ``frame``, a line with or without its newline. Raises nothing."""
    try:
        return _judge(frame, direction, rule, form)
    except BadFrame as exc:
        reason = exc.reason
    except RecursionError:  # the caller's stack is nearly used up
        reason = "too_deep"
    return refused(frame[:HEAD], frame[-TAIL:], direction, len(frame), reason, form)


def refused(head: bytes, tail: bytes, direction: Side, size: int, reason: str, form: Form) -> Verdict:  # noqa: PLR0917
    """The verdict on a frame of ``size`` bytes with these ends that is refused because of ``reason``."""
    waits = waits_in(head, tail if size > len(head) else b"")
    raw_id = waits[0].id if len(waits) == 1 else None
    said = Refusal(direction, None, shown(raw_id), size, reason)
    return Verdict(None, (said,), *errors_for(waits, reason, versioned=form.versioned))


def _judge(frame: bytes, direction: Side, rule: Rule, form: Form) -> Verdict:
    text = strict_text(frame, values=form.values)
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
        return _judge_batch(frame, text, parts, direction, rule, form)
    cuts, said, answers, instead = _judge_message(text, parts, len(frame), direction, rule, form)
    if said and said[0].reason == NOT_JSONRPC and not is_meant(parts):
        answers = instead = ()  # a log's line: an error for its id would end a request that happens to have it
    return make(Verdict, (None if cuts is None else _spliced(frame, text, cuts), said, answers, instead))


def _judge_batch(  # noqa: PLR0917
    frame: bytes, text: str, batch: list[Part], direction: Side, rule: Rule, form: Form
) -> Verdict:
    if not batch:
        raise BadFrame("bad_batch")
    cuts: Cuts = []
    said: list[Refusal] = []
    answers: list[bytes] = []
    instead: list[bytes] = []
    drop = set()
    for number, part in enumerate(batch):
        size = len(text[part.start : part.end].encode())
        if not isinstance(part.value, dict):
            drop.add(number)
            said.append(Refusal(direction, None, None, size, "not_object"))
            continue
        parts, _ = members(text, part.start)
        found, about, answer, error = _judge_message(text, parts, size, direction, rule, form)
        said += about
        answers += answer
        instead += error
        if found is None:
            drop.add(number)
        else:
            cuts += found
    forward = None if len(drop) == len(batch) else _spliced(frame, text, cuts + cuts_for(batch, drop))
    return Verdict(forward, tuple(said), tuple(answers), tuple(instead))


def _judge_message(  # noqa: PLR0917
    text: str, parts: list[Part], size: int, direction: Side, rule: Rule, form: Form
) -> Finding:
    method = raw_id = None
    try:
        fields = read_envelope(parts)
        raw_id = read_id(text, fields)
        method = read_method(text, fields)
        if direction == "agent":
            _check_message(fields)
    except BadFrame as exc:
        said = Refusal(direction, None, shown(raw_id), size, exc.reason)
        return None, (said,), *errors_for(waits_of(text, parts), exc.reason, versioned=form.versioned)
    return _ruled(Message(text, fields, method, raw_id), size, direction, rule, form)


def _check_message(fields: dict[str, Part]) -> None:
    """Raise BadFrame unless the members make a JSON-RPC message; "jsonrpc" itself is not required."""
    if "method" not in fields and not ("id" in fields and ("result" in fields or "error" in fields)):
        raise BadFrame(NOT_JSONRPC)


def _ruled(message: Message, size: int, direction: Side, rule: Rule, form: Form) -> Finding:
    answers: Frames = ()
    instead: Frames = ()
    try:
        cuts, reason = rule(message)
    except Refuse as exc:
        cuts, reason, answers = None, exc.reason, () if exc.answer is None else (exc.answer,)
    except BadFrame as exc:
        cuts, reason = None, exc.reason
        waits = [] if message.id is None else [Wait(message.id, asks=message.method is not None)]
        answers, instead = errors_for(waits, reason, versioned=form.versioned)
    else:
        if not cuts:
            return cuts, (), (), ()
    return cuts, (Refusal(direction, shown(message.method), shown(message.id), size, reason),), answers, instead


def _spliced(frame: bytes, text: str, cuts: Cuts) -> bytes:
    return without(text, cuts).encode() if cuts else frame
