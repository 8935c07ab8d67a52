"""agent -> client: what an agent asks the user. Text that could show something else than it says is marked.

Nothing is taken away: the question reaches the user, with escapes for characters that reorder, hide or overwrite text,
and with podbot's words in front of what contradicts itself or lies elsewhere than one may think.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since 3.0, not in the stubs
from typing import Any

from podbot.protocol.earlier import EarlierCalls
from podbot.protocol.jsontext import ALIKE, BadFrame, Part, alike, elements, fold_key, members
from podbot.protocol.logins import Cuts
from podbot.protocol.message import Message
from podbot.protocol.options import prefix_of
from podbot.protocol.paths import LONGEST, PathScope

MOST_MARKS = 10_000  # characters in one question; each costs some 200 bytes
MOST_PATHS = 3  # that a marker names
LONGEST_PATH = 100  # characters of each

# Controls, bidirectional marks, what has no width, tags; not the two joiners, which scripts and emoji need. Controls
# below U+0020 stand in JSON as escapes only.
_HIDDEN = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IS_HIDDEN = re.compile(f"[\\0-\\x08\\x0b-\\x1f\\ud800-\\udfff{_HIDDEN}]")
# All that is harmless in one bite, then what may be hidden: the harmless costs no step of Python.
_CANDIDATE = re.compile(
    rf'(?:[^\\{_HIDDEN}]++|\\["\\/nt]|\\r\\n)*+'
    r"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
    rf"|[{_HIDDEN}])?"
)
_PATHS = frozenset(
    map(fold_key, ("path", "filePath", "absolutePath", "notebookPath", "oldPath", "newPath", "cwd", "workdir", "uri"))
)
# Readers of addresses leave out what stands before one, and tabs and line ends in it; in file addresses \\ is /.
_BLANK = re.compile(r"[\s\0-\x20\x7f-\x9f\ufeff]++")
_FILE = re.compile(r"f[\t\n\r]*i[\t\n\r]*l[\t\n\r]*e[\t\n\r]*:", re.IGNORECASE | re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE | re.ASCII)
_QUERY = re.compile("[?#]")
_AS_BROWSERS = str.maketrans("\\", "/", "\t\n\r")
# ASCII: without it the Kelvin sign is a k, and the long s an s.
_ADDRESS = re.compile(
    r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][!-~]*)?", re.IGNORECASE | re.ASCII
)


def question_cuts(message: Message, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """What to change in a question to the user. Raises BadFrame for what is not to be asked."""
    params = message.fields.get("params")
    if params is None:
        return []
    cuts: Cuts = escape_cuts(message.text, params)
    if not isinstance(params.value, dict):
        raise BadFrame("bad_params")
    parts, _ = members(message.text, params.place)
    if message.method == "elicitation/create":
        _check_address(parts)
    else:
        cuts += _option_cuts(message.text, parts) + _place_cuts(message.text, params, parts, mount, earlier)
    return cuts


def update_cuts(message: Message, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """What to change in an update with a tool call: its title is what a later question may show. Raises BadFrame.

    The paths outside the workspace that it names are remembered for that question.
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
    """The member called ``name`` of an object; None when there is none, or ``holder`` is no object."""
    if holder is None or not isinstance(holder.value, dict):
        return None
    return alike(members(text, holder.place)[0], name)


def visible(text: str) -> str:
    """``text`` with the same characters as escapes."""
    return _IS_HIDDEN.sub(lambda found: _escape(found[0]), text)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def escape_cuts(text: str, part: Part) -> Cuts:
    """One cut for each character that is to be seen. Outside strings JSON has none of the candidates."""
    return list(_escapes(text, part.place, part.end))


