"""Whether the name of a permission's option says what its kind does. In English: any other name gets podbot's words.

The vocabulary is closed: a list of words that say the opposite is never complete ("OK, dismiss", "Approve refusal").
"""

from __future__ import annotations

import re

LONGEST = 200  # characters of a name that is read word by word

_KINDS = {
    "allow_once": "allows once",
    "allow_always": "allows always",
    "reject_once": "rejects once",
    "reject_always": "rejects always",
}
_ALLOWS = frozenset(["accept", "allow", "approve", "ok", "okay", "permit", "proceed", "yes"])
_REJECTS = frozenset(["cancel", "decline", "deny", "no", "refuse", "reject"])
_ONCE = frozenset(["just", "once", "only", "time"])
_LASTS = frozenset(["always", "conversation", "future", "project", "session", "sessions"])
_FORGOES = "don't-ask-again"  # one word: "ask again" alone is its opposite
_PLAIN = frozenset(
    [
        "action",
        "actions",
        "all",
        "and",
        "call",
        "calls",
        "change",
        "changes",
        "command",
        "commands",
        "edit",
        "edits",
        "file",
        "files",
        "for",
        "in",
        "it",
        "request",
        "requests",
        "server",
        "the",
        "this",
        "tool",
        "tools",
    ]
)
_AGAIN = re.compile(r"\b(?:don't|do not) ask(?: me)? again\b")

# What claude-agent-acp 0.100, codex-acp 2.6, gemini-cli 0.61 and opencode 1.18 say beyond that. "*": one word; "**":
# any words, behind a beginning that says both that it allows and that it lasts.
_KNOWN = {
    "allow_once": (
        "yes, enter plan mode",
        "yes, manually approve edits",
        "yes, implement this plan",
        "yes, grant these permissions for this turn",
    ),
    "allow_always": (
        "yes, and don't ask again for **",
        "always allow **",
        "yes, and use auto mode",
        "yes, auto-accept edits",
        "yes, and bypass permissions",
        "yes, and allow this host for this conversation",
        "yes, allow all edits in * during this session",
    ),
    "reject_once": (
        "no, and tell codex what to do differently",
        "no, continue without running it",
        "no, keep planning",
        "don't allow",
    ),
    "reject_always": ("no, and block this host in the future",),
}
_IS_KNOWN = {
    kind: re.compile(
        "|".join(re.escape(name).replace(r"\*\*", r"[ -~]+").replace(r"\*", r"[a-z0-9._/@:*+-]+") for name in names)
    )
    for kind, names in _KNOWN.items()
}


def prefix_of(name: str, kind: object) -> str:
    """What is to stand in front of ``name``; empty when it says what ``kind``, its JSON value, does."""
    says = _KINDS.get(kind) if isinstance(kind, str) else None
    if says is None:
        return "[podbot: of no known kind] "
    return "" if _agrees(name, str(kind)) else f"[podbot: {says}] "


def _agrees(name: str, kind: str) -> bool:
    """Read with caution: a doubt costs some words."""
    if len(name) > LONGEST or not name.isascii():
        return False
    plain = name.lower()
    return _IS_KNOWN[kind].fullmatch(plain) is not None or _says(plain, kind)


def _says(plain: str, kind: str) -> bool:
    """Whether every word is one that an option of this kind may have, and those that it must have are there."""
    words = [word.rstrip(",.") for word in _AGAIN.sub(_FORGOES, plain).split(" ")]
    lasts = kind.endswith("always")
    acts = _ALLOWS if kind.startswith("allow") else _REJECTS
    period = _LASTS | {_FORGOES} if lasts else _ONCE
    if not acts.union(period, _PLAIN).issuperset(words):
        return False
    if lasts and period.isdisjoint(words):
        return False
    count = sum(word in acts for word in words)
    return count == 1 or (count > 1 and acts is _ALLOWS)  # one refusal of another allows
