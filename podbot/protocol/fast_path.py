"""A fast path around the judge for lines that it would forward unchanged and without a report.

It decides only between forwarding a line and leaving it to ``judge``, which stays the one authority. A line is
forwarded if it starts like a usual message, with a method that the direction's rule ignores, continues with one valid
JSON value, and ends with the closing brace of the object. So no member can occur twice, and no other member remains
that could affect the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from podbot.protocol.jsontext import MAX_DEPTH, MAX_STRUCTURE, BadFrame, fold_key
from podbot.protocol.lines import whole_lines
from podbot.protocol.message import Message
from podbot.protocol.policy import Rule

FEW = 128  # brackets in a block that are counted one by one; an update of any size has four or five
REMEMBERED = 256  # methods that are cached; a peer can invent more

# ACP has "jsonrpc", the Codex App Server does not; the id comes before or after the method, or is missing.
_ID = rb'"id":(?:0|[1-9][0-9]{0,17}|"[A-Za-z0-9_-]{0,64}+"),'
_HEAD = re.compile(
    rb'\{(?:"jsonrpc":"2\.0",)?+'
    rb'(?:(?P<id>%s)?+(?:"method":"(?P<method>[A-Za-z_/]{1,64}+)","params":|"result":)'
    rb'|"method":"(?P<first>[A-Za-z_/]{1,64}+)",%s"params":)' % (_ID, _ID)
)
_BRACE = 0x7D


class FastPath:
    """The fast path of one direction, whose rule is ``rule``.

    ``look_into``: methods (as fold_key) whose parameters the rule examines; it judges all others by the method alone.
    ``answers``: the rule ignores responses. ``watch``: returns whether the rule may examine a line, or a line in a
    block, because of its text, whatever its method is.
    """

    def __init__(
        self,
        rule: Rule,
        *,
        look_into: frozenset[str] = frozenset(),
        answers: bool = False,
        watch: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._loads: Callable[[memoryview], object] = self._loads_first
        self._passes_by = _method_judge(rule, look_into, answers=answers)
        self._watch = watch
        self._usual = b"\n"  # the last accepted beginning; no valid line begins with this initial value

    def _loads_first(self, value: memoryview) -> object:
        """Load the parser, which takes 7 ms, when the first line needs it: the agent is then still starting."""
        from orjson import loads

        self._loads = loads
        return loads(value)

    def runs(self, block: bytes) -> list[tuple[bytes, int]]:
        """Split ``block``, whole lines, into runs: (lines to forward, their number) or (one line to judge, 0)."""
        # One search for all lines: valid JSON contains \r only as an escape.
        if b"\r" in block or not block.endswith(b"\n"):
            return [(line, 0) for line in whole_lines(block)]
        found: list[tuple[bytes, int]] = []
        view = memoryview(block)
        harmless = len(block) if _is_flat(block) else 2 * MAX_DEPTH
        watch = self._watch if self._watch is not None and self._watch(block) else None
        done = start = frames = 0
        while start < len(block):
            end = block.find(b"\n", start) + 1
            if not (watch and watch(block[start:end])) and self._passes(block, view, start, end, harmless):
                frames += 1
            else:
                if frames:
                    found.append((block[done:start], frames))
                found.append((block[start:end], 0))
                done, frames = end, 0
            start = end
        if frames:
            found.append((block[done:], frames))  # if that is the whole block, it is not copied
        return found

    def _passes(self, block: bytes, view: memoryview, start: int, end: int, harmless: int) -> bool:
        """Whether the line ``block[start:end]`` is forwarded. Up to ``harmless`` bytes it cannot be too deep."""
        usual = self._usual  # most lines begin like the one before: 0.4 us less than the regular expression
        place = start + len(usual) if block.startswith(usual, start) else self._value_place(block, start, end)
        if not place or block[end - 2] != _BRACE:
            return False
        if end - start > harmless and not _is_modest(block[start:end]):
            return False
        try:
            self._loads(view[place : end - 2])
        except ValueError:
            return False
        return True

    def _value_place(self, block: bytes, start: int, end: int) -> int:
        """Where the value begins in a line with an accepted beginning; 0 for any other line."""
        head = _HEAD.match(block, start, end)
        if head is None:
            return 0
        raw_id, method, first = head.groups()
        if not self._passes_by(first or method, bool(raw_id or first)):
            return 0
        self._usual = head[0]
        return head.end()


def _method_judge(rule: Rule, look_into: frozenset[str], *, answers: bool) -> Callable[[bytes | None, bool], bool]:
    """Returns a function that tells whether the rule ignores a message with a method (None: a response).

    Its second argument says whether the message has an id.
    """

    @lru_cache(maxsize=REMEMBERED)
    def passes(method: bytes | None, asks: bool) -> bool:  # noqa: FBT001 - lru_cache is faster this way
        if method is None:
            return answers and asks  # a response must have an id
        name = method.decode()
        if fold_key(name) in look_into:
            return False
        try:
            cuts, _ = rule(Message("", {}, name, "0" if asks else None))
        except BadFrame:
            return False
        return not cuts

    return passes


def _is_flat(block: bytes) -> bool:
    """Whether there are so few brackets that no line can be too deep. It takes 0.25 us for 4 KiB, ``_is_modest`` 0.6.

    ``find`` is used because copying a whole block exceeds what malloc caches, and its page faults cost 2 us for 4 KiB.
    """
    left = FEW if len(block) <= MAX_STRUCTURE else 0
    for bracket in b"{[":
        at = -1
        while left:
            at = block.find(bracket, at + 1)
            if at < 0:
                break
            left -= 1
    return left > 0


def _is_modest(line: bytes) -> bool:
    """Whether ``line`` cannot be too deep or have too many values, whatever its content."""
    if len(line) > MAX_STRUCTURE:
        return False
    # With few brackets, replace takes a quarter of count's time. Brackets inside strings are counted too.
    most = MAX_DEPTH + 1
    rest = len(line.replace(b"{", b"", most)) + len(line.replace(b"[", b"", most))
    return 2 * len(line) - rest <= MAX_DEPTH
