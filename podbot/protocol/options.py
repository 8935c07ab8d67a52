"""Whether the name of a permission's option says what its kind does. In English: any other name gets podbot's words."""

from __future__ import annotations

import re

LONGEST = 200  # characters of a name that is read word by word

_KINDS = {
    "allow_once": "allows once",
    "allow_always": "allows always",
    "reject_once": "rejects once",
    "reject_always": "rejects always",
}
_ALLOWS = frozenset(("allow", "yes", "accept", "approve", "grant", "ok", "okay", "permit", "proceed"))
_REJECTS = frozenset(
    ("no", "not", "don't", "dont", "never", "reject", "deny", "cancel", "decline", "refuse", "stop", "abort", "block",
     "disallow", "without", "skip")
)  # fmt: skip
_LASTS = frozenset(
    (
        "always",
        "again",
        "session",
        "sessions",
        "conversation",
        "future",
        "project",
        "auto",
        "bypass",
        "permanently",
        "remember",
    )
)
_AGAIN = re.compile(r"do(?:n't|nt| not) ask(?: me)? again|without asking(?: again)?")
_WORD = re.compile(r"[a-z']+")


def prefix_of(name: str, kind: object) -> str:
    """What is to stand in front of ``name``; empty when it says what ``kind``, its JSON value, does."""
    says = _KINDS.get(kind) if isinstance(kind, str) else None
    if says is None:
        return "[podbot: of no known kind] "
    return "" if _agrees(name, str(kind)) else f"[podbot: {says}] "


def _agrees(name: str, kind: str) -> bool:
    """Read with caution: a doubt costs some words, and an option that allows has to be free of them."""
    if len(name) > LONGEST or not name.isascii() or not name.isprintable() or "podbot" in (plain := name.lower()):
        return False
    lasts = bool(_AGAIN.search(plain))
    words = _WORD.findall(_AGAIN.sub(" again ", plain))
    first = next((word for word in words if word in _ALLOWS or word in _REJECTS), "")
    if kind.startswith("reject"):
        return first in _REJECTS
    lasts = lasts or not _LASTS.isdisjoint(words)
    return first in _ALLOWS and _REJECTS.isdisjoint(words) and lasts == (kind == "allow_always")
