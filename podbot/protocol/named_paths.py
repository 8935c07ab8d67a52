"""The paths outside the workspace that a message names. By the names of members: text is not searched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

from podbot.protocol.jsontext import ALIKE, Part, fold_key
from podbot.protocol.path_map import LONGEST, PathScope

_LONGEST_ADDRESS = 3 * LONGEST  # decoding costs 60 bytes and more for each escape
MOST_OWNERS = 4  # objects around a path that may be what it belongs to

Owners = tuple[tuple[str, ...], ...]

_PATHS = frozenset(
    map(
        fold_key,
        # Those of the protocol, and of the tools of Claude, Codex, Gemini, opencode and Cursor.
        (
            *("path", "filePath", "absolutePath", "notebookPath", "oldPath", "newPath", "cwd", "workdir", "uri"),
            *("paths", "filePaths", "dirPath", "directoryPath", "movePath", "targetPath", "sourcePath"),
            *("destinationPath", "workingDirectory", "workingDir", "targetFile", "targetDirectory", "targetNotebook"),
            *("relativeWorkspacePath", "absoluteFilePath", "relativePath"),
        ),
    )
)
# Names that other things have too: a text is a path only if it looks like one, and nothing in an object is.
_PERHAPS = frozenset(
    map(
        fold_key,
        (
            *("file", "files", "fileName", "directory", "directories", "dir", "dirs", "folder", "folders", "root"),
            *("target", "destination", "dest", "dst", "source", "src", "from", "to", "outputFile", "glob"),
        ),
    )
)
_WEAK = _PERHAPS | {"url"}  # of that one only addresses count: a page's own path begins with / as well
_NAMES = _PATHS | _WEAK
_LOOKS_LIKE_PATH = re.compile(
    r"/(?![/*]*+\s)[^\n]*+|~(?:[a-z_][a-z0-9_-]*+)?(?:/[^\n]*+)?|(?:[^\n]*/)?\.\.(?:/[^\n]*+)?|[a-z][a-z0-9+.-]*+:/[^\n]*+",
    re.IGNORECASE | re.ASCII,
)
# Readers of addresses leave out what stands before one, and tabs and line ends in it; in file addresses \\ is /.
_BLANK = re.compile(r"[\s\0-\x20\x7f-\x9f\ufeff]++")
_FILE = re.compile(r"f[\t\n\r]*i[\t\n\r]*l[\t\n\r]*e[\t\n\r]*:", re.IGNORECASE | re.ASCII)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*+):", re.IGNORECASE | re.ASCII)
_WEB = frozenset(("http", "https", "ws", "wss"))
# These name no file, and nothing opens them; and these run what follows.
_OPAQUE = frozenset(("about", "blob", "data", "mailto", "mcp", "memory", "tel", "ui", "urn"))
_ACTS = frozenset(("command", "javascript", "vbscript"))
_QUERY = re.compile("[?#]")
_PIECES = re.compile("[?#&=;,]")
_AS_BROWSERS = str.maketrans("\\", "/", "\t\n\r")


def outside_paths(text: str, part: Part, mount: PathScope, names: frozenset[str] = _NAMES) -> Iterator[str]:
    """The paths outside in members that name some: wherever these stand, at any depth in them, in a second one too.

    ``names``: of such members, as ``fold_key`` has them. The value is read once more, with all members of one name.
    """
    return (path for path, _ in owned_paths(text, part, mount, names))


def owned_paths(
    text: str, part: Part, mount: PathScope, names: frozenset[str], owners: frozenset[str] = frozenset()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """As :func:`outside_paths`; each path with the texts that the objects around it have in members called ``owners``.

    Of the nearest objects that have some, and of each such member the first and the last.
    """
    if text[part.place] not in "{[":
        return
    # Of each object and list that is open: what is left of it, by which name a text in it is a path (empty: none), and
    # whose it is.
    top = _scan_pairs(text, part.place)[0]
    around = [(_inside(top), "", _owners_of(top, owners, ()))]
    while around:
        left, above, whose = around[-1]
        for key, value in left:
            named = (key and _name_in(key, names)) or above
            if named in _WEAK and above not in _WEAK:
                named = above or named
            if not isinstance(value, str):
                if isinstance(value, list):
                    below = "" if named in _WEAK and isinstance(value, _Pairs) else named
                    around.append((_inside(value), below, _owners_of(value, owners, whose)))
                    break
            elif named and (path := _misplaced(named, value, mount)):
                yield path, tuple(chain.from_iterable(whose))
        else:
            around.pop()


def _owners_of(holder: list[Any], names: frozenset[str], above: Owners) -> Owners:
    """``above`` and those of ``holder``."""
    if not names or not isinstance(holder, _Pairs):
        return above
    found: dict[str, list[str]] = {}
    for key, value in holder:
        if isinstance(value, str) and (name := _name_in(key, names)):
            found.setdefault(name, []).append(value)
    own = tuple(dict.fromkeys(text for texts in found.values() for text in (texts[0], texts[-1])))
    return (*above[1 - MOST_OWNERS :], own) if own else above


def texts_of(text: str, part: Part, names: frozenset[str]) -> Iterator[str]:
    """The texts in members called ``names``, at any depth; a second one of the same name, too."""
    around = [_scan_pairs(text, part.place)[0]]
    while around:
        for key, value in _inside(around.pop()):
            if isinstance(value, list):
                around.append(value)
            elif isinstance(value, str) and _name_in(key, names):
                yield value


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
    if key in _PERHAPS and (len(value) > _LONGEST_ADDRESS or "\n" in value or not _LOOKS_LIKE_PATH.fullmatch(value)):
        return ""
    scheme = _FILE.match(value)
    if scheme is not None:
        path = _path(value[scheme.end() :])
        return "" if path and _holds(mount, path) else path or value
    if ":" in value and (found := _SCHEME.match(address := value.translate(_AS_BROWSERS))):
        name, rest = found[1].lower(), address[found.end() :]
        if key == "uri" or key in _WEAK:
            return "" if name in _WEB or name in _OPAQUE or not _leads_out(name, rest, mount) else value
        if rest.startswith("/") and name not in _WEB and name not in _OPAQUE and _leads_out(name, rest, mount):
            return value
    return "" if key == "url" or _holds(mount, value) else value


def _leads_out(scheme: str, rest: str, mount: PathScope) -> bool:
    """Whether an address such as ``vscode://file/etc/x`` or ``idea://open?file=/etc/x`` names a path outside."""
    from urllib.parse import unquote  # here as below

    if scheme in _ACTS or len(rest) > _LONGEST_ADDRESS:
        return True
    place, *others = _PIECES.split(unquote(rest))
    if place.startswith("//"):
        _, slash, place = place[2:].partition("/")
        place = slash + place
    for piece in (place, *others):
        if found := _FILE.match(piece):
            if not _holds(mount, _path(piece[found.end() :]) or "/"):
                return True
        elif (piece.startswith(("/", "~")) or ".." in piece) and not _holds(mount, piece):
            return True
    return False


def _path(address: str) -> str:
    """The path in a file's address, read as browsers do, without its "file:"; empty when there is no telling."""
    from urllib.parse import unquote  # here: it is 1 to 4 ms of a start, and such addresses are rare

    if len(address) > _LONGEST_ADDRESS:
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
