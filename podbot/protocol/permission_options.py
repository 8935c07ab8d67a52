"""Checks that the name of a permission option agrees with its kind; otherwise it gets a marker. English only.

Only known words are accepted, since a list of contradicting words is never complete ("OK, dismiss", "Approve refusal").
"""

from __future__ import annotations

import re

LONGEST = 200  # characters of a name; a longer one gets the marker

_SHARED = "[podbot: two options have this id] "
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
_FORGOES = "don't-ask-again"  # treated as one word, because "ask again" means the opposite
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

# Other names that claude-agent-acp 0.100, codex-acp 2.6, gemini-cli 0.61 and opencode 1.18 use. "*": one word; "**":
# any words, after a beginning that says both that it allows and that it lasts.
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


def prefix_of(name: str, kind: object, *, shared: bool = False) -> str:
    """The marker for ``name``; empty when it agrees with ``kind`` (a JSON value).

    ``shared``: another option has the same id, which is all that the agent gets, so that either may be what was chosen.
    """
    if shared:
        return _SHARED + prefix_of(name.removeprefix(_SHARED), kind)
    says = _KINDS.get(kind) if isinstance(kind, str) else None
    if says is None:
        return "[podbot: unknown kind] "
    return "" if _agrees(name, str(kind)) else f"[podbot: {says}] "


def _agrees(name: str, kind: str) -> bool:
    """Strict: in case of doubt the marker is added."""
    if len(name) > LONGEST or not name.isascii():
        return False
    plain = name.lower()
    return _IS_KNOWN[kind].fullmatch(plain) is not None or _says(plain, kind)


def _says(plain: str, kind: str) -> bool:
    """Whether every word is allowed for an option of this kind, and the required ones occur."""
    words = [word.rstrip(",.") for word in _AGAIN.sub(_FORGOES, plain).split(" ")]
    lasts = kind.endswith("always")
    acts = _ALLOWS if kind.startswith("allow") else _REJECTS
    period = _LASTS | {_FORGOES} if lasts else _ONCE
    if not acts.union(period, _PLAIN).issuperset(words):
        return False
    if lasts and period.isdisjoint(words):
        return False
    count = sum(word in acts for word in words)
    return count == 1 or (count > 1 and acts is _ALLOWS)  # two refusals, such as "reject denial", would allow
