"""agent -> client: what an agent asks the user. Text that could show something else than it says is marked.

Nothing is taken away: the question reaches the user, with escapes for characters that reorder, hide or overwrite text,
and with podbot's words in front of what contradicts itself or lies elsewhere than one may think.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since 3.0, not in the stubs

from podbot.protocol.jsontext import ALIKE, TOKEN, BadFrame, Part, alike, elements, likeness, members
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
    map(likeness, ("path", "filePath", "absolutePath", "notebookPath", "oldPath", "newPath", "cwd", "workdir", "uri"))
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


def question_cuts(message: Message, mount: PathScope | None) -> Cuts:
    """What to change in a question to the user. Raises BadFrame for what is not to be asked."""
    params = message.fields.get("params")
    if params is None:
        return []
    cuts: Cuts = list(_escapes(message.text, params.place, params.end))
    if not isinstance(params.value, dict):
        raise BadFrame("bad_params")
    parts, _ = members(message.text, params.place)
    if message.method == "elicitation/create":
        _check_address(parts)
    else:
        cuts += _option_cuts(message.text, parts) + _place_cuts(message.text, params, parts, mount)
    return cuts


def update_cuts(message: Message) -> Cuts:
    """What to change in an update with a tool call: its title is what a later question may show. Raises BadFrame."""
    place = message.fields.get("params")
    for name in ("update", "title"):
        if place is None or not isinstance(place.value, dict):
            return []
        place = alike(members(message.text, place.place)[0], name)
    return [] if place is None else list(_escapes(message.text, place.place, place.end))


def visible(text: str) -> str:
    """``text`` with the same characters as escapes."""
    return _IS_HIDDEN.sub(lambda found: _escape(found[0]), text)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _escapes(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """One cut for each character that is to be seen. Outside strings JSON has none of the candidates."""
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
                cuts += _put(name, prefix_of(name.value, None if kind is None else kind.value))
    return cuts


def _place_cuts(text: str, params: Part, parts: Sequence[Part], mount: PathScope | None) -> Cuts:
    """Podbot's words in front of the title of a question that names paths outside the workspace."""
    outside = [] if mount is None else list(dict.fromkeys(_outside(text, params, mount)))
    if not outside:
        return []
    named = ", ".join(_on_one_line(path)[:LONGEST_PATH] for path in outside[:MOST_PATHS])
    more = f" and {len(outside) - MOST_PATHS} more" if len(outside) > MOST_PATHS else ""
    marker = f"[podbot: outside the workspace: {named}{more}] "
    cuts = _titled(text, parts, marker)
    call = alike(parts, "toolCall")
    if call is not None and isinstance(call.value, dict):
        inside, _ = members(text, call.place)
        found = _titled(text, inside, marker)
        if not found and alike(inside, "title") is None:  # ACP 1 lets it out when it has not changed
            member = f'"title":{json.dumps(marker.strip())}' + ("," if inside else "")
            found = [(call.place + 1, call.place + 1, member)]
        cuts += found
    return cuts


def _on_one_line(path: str) -> str:
    return visible(path).replace("\n", "\\n").replace("\t", "\\t")


def _titled(text: str, parts: Sequence[Part], marker: str) -> Cuts:
    title = alike(parts, "title")
    if title is None:
        return []
    if title.value is None:
        return [(title.place, title.end, json.dumps(marker.strip()))]
    return _put(title, marker) if _is_text(text, title) else []


def _put(part: Part, marker: str) -> Cuts:
    """``marker`` at the beginning of a string, unless it stands there."""
    if not marker or part.value.startswith(marker.strip()):
        return []
    return [(part.place + 1, part.place + 1, json.dumps(marker)[1:-1])]


def _is_text(text: str, part: Part) -> bool:
    return text[part.place] == '"'  # not isinstance: the scanner keeps numbers as text


def _outside(text: str, params: Part, mount: PathScope) -> Iterator[str]:
    """The paths outside in members that name some: wherever these stand, at any depth in them, in a second one too."""
    named = ""  # by which name the next value is a path; empty: it is none
    around: list[str] = []  # the same of each object and list that is open
    for found in TOKEN.finditer(text, params.place, params.end):
        piece = found[0]
        if piece[0] != '"':
            if piece in "[{":
                around.append(named)
            else:
                named = around.pop()
        elif found[1]:
            key = scanstring(piece, 1, True)[0]
            key = likeness(key) if len(key) <= ALIKE else ""
            named = key if key in _PATHS else around[-1]
        elif named and (path := _misplaced(named, scanstring(piece, 1, True)[0], mount)):
            yield path


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
