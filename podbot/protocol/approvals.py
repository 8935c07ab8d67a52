"""Codex App Server -> client: what the server asks the user. Marked as ACP's questions are.

The words stand in front of ``reason``, which every approval has and clients show. The paths of a file change are in
earlier notifications only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from podbot.protocol.earlier import EarlierCalls
from podbot.protocol.jsontext import Part, alike, fold_key, members
from podbot.protocol.logins import Cuts
from podbot.protocol.message import Message
from podbot.protocol.paths import PathScope
from podbot.protocol.questions import LONGEST_PATH, escape_cuts, inner, marker_of, outside_paths, put, visible

_NAMES = frozenset(
    map(fold_key, ("path", "cwd", "grantRoot", "movePath", "scriptPath", "subpath", "pattern", "read", "write"))
)
_IDS = ("itemId", "callId")
#: What a permission that lasts is for: a list of words, which are to be the command's own.
_AMENDMENT = "execpolicyamendment"
_NO_WORDS = re.compile(r"[\s'\"\\]+")
_LONGEST = 65_536  # characters of a command that is compared
_MOST = 1000  # words, or descriptions, that are compared with it


def approval_cuts(message: Message, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """What to change in a question to the user. Raises BadFrame when a member that decides is there twice."""
    params = message.fields.get("params")
    if params is None:
        return []
    cuts = escape_cuts(message.text, params)
    if not isinstance(params.value, dict) or message.method == "item/tool/requestUserInput":
        return cuts
    parts, _ = members(message.text, params.place)
    reason = alike(parts, "reason")
    marker = _place_marker(message.text, params, parts, mount, earlier) + _contradictions(params.value)
    return cuts + _reason_cuts(message.text, params, parts, reason, marker) if marker else cuts


def _reason_cuts(text: str, params: Part, parts: Sequence[Part], reason: Part | None, marker: str) -> Cuts:
    alone = json.dumps(marker.strip())
    if reason is None:
        return [(params.place + 1, params.place + 1, f'"reason":{alone}' + ("," if parts else ""))]
    return put(reason, marker) if text[reason.place] == '"' else [(reason.place, reason.end, alone)]


def note_change(message: Message, mount: PathScope, earlier: EarlierCalls) -> None:
    """Remember the paths outside the workspace of an item that begins, or whose changes are told. Raises BadFrame."""
    text, params = message.text, message.fields.get("params")
    holder = inner(text, params, "item") or params
    ident = inner(text, holder, "id") or inner(text, params, "itemId")
    if holder is not None and ident is not None and isinstance(ident.value, str):
        earlier.note(ident.value, _outside(text, holder, mount))


def _place_marker(
    text: str, params: Part, parts: Sequence[Part], mount: PathScope | None, earlier: EarlierCalls
) -> str:
    if mount is None:
        return ""
    found = [alike(parts, name) for name in _IDS]
    known = [earlier.of(part.value) for part in found if part is not None and isinstance(part.value, str)]
    paths = [*_outside(text, params, mount), *_changed(text, parts, mount)]
    paths += [path for call in known if call is not None for path in call.paths]
    return marker_of(paths, lost=None in known)


def _outside(text: str, part: Part, mount: PathScope) -> Iterator[str]:
    return outside_paths(text, part, mount, _NAMES)


def _changed(text: str, parts: Sequence[Part], mount: PathScope) -> Iterator[str]:
    """``fileChanges`` has its paths as names."""
    changes = alike(parts, "fileChanges")
    if changes is not None and isinstance(changes.value, dict):
        for part in members(text, changes.place)[0]:
            if not mount.holds(part.key if part.key.startswith("/") else f"{mount.inside}/{part.key}"):
                yield part.key


def _contradictions(params: dict[str, object]) -> str:
    """Podbot's words about a lasting permission, or a description, of something else than the command."""
    command = _words_of(_value(params, "command"))
    if not command:
        return ""
    marker = ""
    if not all(_is_part(said, command) for said in _descriptions(params)):
        marker = "[podbot: it is described by another command than it runs] "
    for words in _amendments(params):
        if not _is_part(words, command):
            shown = visible(" ".join(map(str, words)))[:LONGEST_PATH].replace("\n", " ")
            marker += f"[podbot: the lasting permission is for another command: {shown}] "
            break
    return marker


def _descriptions(params: dict[str, object]) -> Iterator[object]:
    for name in ("commandactions", "parsedcmd"):
        listed = _value(params, name)
        for action in listed[:_MOST] if isinstance(listed, list) else ():
            yield _value(action, "command") or _value(action, "cmd") or ""


def _amendments(params: dict[str, object]) -> Iterator[list[object]]:
    proposed = _value(params, "proposedexecpolicyamendment")
    decisions = _value(params, "availabledecisions")
    offered = decisions[:_MOST] if isinstance(decisions, list) else []
    found = [_value(_value(decision, "acceptwithexecpolicyamendment"), _AMENDMENT) for decision in offered]
    yield from (words for words in (proposed, *found) if isinstance(words, list))


def _is_part(words: object, command: str) -> bool:
    """Whether every word stands in ``command``, whose quotes and blanks are gone; it may be quoted in another way."""
    listed = words if isinstance(words, list) else str(words).split()
    return len(listed) <= _MOST and all(_NO_WORDS.sub("", str(word)) in command for word in listed)


def _words_of(command: object) -> str:
    text = " ".join(map(str, command)) if isinstance(command, list) else command
    return _NO_WORDS.sub("", text[:_LONGEST]) if isinstance(text, str) else ""


def _value(holder: object, name: str) -> object:
    """The member whose name is like ``name``: the last one, as most readers take it."""
    found: object = None
    if isinstance(holder, dict):
        for key, value in holder.items():
            if fold_key(key) == name:
                found = value
    return found
