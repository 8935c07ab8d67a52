"""Codex App Server -> client: questions to the user, which are marked like ACP's.

The marker is put in front of ``reason``, which every approval has and clients show. The paths of a file change are
only in earlier notifications.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from podbot.protocol.earlier import MOST_PATHS, EarlierCalls
from podbot.protocol.jsontext import Part, alike, fold_key, members
from podbot.protocol.logins import Cuts
from podbot.protocol.message import Message
from podbot.protocol.named_paths import outside_paths, owned_paths, texts_of
from podbot.protocol.path_map import PathScope
from podbot.protocol.questions import LONGEST_PATH, escape_cuts, marker_of, put, visible

_NAMES = frozenset(
    map(fold_key, ("path", "cwd", "grantRoot", "movePath", "scriptPath", "subpath", "pattern", "read", "write"))
)
_IDS = ("itemId", "callId")
_OWNERS = frozenset(map(fold_key, ("id", *_IDS)))
_KIND = frozenset({"kind"})
_SPECIAL = {"root": "/", "slash_tmp": "/tmp", "tmpdir": "the directory for temporary files"}  # noqa: S108 - a name
#: What a permission that lasts is for: a list of words, which are to be the command's own.
_AMENDMENT = "execpolicyamendment"
_WORD = re.compile(r"[^\s'\"\\;|&()<>\0]+")
_NUL = "\0"
_LONGEST = 65_536  # characters of a command that is compared
_MOST = 1000  # words or descriptions that are compared with the command


def approval_cuts(message: Message, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """The changes to a question to the user. Raises BadFrame when a relevant member occurs twice."""
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


def note_items(text: str, holder: Part, mount: PathScope, earlier: EarlierCalls) -> None:
    """Remember the paths outside the workspace that items in ``holder`` name, each for whatever ids stand around it.

    Which id is the item's depends on the notification, and a client ignores the others: a false one beside it must not
    draw the paths away.
    """
    found: dict[str, list[str]] = {}
    for path, owners in owned_paths(text, holder, mount, _NAMES, _OWNERS):
        for owner in owners:
            paths = found.setdefault(owner, [])
            if len(paths) < MOST_PATHS:
                paths.append(path)
    for owner, paths in found.items():
        earlier.note(owner, paths)


def _place_marker(
    text: str, params: Part, parts: Sequence[Part], mount: PathScope | None, earlier: EarlierCalls
) -> str:
    if mount is None:
        return ""
    found = [alike(parts, name) for name in _IDS]
    known = [earlier.of(part.value) for part in found if part is not None and isinstance(part.value, str)]
    paths = [*_outside(text, params, mount), *_changed(text, parts, mount), *_special(text, parts)]
    paths += [path for call in known if call is not None for path in call.paths]
    return marker_of(paths, lost=None in known)


def _outside(text: str, part: Part, mount: PathScope) -> Iterator[str]:
    return outside_paths(text, part, mount, _NAMES)


def _changed(text: str, parts: Sequence[Part], mount: PathScope) -> Iterator[str]:
    """Paths outside the workspace in ``fileChanges``, whose member names are paths."""
    changes = alike(parts, "fileChanges")
    if changes is not None and isinstance(changes.value, dict):
        for part in members(text, changes.place)[0]:
            if not mount.holds(part.key if part.key.startswith("/") else f"{mount.inside}/{part.key}"):
                yield part.key


def _special(text: str, parts: Sequence[Part]) -> Iterator[str]:
    """Places of permissions that have a name in the place of a path."""
    for name in ("permissions", "additionalPermissions"):
        part = alike(parts, name)
        if part is not None and isinstance(part.value, dict):
            for place in texts_of(text, part, _KIND):
                if place in _SPECIAL:
                    yield _SPECIAL[place]


def _contradictions(params: dict[str, object]) -> str:
    """Podbot's words about a lasting permission, or a description, of something else than what is asked."""
    command = _words_of(_value(params, "command"))
    known = frozenset(command)
    marker = ""
    if not all(known.issuperset(words) and words for words in _descriptions(params)):
        marker = "[podbot: the description is of another command than the one that runs] "
    for amendment in _amendments(params) if command else ():
        words = _words_of(amendment)
        if not _follows(words, command):
            shown = visible(" ".join(map(str, amendment)))[:LONGEST_PATH].replace("\n", " ") or "any"
            marker += f"[podbot: the lasting permission is for another command: {shown}] "
            break
    for host in _other_hosts(params):
        shown = visible(host)[:LONGEST_PATH].replace("\n", " ")
        marker += f"[podbot: the lasting permission is for another host: {shown}] "
        break
    return marker


def _descriptions(params: dict[str, object]) -> Iterator[Sequence[str]]:
    """The words of each: what would run, and what clients show in place of that."""
    for name in ("commandactions", "parsedcmd"):
        listed = _value(params, name)
        for action in listed[:_MOST] if isinstance(listed, list) else ():
            yield _words_of(_value(action, "command") or _value(action, "cmd"))
            yield from (_words_of(said) for said in (_value(action, "name"), _value(action, "query")) if said)


def _amendments(params: dict[str, object]) -> Iterator[list[object]]:
    proposed = _value(params, "proposedexecpolicyamendment")
    found = [_value(_value(decision, "acceptwithexecpolicyamendment"), _AMENDMENT) for decision in _offered(params)]
    yield from (words for words in (proposed, *found) if isinstance(words, list))


def _other_hosts(params: dict[str, object]) -> Iterator[str]:
    """Hosts of lasting permissions for the network that are not the one which is asked about."""
    asked = _value(_value(params, "networkapprovalcontext"), "host")
    proposed = _value(params, "proposednetworkpolicyamendments")
    offered = [
        _value(_value(decision, "applynetworkpolicyamendment"), "networkpolicyamendment")
        for decision in _offered(params)
    ]
    for amendment in [*(proposed[:_MOST] if isinstance(proposed, list) else []), *offered]:
        host = _value(amendment, "host")
        if isinstance(host, str) and host != asked and _value(amendment, "action") != "deny":
            yield host


def _offered(params: dict[str, object]) -> list[object]:
    decisions = _value(params, "availabledecisions")
    return decisions[:_MOST] if isinstance(decisions, list) else []


def _follows(words: Sequence[str], command: Sequence[str]) -> bool:
    """Whether ``words`` stand in ``command`` one behind the other; "rm" is not in "format"."""
    if not words or len(words) > _MOST:
        return False
    return f"\0{_NUL.join(words)}\0" in f"\0{_NUL.join(command)}\0"


def _words_of(command: object) -> Sequence[str]:
    """What a shell or a list separates, without its marks; the rest may be quoted in another way."""
    text = " ".join(map(str, command)) if isinstance(command, list) else command
    return _WORD.findall(text[:_LONGEST]) if isinstance(text, str) else ()


def _value(holder: object, name: str) -> object:
    """The member whose folded name is ``name``; of several, the last one, as most parsers do."""
    found: object = None
    if isinstance(holder, dict):
        for key, value in holder.items():
            if fold_key(key) == name:
                found = value
    return found
