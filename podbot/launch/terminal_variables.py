"""The variables that a command with a terminal gets of the host's. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# Not LANG: the locales depend on the image. Agents recognize by the program which keys the terminal can send.
NAMES = ("TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
USUAL = "xterm-256color"
#: What Debian's ncurses-base describes, which podbot's images have; an end-to-end test compares both. It counts where
#: no guest looks for what the image has. Without a description of its terminal, a program ends ("unknown terminal
#: type") or draws nothing but text.
KNOWN = frozenset((
    *("Eterm", "Eterm-color", "ansi", "cons25", "cons25-debian", "cygwin", "dumb", "hurd", "linux", "mach"),
    *("mach-bold", "mach-color", "mach-gnu", "mach-gnu-color", "pcansi", "rxvt", "rxvt-basic", "rxvt-m"),
    *("rxvt-unicode", "rxvt-unicode-256color", "screen", "screen-256color", "screen-256color-bce", "screen-bce"),
    *("screen-s", "screen-w", "screen.xterm-256color", "sun", "tmux", "tmux-256color", "vt100", "vt102", "vt220"),
    *("vt52", "wsvt25", "wsvt25m", "xterm", USUAL, "xterm-color", "xterm-debian", "xterm-mono", "xterm-r5"),
    *("xterm-r6", "xterm-vt220", "xterm-xfree86"),
))  # fmt: skip
# The first letters of a TERM, and what describes such a terminal, the best first.
_FAMILIES = (
    ("screen", ("screen-256color", "screen")),
    ("tmux", ("tmux-256color", "screen-256color", "tmux", "screen")),
    ("linux", ("linux",)),
    ("rxvt", ("rxvt-unicode-256color", "rxvt")),
)
# Every other terminal is an xterm in all that matters, except what KNOWN has by another name (dumb, vt100, sun).
_XTERMS = (USUAL, "xterm", "vt100", "ansi")


def terminal_variables(host: Mapping[str, str], default: str = "") -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables, and the choices for TERM (see ``ExecSpec``): the host's own first; empty if there is only one.

    Blank variables are left out. ``default``: the TERM of a host that has none. TERM among the variables is for where
    nothing inside chooses: the host's own, or if podbot's images do not have it, the next that they have.
    """
    found = {name: host[name] for name in NAMES if host.get(name)}
    term = found.get("TERM", default)
    if not term:
        return found, ()
    choices = tuple(name for name in term_choices(term) if name.isascii())  # what is not UTF-8 no guest can be sent
    found["TERM"] = next((name for name in choices if name in KNOWN), term)
    return found, choices


def term_choices(term: str) -> tuple[str, ...]:
    """What may stand for ``term``, itself first; empty for a terminal that nothing else may stand for."""
    family = next((names for first, names in _FAMILIES if term.startswith(first)), ())
    if term in KNOWN and not family and not term.startswith("xterm"):
        return ()
    return tuple(dict.fromkeys((term, *family, *_XTERMS)))


def term_notice(host: str, inside: str, *, looked: bool) -> str:
    """Says that TERM is ``inside``, and not the host's. ``looked``: the guest looked for the sandbox's own entries."""
    where = "the sandbox has" if looked else "podbot's images have"
    return f"TERM is {inside} inside: {where} no entry for {host}; a TERM that you pass yourself stays"
