"""The variables that a command with a terminal gets of the host's. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# Not LANG: the locales depend on the image. Agents recognize by the program which keys the terminal can send.
NAMES = ("TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
USUAL = "xterm-256color"
#: What Debian's ncurses-base describes, which podbot's images have; an end-to-end test compares both. Without a
#: description of its terminal, a program ends ("unknown terminal type") or draws nothing but text.
KNOWN = frozenset((
    *("Eterm", "Eterm-color", "ansi", "cons25", "cons25-debian", "cygwin", "dumb", "hurd", "linux", "mach"),
    *("mach-bold", "mach-color", "mach-gnu", "mach-gnu-color", "pcansi", "rxvt", "rxvt-basic", "rxvt-m"),
    *("rxvt-unicode", "rxvt-unicode-256color", "screen", "screen-256color", "screen-256color-bce", "screen-bce"),
    *("screen-s", "screen-w", "screen.xterm-256color", "sun", "tmux", "tmux-256color", "vt100", "vt102", "vt220"),
    *("vt52", "wsvt25", "wsvt25m", "xterm", USUAL, "xterm-color", "xterm-debian", "xterm-mono", "xterm-r5"),
    *("xterm-r6", "xterm-vt220", "xterm-xfree86"),
))  # fmt: skip
# The first letters of a TERM, and what describes such a terminal best; any other is an xterm in all that matters.
_FAMILIES = (
    ("screen", "screen-256color"),
    ("tmux", "tmux-256color"),
    ("linux", "linux"),
    ("rxvt", "rxvt-unicode-256color"),
)


def terminal_variables(host: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The variables, and a notice if TERM differs from the host's; empty otherwise. A blank variable is left out."""
    found = {name: host[name] for name in NAMES if host.get(name)}
    term = found.get("TERM", USUAL)
    if term in KNOWN:
        return found, ""
    found["TERM"] = described = next((known for first, known in _FAMILIES if term.startswith(first)), USUAL)
    return (
        found,
        f"TERM is {described} inside: podbot's images have no entry for {term}; a TERM that you pass yourself stays",
    )
