"""Tracks what a program has changed in a terminal beyond its modes, and what undoes it.

Each is undone only if the program has set it: the operator's shell may have set colours and a cursor of its own.
"""

from __future__ import annotations

import re

_DEEPEST = 10  # entries of a terminal's stack of titles (xterm)
_LONGEST = 1024  # bytes of an unfinished sequence that are kept
# C1 controls of one byte are no controls in a terminal that reads UTF-8, where that byte is a part of letters.
_OSC = re.compile(rb"(?:\x1b\]|\xc2\x9d)([0-9]{1,4})(?:;([^\x07\x18\x1a\x1b]*))?")
_CSI = re.compile(rb"(?:\x1b\[|\xc2\x9b)(?:([0-9;]{0,32})( q|\$[}~]|[tgihl])|\?5W)", re.ASCII)
_LATIN_1 = re.compile(rb"\x1b%([@G])")
_BEGUN = re.compile(
    rb"(?:\x1b(?:%|\[\??[0-9;]{0,32}[ $]?|\][0-9]{0,4}(?:;[^\x07\x18\x1a\x1b]*)?)?"
    rb"|\xc2(?:[\x9b\x9d]\??[0-9;]{0,32}[ $]?)?)\Z"
)
_PALETTES = (4, 5)  # the colours of text; each is reset by 100 more
_COLOURS = range(10, 20)  # foreground, background, cursor and others; one sequence can set several
_NO_PRINTER = b"\x1b[4i"
_TAB_STOPS = b"\x1b[?5W"
# A final byte and parameter that set something, those that unset it, and what undoes it.
_SWITCHES = (
    (b"i", (b"5",), (b"4",), _NO_PRINTER),  # what is printed goes to a printer: the terminal seems dead
    (b"$}", (b"1",), (b"0", b""), b"\x1b[0$}"),  # it goes to the status line
    (b"$~", (b"1", b"2"), (b"0", b""), b"\x1b[0$~"),  # a status line is shown
    (b"g", (b"0", b"3", b""), (), _TAB_STOPS),  # tab stops are cleared
)
_NO_PROGRESS = b"\x1b]9;4;0;0\x1b\\"
_POINTER = b"\x1b]22;\x1b\\"  # the mouse pointer's usual shape
_UTF_8 = b"\x1b%G"


class LastingChanges:
    """Gets all output; ``undo`` is what undoes the changes."""

    def __init__(self) -> None:
        self._set: set[bytes] = set()  # what undoes each change
        self._titles: list[bytes] = []
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Record output; a sequence may be split over several calls."""
        if not self._rest and b"\x1b" not in data and b"\xc2" not in data:
            return
        data = self._rest + data
        begun = _BEGUN.search(data, max(0, data.rfind(b"\x1b"), data.rfind(b"\xc2")))
        end = begun.start() if begun is not None and len(data) - begun.start() <= _LONGEST else len(data)
        self._rest = data[end:]
        for found in _OSC.finditer(data, 0, end):
            self._command(int(found[1]), found[2])
        for found in _LATIN_1.finditer(data, 0, end):
            self._mark(_UTF_8, changed=found[1] == b"@")
        for found in _CSI.finditer(data, 0, end):
            if found[2]:
                self._control(found[1].split(b";"), found[2])
            else:
                self._mark(_TAB_STOPS, changed=False)

    def undo(self) -> bytes:
        """The sequences that undo the changes; empty if there are none.

        The printer first: until that is off, nothing else has an effect.
        """
        changes = sorted(self._set, key=lambda undo: (undo != _NO_PRINTER, undo))
        return b"".join((*changes, *(b"\x1b[23;%st" % kind for kind in reversed(self._titles))))

    def _mark(self, undo: bytes, *, changed: bool) -> None:
        (self._set.add if changed else self._set.discard)(undo)

    def _command(self, number: int, text: bytes | None) -> None:
        values = text.split(b";", 16) if text is not None else []
        if number in _PALETTES:
            if any(value != b"?" for value in values[1::2]):
                self._mark(_reset(number), changed=True)
        elif number in _COLOURS:
            for at, value in enumerate(values):
                if value != b"?" and number + at in _COLOURS:
                    self._mark(_reset(number + at), changed=True)
        elif number - 100 in _COLOURS or (number - 100 in _PALETTES and not values):
            self._mark(_reset(number - 100), changed=False)
        elif number == 22 and not (text or b"").startswith(b"?"):
            self._mark(_POINTER, changed=bool(text))
        elif number == 9 and values[:1] == [b"4"]:
            self._mark(_NO_PROGRESS, changed=values[1:2] not in ([], [b""], [b"0"]))

    def _control(self, values: list[bytes], final: bytes) -> None:
        first = values[0].lstrip(b"0") or values[0][:1]
        if final == b" q":
            self._mark(b"\x1b[0 q", changed=first not in (b"", b"0"))
        elif final == b"t" and first in (b"22", b"23"):
            self._title(values[1].lstrip(b"0")[:1] if len(values) > 1 else b"", pushed=first == b"22")
        elif final in b"hl" and b"12" in values:
            self._mark(b"\x1b[12h", changed=final == b"l")  # the terminal prints each key itself
        for known, on, off, undo in _SWITCHES:
            if final == known and first in (*on, *off):
                self._mark(undo, changed=first in on)

    def _title(self, kind: bytes, *, pushed: bool) -> None:
        if pushed and kind in (b"", b"1", b"2"):
            self._titles = [*self._titles, kind or b"0"][-_DEEPEST:]
        elif self._titles:
            self._titles.pop()


def _reset(number: int) -> bytes:
    return b"\x1b]%d\x1b\\" % (number + 100)
