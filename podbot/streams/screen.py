"""Tracks the terminal modes that a full-screen program has set, so that they can be undone and set again."""

from __future__ import annotations

import re

from podbot.streams.lasting import LastingChanges

_ALTERNATE = (b"1049", b"1047", b"47")
# Mouse and focus reports, bracketed paste, synchronized output, colour-scheme reports, cursor keys, slow scrolling,
# reversed colours, margins, reverse wrap, Backspace as ^H, graphics that do not scroll, other keyboards (of Sun, HP and
# others; Escape of mintty).
_OFF_BY_DEFAULT = (
    *(b"9", b"1000", b"1001", b"1002", b"1003", b"1004", b"1005", b"1006", b"1015", b"1016"),
    *(b"2004", b"2026", b"2031", b"9001", b"1", b"4", b"5", b"6", b"69", b"45", b"67", b"80"),
    *(b"1050", b"1051", b"1052", b"1053", b"1060", b"1061", b"7727"),
)
_ON_BY_DEFAULT = (b"25", b"7", b"8")  # the cursor, line wrap, keys that repeat
# Modes whose reports would be typed into the operator's shell. Resetting one that is off has no effect.
_REPORTS = (b"1000", b"1002", b"1003", b"1004", b"1006", b"2004")
# Bytes that a terminal treats as commands: ESC, its one-byte C1 equivalents (also the second byte of C1 in UTF-8, and
# part of many letters), ENQ, which some terminals answer, and the shift to another character set.
_COMMANDS = re.compile(b"[\x05\x0e\x1b\x80-\x9f]")
# An unfinished control sequence or string would swallow what follows: CAN ends the one, ST the other.
_UNFINISHED = b"\x18\x1b\\"
# Sent regardless of what was set: the normal screen (47 does not move the cursor if it is shown already), a visible
# cursor, the usual keys and character set, no insert mode, no locked keyboard, Return as one byte, no reports of
# clicks, colours and sizes, no keyboard events of Windows Terminal's own protocol, no hyperlink.
_PLAIN = (
    b"\x1b[?47l\x1b[?25h\x1b[?1l\x1b>\x0f\x1b(B\x1b[4l\x1b[2l\x1b[20l"
    b"\x1b[?9l\x1b[?2031l\x1b[?2048l\x1b[?9001l\x1b]8;;\x1b\\"
)
_SCROLL_ALL = b"\x1b7\x1b[r\x1b8"  # resetting the margins moves the cursor, so it is saved and restored
_KNOWN = frozenset((*_ALTERNATE, *_OFF_BY_DEFAULT, *_ON_BY_DEFAULT))
_DEEPEST = 16  # entries of the kitty protocol's stack that are tracked; terminals have a limit too
# Terminals ignore or obey these inside a sequence and continue it; CAN and SUB end it, ESC begins another.
_IGNORED = bytes({*range(0x20), 0x7F} - {0x18, 0x1A, 0x1B})
_SEQUENCE = re.compile(
    rb"\x1b\[(?:\?([0-9;]{1,64})([hl])|([<>=])([0-9;]{0,32})u|>4(?:;([0-9]{0,2}))?m)",
    re.ASCII,
)
_PARTIAL = re.compile(
    rb"(?:\x1b(?: |\[(?:\?[0-9;]{0,64}|[<>=][0-9;]{0,32}|[0-9;]{1,32}\"?)?)?"
    rb"|\x9b(?:[<>=][0-9;]{0,32}|[0-9;]{1,32}\"?)?)\Z",
    re.ASCII,
)
# Sequences that may set a keyboard protocol, and those whose effect is known. Sequences of this form with other final
# letters are queries, such as for the terminal's name.
_KEYS = re.compile(rb"(?:\x1b\[|\x9b)[<=>]")
_KNOWN_KEYS = re.compile(
    rb"\x1b\[(?:[<>][0-9;]{0,32}u|=[0-9]{0,32}(?:;0*1)?u|>4(?:;[0-9]{0,2})?m)|(?:\x1b\[|\x9b)[<=>][0-9;]{0,32}[@-lo-tv-~]",
    re.ASCII,
)
_NO_KEYS = b"\x1b[<99u\x1b[=0u\x1b[>4;0m"  # 99: more entries than terminals keep
# S8C1T, and DECSCL, which can do the same: replies then use one-byte controls, which shells do not understand.
_EIGHT_BITS = re.compile(rb"\x1b G|(?:\x1b\[|\x9b)[0-9;]{1,32}\"p", re.ASCII)
_SEVEN_BITS = b"\x1b F"  # sent only when needed: a Linux console would print the F
_NO_VT52 = b"\x1b<"  # in VT52 mode, a terminal understands none of the other sequences


