"""agent -> client: questions to the user. Text that could mislead the user is marked.

Nothing is removed: the question reaches the user. Characters that reorder, hide or overwrite text are shown as
escapes, and a marker precedes options that contradict themselves and paths outside the workspace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podbot.protocol.earlier import EarlierCalls, first_of
from podbot.protocol.escapes import cuts_as_shown, escape_cuts, visible
from podbot.protocol.jsontext import BadFrame, Part, alike, elements, fold_key, members
from podbot.protocol.logins import Cuts
from podbot.protocol.message import Message
from podbot.protocol.named_paths import outside_paths, texts_of
from podbot.protocol.path_map import PathScope
from podbot.protocol.permission_options import prefix_of
from podbot.protocol.web_addresses import is_web_address

MOST_PATHS = 3  # paths that a marker names
LONGEST_PATH = 100  # characters of each
_CALL_ID = frozenset({fold_key("toolCallId")})


def question_cuts(message: Message, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """The changes to a question to the user. Raises BadFrame for a question that must not be asked."""
    params = message.fields.get("params")
    if params is None:
        return []
    if not isinstance(params.value, dict):
        raise BadFrame("bad_params")
    if message.method == "elicitation/create":
        _check_address(members(message.text, params.place)[0])
        return escape_cuts(message.text, params)

    def marks(text: str, shown: Part) -> Cuts:
        parts, _ = members(text, shown.place)
        cuts = _option_cuts(text, parts)
        if mount is None:
            return cuts
        found = _named(text, shown, mount)
        agents = found if text is message.text else _named(message.text, params, mount)
        marker, title = _place_marker(found, agents, earlier)
        return cuts + _place_cuts(text, shown, parts, marker, title) if marker else cuts

    return cuts_as_shown(message.text, params, marks)


def update_cuts(message: Message, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """The changes to an update with a tool call, whose title a later question may show. Raises BadFrame.

    Its paths outside the workspace are remembered for that question.
    """
    text, params = message.text, message.fields.get("params")
    update = inner(text, params, "update")
    if update is None or not isinstance(update.value, dict):
        return []
    parts, _ = members(text, update.place)
    title = alike(parts, "title")
    call = alike(parts, "toolCallId")
    if mount is not None and call is not None and isinstance(call.value, str):
        earlier.note(call.value, outside_paths(text, update, mount), _text_of(text, title))
    return [] if title is None else escape_cuts(text, title)


def inner(text: str, holder: Part | None, name: str) -> Part | None:
    """The member ``name`` of an object; None if it is missing or ``holder`` is not an object."""
    if holder is None or not isinstance(holder.value, dict):
        return None
    return alike(members(text, holder.place)[0], name)


def _option_cuts(text: str, params: Sequence[Part]) -> Cuts:
    """Put a marker in front of the names of options that do not agree with their kind, or share their id."""
    options = alike(params, "options")
    if options is None or not isinstance(options.value, list):
        return []
    found: list[tuple[str, Part, object]] = []
    count: dict[str, int] = {}
    for option in elements(text, options.place)[0]:
        if isinstance(option.value, dict):
            parts, _ = members(text, option.place)
            ident, name, kind = (alike(parts, each) for each in ("optionId", "name", "kind"))
            # A string has more than one spelling. 1 and "1" are one id, because a client may send either.
            key = "" if ident is None else ident.value if _is_text(text, ident) else text[ident.place : ident.end]
            count[key] = count.get(key, 0) + (ident is not None)
            if name is not None and _is_text(text, name):
                found.append((key, name, None if kind is None else kind.value))
    cuts: Cuts = []
    for key, name, says in found:
        cuts += put(name, prefix_of(name.value, says, shared=count[key] > 1))
    return cuts


class _Named(NamedTuple):
    """The paths outside the workspace in a question, and the ids of calls anywhere in it.

    In version 1 the call is in the question, in version 2 in its subject, which may be of a kind that is unknown here.
    """

    paths: list[str]
    ids: list[str]


def _named(text: str, params: Part, mount: PathScope) -> _Named:
    ids = dict.fromkeys(texts_of(text, params, _CALL_ID))
    return _Named(list(outside_paths(text, params, mount)), list(ids))


def _place_marker(shown: _Named, agents: _Named, earlier: EarlierCalls) -> tuple[str, str]:
    r"""The marker of a question about paths outside the workspace, and the title that its call had earlier.

    The paths are named in the question, or in an earlier update of one of its calls. ``shown``: with escapes, as the
    client gets it. ``agents``: as the agent wrote it; what only this names, such as "\uFEFF/etc", comes last, and is
    remembered apart: the filter, were it to read its own output, would look for the rest at the beginning of the title.
    """
    hidden = only_in(agents.paths, shown.paths)
    hidden_ids = only_in(agents.ids, shown.ids)
    known, hidden_known = earlier.each_of(shown.ids), earlier.each_of(hidden_ids)
    own, own_hidden = first_of(shown.paths), first_of(hidden)
    for ident in shown.ids:
        earlier.note(ident, own, hidden=own_hidden)  # clients take a question for an update of its call
    for ident in hidden_ids:
        earlier.note(ident, (), hidden=[*own_hidden, *own])
    calls = [call for call in known if call is not None]
    paths = [*shown.paths, *(path for call in calls for path in call.paths)]
    hidden += [path for call in calls for path in call.hidden]
    hidden += [path for call in hidden_known if call is not None for path in (*call.paths, *call.hidden)]
    marker = marker_of(paths, lost=None in known)
    marker += marker_of(only_in(hidden, paths), lost=None in hidden_known and not marker)
    return marker, next((call.title for call in calls), "")


def only_in(agents: Iterable[str], shown: Iterable[str]) -> list[str]:
    """The texts of ``agents`` that are not in ``shown``, in which the same ones may have escapes."""
    known = set(map(visible, shown))
    return [text for text in agents if visible(text) not in known]


def _place_cuts(text: str, params: Part, parts: Sequence[Part], marker: str, title: str) -> Cuts:
    """Put the marker in front of each title of a question. ``title``: see ``_call_titled``."""
    call, subject = alike(parts, "toolCall"), alike(parts, "subject")
    cuts = _titled(text, parts, marker)
    for each in (call, alike(_members_of(text, subject), "toolCall")):
        cuts += _call_titled(text, each, marker, title)
    if alike(parts, "title") is None and (call is None or not isinstance(call.value, dict)):
        # Version 2 shows the question's own title, and a lenient client something in the place of a missing one.
        cuts.append((params.end - 1, params.end - 1, f',"title":{json.dumps(marker.strip())}'))
    return cuts


def _members_of(text: str, part: Part | None) -> Sequence[Part]:
    """None of what is no object."""
    return members(text, part.place)[0] if part is not None and isinstance(part.value, dict) else []


def _call_titled(text: str, call: Part | None, marker: str, title: str) -> Cuts:
    """``title``: that of an earlier update, which clients show when the question lets it out."""
    if call is None or not isinstance(call.value, dict):
        return []
    inside = members(text, call.place)[0]
    if alike(inside, "title") is not None:
        return _titled(text, inside, marker)
    member = f'"title":{json.dumps((marker + visible(title)).strip())}' + ("," if inside else "")
    return [(call.place + 1, call.place + 1, member)]


def marker_of(outside: Iterable[str], *, lost: bool) -> str:
    """The marker for paths outside the workspace; empty when there are none.

    ``lost``: an earlier update may have named some, but has been forgotten because of too many later ones.
    """
    paths = list(dict.fromkeys(map(_on_one_line, outside)))  # with escapes: an update's are remembered without
    named = ", ".join(path[:LONGEST_PATH] for path in paths[:MOST_PATHS])
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    if paths:
        return f"[podbot: outside the workspace: {named}{more}] "
    return "[podbot: perhaps outside the workspace: the call's update was too long ago] " if lost else ""


def _on_one_line(path: str) -> str:
    return visible(path).replace("\n", "\\n").replace("\t", "\\t")


def _titled(text: str, parts: Sequence[Part], marker: str) -> Cuts:
    title = alike(parts, "title")
    if title is None:
        return []
    return put(title, marker) if _is_text(text, title) else [(title.place, title.end, json.dumps(marker.strip()))]


def put(part: Part, marker: str) -> Cuts:
    """Insert ``marker`` at the beginning of a string, unless it is there already."""
    if not marker or part.value.startswith(marker.strip()):
        return []
    return [(part.place + 1, part.place + 1, json.dumps(marker)[1:-1])]


def _is_text(text: str, part: Part) -> bool:
    return text[part.place] == '"'  # not isinstance: the scanner keeps numbers as text


def _text_of(text: str, part: Part | None) -> str:
    return part.value if part is not None and _is_text(text, part) else ""


def _check_address(params: Sequence[Part]) -> None:
    """Raise BadFrame unless the user is asked with a form, or asked to open a plain web address."""
    mode, url = alike(params, "mode"), alike(params, "url")
    if (mode is not None and mode.value not in ("form", "url")) or (url is not None and not is_web_address(url.value)):
        raise BadFrame("denied_address")