def _escapes(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    count = 0
    for found in _CANDIDATE.finditer(text, start, end):
        spelled = found[1]
        if not spelled:
            continue
        char = scanstring(f'{spelled}"', 0, True)[0] if spelled[0] == "\\" else spelled
        if _IS_HIDDEN.fullmatch(char):
            count += 1
            if count > MOST_MARKS:
                raise BadFrame("too_many_marks")
            yield found.start(1), found.end(1), "\\" + _escape(char)


def _option_cuts(text: str, params: Sequence[Part]) -> Cuts:
    """Podbot's words in front of the names of options that do not say what their kinds do."""
    options = alike(params, "options")
    if options is None or not isinstance(options.value, list):
        return []
    cuts: Cuts = []
    for option in elements(text, options.place)[0]:
        if isinstance(option.value, dict):
            parts, _ = members(text, option.place)
            name, kind = alike(parts, "name"), alike(parts, "kind")
            if name is not None and _is_text(text, name):
                cuts += put(name, prefix_of(name.value, None if kind is None else kind.value))
    return cuts


def _place_cuts(text: str, params: Part, parts: Sequence[Part], mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    """Podbot's words in front of the title of a question about paths outside the workspace.

    The question names them itself, or an earlier update of the same call has.
    """
    if mount is None:
        return []
    call = alike(parts, "toolCall")
    inside = members(text, call.place)[0] if call is not None and isinstance(call.value, dict) else []
    ids = [alike(holder, "toolCallId") for holder in (parts, inside)]
    known = [earlier.of(found.value) for found in ids if found is not None and isinstance(found.value, str)]
    named = [path for found in known if found is not None for path in found.paths]
    marker = marker_of([*outside_paths(text, params, mount), *named], lost=None in known)
    if not marker:
        return []
    cuts = _titled(text, parts, marker)
    if call is not None and isinstance(call.value, dict):
        found = _titled(text, inside, marker)
        if not found and alike(inside, "title") is None:  # ACP 1 lets it out when it has not changed
            title = next((found.title for found in known if found is not None), "")
            member = f'"title":{json.dumps((marker + visible(title)).strip())}' + ("," if inside else "")
            found = [(call.place + 1, call.place + 1, member)]
        cuts += found
    return cuts


def marker_of(outside: Iterable[str], *, lost: bool) -> str:
    """Podbot's words about paths outside the workspace; empty when there are none.

    ``lost``: an earlier update may have named some, and too many others have come since.
    """
    paths = list(dict.fromkeys(outside))
    named = ", ".join(_on_one_line(path)[:LONGEST_PATH] for path in paths[:MOST_PATHS])
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    if paths:
        return f"[podbot: outside the workspace: {named}{more}] "
    return "[podbot: perhaps outside the workspace: what it is about was said too long ago] " if lost else ""


def _on_one_line(path: str) -> str:
    return visible(path).replace("\n", "\\n").replace("\t", "\\t")


def _titled(text: str, parts: Sequence[Part], marker: str) -> Cuts:
    title = alike(parts, "title")
    if title is None:
        return []
    if title.value is None:
        return [(title.place, title.end, json.dumps(marker.strip()))]
    return put(title, marker) if _is_text(text, title) else []


def put(part: Part, marker: str) -> Cuts:
    """``marker`` at the beginning of a string, unless it stands there."""
    if not marker or part.value.startswith(marker.strip()):
        return []
    return [(part.place + 1, part.place + 1, json.dumps(marker)[1:-1])]


def _is_text(text: str, part: Part) -> bool:
    return text[part.place] == '"'  # not isinstance: the scanner keeps numbers as text


def _text_of(text: str, part: Part | None) -> str:
    return part.value if part is not None and _is_text(text, part) else ""


def outside_paths(text: str, part: Part, mount: PathScope, names: frozenset[str] = _PATHS) -> Iterator[str]:
    """The paths outside in members that name some: wherever these stand, at any depth in them, in a second one too.

    ``names``: of such members, as ``fold_key`` has them. The value is read once more, with all members of one name.
    """
    if text[part.place] not in "{[":
        return
    # Of each object and list that is open: what is left of it, and by which name a text in it is a path; empty: none.
    around = [(_inside(_scan_pairs(text, part.place)[0]), "")]
    while around:
        left, above = around[-1]
        for key, value in left:
            named = (key and _name_in(key, names)) or above
            if not isinstance(value, str):
                if isinstance(value, list):
                    around.append((_inside(value), named))
                    break
            elif named and (path := _misplaced(named, value, mount)):
                yield path
        else:
            around.pop()


class _Pairs(list[tuple[str, Any]]):
    """An object's members, each as often as it is there."""


# As ``jsontext.scan``.
_scan_pairs = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=str, parse_float=str).scan_once  # type: ignore[attr-defined]


def _inside(holder: list[Any]) -> Iterator[tuple[str, Any]]:
    """Name and value of each member; a list's have no name."""
    return iter(holder) if isinstance(holder, _Pairs) else (("", value) for value in holder)


def _name_in(key: str, names: frozenset[str]) -> str:
    """The one of ``names`` that ``key`` is like; empty when it is like none."""
    return _known_name(key, names) if len(key) <= ALIKE else ""


@lru_cache(maxsize=1024)
def _known_name(key: str, names: frozenset[str]) -> str:
    found = fold_key(key)
    return found if found in names else ""


def _misplaced(key: str, value: str, mount: PathScope) -> str:
    """The path in the member ``key`` when it is outside the workspace; empty for one inside and for other addresses."""
    value = value[blank.end() :] if (blank := _BLANK.match(value)) else value
    scheme = _FILE.match(value)
    if scheme is None:
        return "" if (key == "uri" and _SCHEME.match(value)) or _holds(mount, value) else value
    path = _path(value[scheme.end() :])
    return "" if path and _holds(mount, path) else path or value


def _path(address: str) -> str:
    """The path in a file's address, read as browsers do, without its "file:"; empty when there is no telling."""
    from urllib.parse import unquote  # here: it is 1 to 4 ms of a start, and such addresses are rare

    if len(address) > 3 * LONGEST:  # decoding costs 60 bytes and more for each escape
        return ""
    place, *rest = _QUERY.split(address.translate(_AS_BROWSERS), maxsplit=1)
    if rest and ".." in unquote(rest[0]):  # a part of the path for some
        return ""
    if place.startswith("//"):
        host, _, place = place[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            return ""
    place = unquote(place)
    return place if place.startswith("/") else f"/{place}"


def _holds(mount: PathScope, path: str) -> bool:
    return mount.holds(path if path.startswith(("/", "~")) else f"{mount.inside}/{path}")


def is_web_address(value: object) -> bool:
    """Whether ``value`` is a plain address that a browser opens: no user name, no letter beyond ASCII in the host."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _check_address(params: Sequence[Part]) -> None:
    """Raise BadFrame unless the user is asked by a form, or to open a plain address of the web."""
    mode, url = alike(params, "mode"), alike(params, "url")
    if (mode is not None and mode.value not in ("form", "url")) or (url is not None and not is_web_address(url.value)):
        raise BadFrame("denied_address")
