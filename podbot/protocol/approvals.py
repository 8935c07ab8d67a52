"""Codex App Server -> client: questions to the user, which are marked like ACP's.

The marker is put in front of ``reason``, which every approval has and clients show. The paths of a file change are
only in earlier notifications.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from podbot.protocol.descriptions import MEMBERS, MOST, misdescribed, values
from podbot.protocol.earlier import MOST_PATHS, EarlierCalls
from podbot.protocol.escapes import cuts_as_shown, escape_cuts, visible
from podbot.protocol.jsontext import Part, alike, fold_key, members
from podbot.protocol.logins import Cuts
from podbot.protocol.message import Message
from podbot.protocol.named_paths import outside_paths, owned_paths, texts_of
from podbot.protocol.path_map import PathScope
from podbot.protocol.permitted_commands import is_narrow
from podbot.protocol.plain_commands import Command, bare, command_of, is_prefix
from podbot.protocol.questions import LONGEST_PATH, marker_of, only_in, put

_NAMES = frozenset(
    map(fold_key, ("path", "cwd", "grantRoot", "movePath", "scriptPath", "subpath", "pattern", "read", "write"))
)
_IDS = ("itemId", "callId")
_OWNERS = frozenset(map(fold_key, ("id", *_IDS)))
_KIND = frozenset({"kind"})
# Special places in the workspace, or with nothing of the user's; any other one is named, also one that is unknown here.
_WITHIN = frozenset(map(fold_key, ("project_roots", "current_working_directory", "minimal")))
_SPECIAL = {"root": "/", "slashtmp": "/tmp", "tmpdir": "the directory for temporary files"}  # noqa: S108 - a name
# Each may be there once, because clients differ in which of two they read.
_DECIDING = (
    "command", "cwd", *MEMBERS, "availableDecisions", "networkApprovalContext", "proposedExecpolicyAmendment",
    "proposedNetworkPolicyAmendments",
)  # fmt: skip
_MOST_OFFERED = 16  # lasting permissions in the decisions that are compared with the command; more count as any


def approval_cuts(message: Message, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """The changes to a question to the user. Raises BadFrame when a relevant member occurs twice."""
    params = message.fields.get("params")
    if params is None:
        return []
    if not isinstance(params.value, dict) or message.method == "item/tool/requestUserInput":
        return escape_cuts(message.text, params)

    def marks(text: str, shown: Part) -> Cuts:
        parts, _ = members(text, shown.place)
        found = _found(text, shown, parts, mount, earlier)
        marker = found.marker()
        if text is not message.text:
            # The words that run have no escapes. What only they reveal comes last: the filter, were it to read its own
            # output, would look for the rest at the beginning of the reason.
            agents, _ = members(message.text, params.place)
            marker += _found(message.text, params, agents, mount, earlier).only_there(found).marker()
        return _reason_cuts(text, shown, parts, alike(parts, "reason"), marker) if marker else []

    return cuts_as_shown(message.text, params, marks)


class _Found(NamedTuple):
    """``paths``: outside the workspace. ``lost``: see ``marker_of``. ``contradictions``: podbot's words about each."""

    paths: list[str]
    lost: bool
    contradictions: list[str]

    def marker(self) -> str:
        """Podbot's words about all; empty when there is nothing."""
        return marker_of(self.paths, lost=self.lost) + "".join(self.contradictions)

    def only_there(self, shown: _Found) -> _Found:
        """What is not in ``shown``, which is of the same question with escapes."""
        said = [each for each in self.contradictions if each not in shown.contradictions]
        return _Found(only_in(self.paths, shown.paths), self.lost and not (shown.lost or shown.paths), said)


def _found(text: str, params: Part, parts: Sequence[Part], mount: PathScope | None, earlier: EarlierCalls) -> _Found:
    alike(parts, "reason")  # raises if there are two
    deciding = {name: part.value for name in _DECIDING if (part := alike(parts, name)) is not None}
    paths, lost = ([], False) if mount is None else _places(text, params, parts, mount, earlier)
    return _Found(paths, lost, list(_contradictions(deciding)))


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


def _places(
    text: str, params: Part, parts: Sequence[Part], mount: PathScope, earlier: EarlierCalls
) -> tuple[list[str], bool]:
    """The paths outside the workspace, and whether an item's may be forgotten."""
    found = [alike(parts, name) for name in _IDS]
    known = [earlier.of(part.value) for part in found if part is not None and isinstance(part.value, str)]
    paths = [*_outside(text, params, mount), *_changed(text, parts, mount), *_special(text, parts)]
    paths += [path for call in known if call is not None for path in call.paths]
    return paths, None in known


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
                kind = fold_key(place[:LONGEST_PATH])
                if kind not in _WITHIN:
                    yield _SPECIAL.get(kind, place)


def _contradictions(params: dict[str, Any]) -> Iterator[str]:
    """Podbot's words about a lasting permission, or a description, of something else than what is asked."""
    command = command_of(params.get("command"))
    wrong = misdescribed(params, command)
    if wrong == ():
        yield "[podbot: the description is of another command than the one that runs] "
    elif wrong:
        yield f"[podbot: the description leaves out a part of the command: {_shown(wrong)}] "
    for permitted in _amendments(params):
        if not isinstance(permitted, list) or _is_for_another(permitted, command):
            words = permitted if isinstance(permitted, list) else []
            yield f"[podbot: the lasting permission is for another command: {_shown(words) or 'any'}] "
            break
        if command is None or not is_narrow(bare(permitted), command):
            yield f"[podbot: the lasting permission is for more than this command: {_shown(permitted)}] "
            break
    for host in _other_hosts(params):
        yield f"[podbot: the lasting permission is for another host: {_shown([host])}] "
        break


def _is_for_another(permitted: list[object], command: Command | None) -> bool:
    return command is None or len(permitted) > MOST or not is_prefix(permitted, command)


def _amendments(params: dict[str, Any]) -> Iterator[object]:
    """Each lasting permission for a command. What is no list of words is for any, as far as podbot can tell."""
    offered = params.get("proposedExecpolicyAmendment")
    if offered is not None:
        yield offered
    count = 0
    for decision in _decisions(params):
        for each in values(decision, "acceptWithExecpolicyAmendment"):
            for words in values(each, "execpolicyAmendment") or [None]:
                count += 1
                yield words if count <= _MOST_OFFERED else None


def _other_hosts(params: dict[str, Any]) -> Iterator[object]:
    """Hosts of lasting permissions for the network that are not the one which is asked about."""
    asked = values(params.get("networkApprovalContext"), "host")
    given = params.get("proposedNetworkPolicyAmendments")
    found = list(given) if isinstance(given, list) else [] if given is None else [given]
    for decision in _decisions(params):
        for each in values(decision, "applyNetworkPolicyAmendment"):
            found += values(each, "networkPolicyAmendment") or [None]
    for amendment in found:
        hosts = values(amendment, "host")
        if values(amendment, "action") != ["deny"] and (len(hosts) != 1 or hosts != asked):
            yield next((host for host in hosts if host not in asked and isinstance(host, str)), "any")


def _decisions(params: dict[str, Any]) -> list[object]:
    found = params.get("availableDecisions")
    return found if isinstance(found, list) else [] if found is None else [found]


def _shown(words: Sequence[object]) -> str:
    return visible(" ".join(map(str, words)))[:LONGEST_PATH].replace("\n", " ").replace("\t", " ")
