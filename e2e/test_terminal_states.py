"""What a program set in the operator's terminal, told by a small terminal that shares nothing with podbot's parser."""

from __future__ import annotations

import os
import re

import pexpect
import pytest

from e2e.harness import PODBOT, World

_CSI = re.compile(rb"\x1b\[([<=>?]?)([0-9;]*)([ -/]*)([@-~])")
_OSC = re.compile(rb"\x1b\](\d+)(?:;([^\x07\x18\x1b]*))?(\x07|\x1b\\|\x18)")
_ESC = re.compile(rb"\x1b([ -/]*)([0-~])")
_ON = {"?7", "?8", "?25", "12"}  # modes that a new terminal has
_SCREENS = {"?47", "?1047", "?1049"}
_KEYPAD = "?66"
_SHIFTS = {0x0E: True, 0x0F: False}


class Terminal:
    """Knows which of its states differ from those of a new one. ``changed``: their names."""

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self._titles = 0
        self._kitty = [0]  # the flags of each entry

    def feed(self, data: bytes) -> Terminal:
        """Obey output; text is ignored. An unfinished sequence swallows all up to CAN or ST."""
        at = 0
        while at < len(data):
            rest = data[at:]
            if rest[0] in _SHIFTS:
                self._mark("shift", _SHIFTS[rest[0]])
            sequence = next((found for form in (_CSI, _OSC, _ESC) if (found := form.match(rest))), None)
            if sequence is None:
                at += 1
                continue
            at += sequence.end()
            if "printer" in self.changed and sequence[0] != b"\x1b[4i":
                continue
            if sequence.re is _CSI:
                self._control(*(part.decode() for part in sequence.groups()))
            elif sequence.re is _ESC:
                self._escape(sequence[1] + sequence[2])
            elif sequence[3] != b"\x18":
                self._command(int(sequence[1]), (sequence[2] or b"").decode().split(";"))
        return self

    def _mark(self, name: str, changed: bool) -> None:
        (self.changed.add if changed else self.changed.discard)(name)

    def _escape(self, text: bytes) -> None:
        for on, off, name in (
            (b"=", b">", _KEYPAD), (b"(0", b"(B", "charset"), (b"%@", b"%G", "Latin 1"), (b" G", b" F", "8 bits"),
        ):  # fmt: skip
            if text in {on, off}:
                self._mark(name, text == on)

    def _command(self, number: int, values: list[str]) -> None:
        if number in {4, 5}:
            self._mark(f"palette {number}", True)
        elif number in {104, 105}:
            self._mark(f"palette {number - 100}", False)
        elif number in {8, 22}:
            self._mark(f"command {number}", values[-1] != "")
        elif number == 9 and values[0] == "4":
            self._mark("progress", values[1] != "0")
        elif number in range(10, 20):
            for at in range(len(values)):
                self._mark(f"colour {number + at}", True)
        elif number in range(110, 120):
            self._mark(f"colour {number - 100}", False)

    def _control(self, prefix: str, text: str, between: str, final: str) -> None:
        values = text.split(";")
        number = int(values[0] or 0)
        if final in "hl" and prefix in {"", "?"}:
            for value in values:
                name = "screen" if prefix + value in _SCREENS else prefix + value
                self._mark(name, (final == "h") != (name in _ON))
        elif final == "u":
            self._keyboard(prefix, number)
        elif prefix == ">" and final == "m":
            self._mark(f"keys {number}", values[1:] not in ([], ["0"]))
        elif prefix == "" and final == "t":
            self._titles = max(0, self._titles + {22: 1, 23: -1}.get(number, 0))
            self._mark("titles", self._titles > 0)
        elif prefix == "?" and final == "W":
            self._mark("tab stops", False)
        elif prefix == "":
            names = {
                "m": "colours", " q": "cursor", "r": "margins", "i": "printer", "$}": "status text",
                "$~": "status line", "g": "tab stops", '"p': "8 bits",
            }  # fmt: skip
            changed = {"i": number == 5, "r": text != "", "g": True, '"p': values[1:] != ["1"]}
            if (kind := between + final) in names:
                self._mark(names[kind], changed.get(kind, number != 0))

    def _keyboard(self, prefix: str, number: int) -> None:
        if prefix == "=":
            self._kitty[-1] = number
        elif prefix == ">":
            self._kitty.append(number)
        elif prefix == "<":
            del self._kitty[max(1, len(self._kitty) - max(1, number)) :]
        self._mark("keyboard", self._kitty != [0])


# One by one what agents and other programs set, in the spelling of xterm's, kitty's and Windows Terminal's manuals.
STATES = (
    *(
        b"\x1b[?%dh" % mode
        for mode in (1, 4, 5, 6, 9, 45, 47, 66, 67, 69, 80, 1000, 1001, 1002, 1003, 1004, 1005, 1006)
    ),
    *(b"\x1b[?%dh" % mode for mode in (1015, 1016, 1047, 1049, 1050, 1051, 1052, 1053, 1060, 1061, 2004, 2026, 2031)),
    *(b"\x1b[?%dh" % mode for mode in (2048, 7727, 9001)),
    *(b"\x1b[?7l", b"\x1b[?8l", b"\x1b[?25l", b"\x1b[2h", b"\x1b[4h", b"\x1b[20h", b"\x1b[12l", b"\x1b=", b"\x1b(0"),
    *(
        b"\x0e",
        b"\x1b[1;31m",
        b"\x1b[3;9r",
        b"\x1b[6 q",
        b"\x1b[>1u",
        b"\x1b[=5u",
        b"\x1b[>4;2m",
        b"\x1b[3g",
        b"\x1b[22;0t",
    ),
    *(b"\x1b]4;1;red\x07", b"\x1b]5;0;red\x07", b"\x1b]10;red\x07", b"\x1b]11;red\x1b\\", b"\x1b]12;red\x07"),
    *(b"\x1b]17;red\x07", b"\x1b]19;red\x07", b"\x1b]8;;http://h\x1b\\", b"\x1b]9;4;1;50\x07", b"\x1b]22;wait\x07"),
    *(b"\x1b[1$}", b"\x1b[2$~", b"\x1b%@", b"\x1b G", b"\x1b[5i"),  # the printer last: it gets all that follows
)


@pytest.mark.parametrize("unfinished", [b"", b"\x1b]0;a title without an end", b"\x1b[?2004"])
def test_everything_that_a_program_set_is_undone_at_the_end(world: World, unfinished: bytes) -> None:
    """Issue 29.20: 13 of 42 were left to the operator's shell."""
    assert [state for state in STATES if len(Terminal().feed(state).changed) != 1] == []
    data, workspace = b"".join(STATES) + unfinished, world.workspace()
    with open(os.path.join(workspace, "states"), "wb") as file:
        file.write(data)
    words = ("run", "--workspace", workspace, "--agent", "custom", "--", "cat", "states")
    child = pexpect.spawn(PODBOT[0], [*PODBOT[1:], *words], env=world.env, cwd=world.root, timeout=60)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    before, found, after = child.before.partition(data)
    assert found
    terminal = Terminal().feed(before + data)
    assert terminal.changed >= set().union(*(Terminal().feed(state).changed for state in STATES))
    assert terminal.feed(unfinished + after).changed == set()