class ScreenModes:
    """Gets all output; knows what to send before another program uses the terminal, and afterwards.

    Modes that the program reset by itself are not reset again, because leaving the alternate screen twice moves the
    cursor. Reports are always switched off: terminals accept different unusual spellings, so none is known to be off.
    """

    def __init__(self) -> None:
        self._changed: dict[bytes, None] = {}  # known modes that differ from their default, in the order of change
        self._keyboard: list[bytes] = []  # flags pushed in the kitty protocol
        self._flags = b""  # kitty flags that were set without a push
        self._other_keys = b""
        self._rest = b""
        self._private = False  # a private mode may have been set
        self._commanded = False  # the output contained more than text
        self._odd_keys = False  # a keyboard protocol may be set that the fields above do not track
        self._eight_bits = False
        self._at_start = True  # the last byte ended a line
        self._lasting = LastingChanges()

    @property
    def clean(self) -> bool:
        """Whether the terminal is as a shell expects it."""
        return not (self._changed or self._keyboard or self._flags or self._other_keys)

    @property
    def commanded(self) -> bool:
        """Whether more than text was printed, so the terminal may be in any state and may still send replies."""
        return self._commanded

    def feed(self, data: bytes) -> None:
        """Record output; a sequence may be split over several calls."""
        if data:
            self._at_start = data.endswith(b"\n")
        self._commanded = self._commanded or _COMMANDS.search(data) is not None
        self._lasting.feed(data)
        # CSI as one byte, or as two in UTF-8; the byte is also part of many letters.
        self._private = self._private or b"\x9b" in data
        if not self._rest and b"\x1b" not in data and b"\x9b" not in data:
            return
        data = self._rest + data.translate(None, _IGNORED)
        self._private = self._private or b"\x1b[?" in data
        for found in _SEQUENCE.finditer(data):
            self._apply(found)
        partial = _PARTIAL.search(data, max(0, data.rfind(b"\x1b"), data.rfind(b"\x9b")))
        self._rest = partial[0] if partial else b""
        self._eight_bits = self._eight_bits or _EIGHT_BITS.search(data) is not None
        begun = (found.start() for found in _KEYS.finditer(data, 0, len(data) - len(self._rest)))
        self._odd_keys = self._odd_keys or not all(_KNOWN_KEYS.match(data, start) for start in begun)

    def leave(self) -> bytes:
        """The sequences that restore the terminal for a shell."""
        alternate = [mode for mode in self._changed if mode in _ALTERNATE]
        others = [mode for mode in self._changed if mode not in _ALTERNATE]
        return b"".join(
            (
                b"\x1b[<%du" % len(self._keyboard) if self._keyboard else b"",
                b"\x1b[=0u" if self._flags else b"",
                b"\x1b[>4;0m" if self._other_keys else b"",
                *(_switch(mode, on=mode in _ON_BY_DEFAULT) for mode in others),
                *(_switch(mode, on=False) for mode in _REPORTS if self._private and mode not in self._changed),
                *(_switch(mode, on=False) for mode in alternate),
                b"\x1b[0m",
            )
        )

    def lend(self) -> bytes:
        """Like :meth:`leave`, but for any state of the terminal: for a shell that uses it until :meth:`enter`."""
        return self._put_right() if self._commanded else self.leave()

    def end(self, *, own_line: bool) -> bytes:
        """The sequences that restore the terminal completely, whatever its state; nothing after plain text.

        ``own_line``: another program prints next, and its text must not follow or overwrite the program's last line.
        """
        line = self.next_line() if own_line else b""
        if not self._commanded:
            return line
        return self._put_right(self._lasting.undo()) + _SCROLL_ALL + line + b"\x1b[J"

    def _put_right(self, lasting: bytes = b"") -> bytes:
        """Like :meth:`leave`, and also undo everything that may have been set without being recognized.

        ``lasting``: more to undo, first: while it goes to a printer, the terminal obeys nothing else. In VT52 mode it
        would not understand that, so that mode is left before and after.
        """
        keys = _NO_KEYS if self._odd_keys else b""  # each screen has its own stack
        first = (_NO_VT52 if self._private else b"") + (_SEVEN_BITS if self._eight_bits else b"")
        again = first if lasting else b""
        return _UNFINISHED + first + lasting + again + keys + self.leave() + keys + _PLAIN

    def next_line(self) -> bytes:
        """A line break, if another program's message needs one to start on its own line."""
        on_alternate = any(mode in _ALTERNATE for mode in self._changed)
        return b"" if self._at_start or on_alternate else b"\r\n"

    def enter(self) -> bytes:
        """The sequences that set again what :meth:`leave` undid, as far as it was recognized."""
        alternate = [mode for mode in self._changed if mode in _ALTERNATE]
        others = [mode for mode in self._changed if mode not in _ALTERNATE]
        return b"".join(
            (
                *(_switch(mode, on=True) for mode in alternate),
                *(_switch(mode, on=mode not in _ON_BY_DEFAULT) for mode in others),
                b"\x1b[>4;%sm" % self._other_keys if self._other_keys else b"",
                b"\x1b[=%su" % self._flags if self._flags else b"",
                *(b"\x1b[>%su" % flags for flags in self._keyboard),
            )
        )

    def _apply(self, found: re.Match[bytes]) -> None:
        modes, switch, action, flags, other_keys = found.groups()
        if modes is not None:
            for number in modes.split(b";"):
                mode = number.lstrip(b"0")
                if mode in _KNOWN:
                    self._changed.pop(mode, None)
                    if (switch == b"h") != (mode in _ON_BY_DEFAULT):
                        self._changed[mode] = None
        elif action is not None:
            self._keyboard_flags(action, flags.partition(b";")[0])
        else:
            self._other_keys = (other_keys or b"").lstrip(b"0")

    def _keyboard_flags(self, action: bytes, number: bytes) -> None:
        if action == b">":
            self._odd_keys = self._odd_keys or len(self._keyboard) == _DEEPEST
            self._keyboard = [*self._keyboard, number][-_DEEPEST:]
        elif action == b"<":
            # At most three digits: the program controls the number.
            del self._keyboard[max(0, len(self._keyboard) - int(number[:3] or b"1")) :]
        elif self._keyboard:
            self._keyboard[-1] = number
        else:
            self._flags = number.lstrip(b"0")


def _switch(mode: bytes, *, on: bool) -> bytes:
    return b"\x1b[?%s%s" % (mode, b"h" if on else b"l")
