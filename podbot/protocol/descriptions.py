"""What Codex says of a command for clients to show instead of it: each description is compared with the command. Pure.

Codex (0.169) describes a plain command as a file that is read, a directory that is listed or a search, and leaves out
those that change nothing. A description has a ``type``, the command, and, of what the command names, the last part of a
file's path (``name``), a ``path`` that is shortened or absolute, and what is searched for (``query``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from posixpath import join, normpath
from typing import Any, NamedTuple

from podbot.protocol.jsontext import fold_key
from podbot.protocol.path_map import LONGEST as LONGEST_PATH
from podbot.protocol.plain_commands import LONGEST, SYSTEM, Command, Words, plain_commands, unmarked

MEMBERS = ("commandActions", "parsedCmd")
MOST = 1000  # descriptions, decisions, or words of a permission, that are compared with the command; more are marked

_LONGEST_PLACE = 1024  # characters of a path in a command that is resolved
_HOME = "/root"  # of the sandbox
_UNKNOWN = "\0"  # a directory in which no path is
_NOT_SHOWN = frozenset({"build", "dist", "node_modules", "src"})  # by which Codex shortens no path
# What Codex leaves out of its descriptions and what changes nothing, by the form of each argument. It also leaves out
# tee and xargs, and sed, awk and sort in any form, which can write files and run programs.
_ANY = re.compile(r".*", re.DOTALL)
_NUMBERS = re.compile(r"-[a-z]?[+-]?[0-9]*|[+-]?[0-9]+")
_QUIET = {
    **dict.fromkeys(("cd", "echo", "printf", "true", "yes", "y", "no", "n", "wc", "tr", "cut", "column", "nl"), _ANY),
    **dict.fromkeys(("head", "tail"), _NUMBERS),
    "sort": re.compile(r"-[bdfghiMnrRsuVzk0-9.,]+|-t.?|[0-9.,]+[bdfginr]*"),
    "uniq": re.compile(r"-[cdDiuz]+"),
    "sed": re.compile(
        r"-[nErsz]+|-e|[0-9]+(?:,(?:[0-9]+|\$))?[pd]|s([/|#,@:])(?:(?!\1).)*\1(?:(?!\1).)*\1[gIip0-9]*", re.DOTALL
    ),
    "awk": re.compile(r"-F.{0,3}|[,:;|\t ]|\{\s*print[\s$\w,.]*\}", re.DOTALL),
}
# By the type of a description, the programs that do what it says: by name, or with a subcommand.
_LISTS = ("ls", "eza", "exa", "tree", "du", "rg", "fd", "fdfind", "find", "git ls-files")
_DOES = {
    "read": frozenset(("cat", "bat", "batcat", "less", "more", "nl", "head", "tail")),
    "listfiles": frozenset(_LISTS),
    "search": frozenset(("rg", "rga", "grep", "egrep", "fgrep", "ag", "ack", "pt", "fd", "fdfind", "find", "git grep")),
}
# Words by which these do more than that.
_FD_ACTS = re.compile(r"-[a-zA-Z]*[xX].*|--exec.*", re.DOTALL)
_ACTS = {
    "find": re.compile(r"-(?:delete|exec|execdir|ok|okdir|fls|fprint|fprint0|fprintf)"),
    **dict.fromkeys(("fd", "fdfind"), _FD_ACTS),
    **dict.fromkeys(("rg", "rga"), re.compile(r"--pre(?:=.*)?", re.DOTALL)),
}


class _Said(NamedTuple):
    """What descriptions may say of some plain commands: their words, the names of files in them, and their paths."""

    words: frozenset[str]
    names: frozenset[str]
    paths: frozenset[str]

    def has_path(self, path: str) -> bool:
        return path in self.names or (len(path) <= LONGEST_PATH and normpath(path) in self.paths)


def misdescribed(params: Mapping[str, Any], command: Command | None) -> Words | None:
    """What is wrong with the descriptions in a question: None if nothing is.

    Empty: one is of another command, or says something else of it. Else the words of a plain command that none is of.
    """
    actions: list[object] = []
    for name in MEMBERS:
        given = params.get(name)
        if given is not None and not isinstance(given, list):
            return ()
        actions += given or []
    if not actions:
        return None
    if command is None or len(actions) > MOST:
        return ()
    every = frozenset(command.parts)
    places = _places(command, params.get("cwd"))
    known: dict[frozenset[Words], _Said] = {}
    for action in actions:
        parts = _described(action, command, every)
        if parts is None:
            return ()
        if parts not in known:
            known[parts] = _said_of(parts or frozenset(((*command.words(),),)), places)
        if not _is_right(action, parts, known[parts]):
            return ()
    described = frozenset().union(*known)
    return next((part for part in command.parts if part not in described and not _is_quiet(part)), None)


def _described(action: object, command: Command, every: frozenset[Words]) -> frozenset[Words] | None:
    """The plain commands that a description is of; None if it is of another command."""
    found: set[frozenset[Words]] = set()
    for text in (*values(action, "command"), *values(action, "cmd")):
        if not isinstance(text, str) or not text.strip():
            return None
        if command.is_all(text):
            found.add(every)
            continue
        parts = plain_commands(text[:LONGEST])
        if len(parts) != 1 or parts[0] not in every:
            return None
        found.add(frozenset(parts))
    return frozenset().union(*found) if found else None


def _places(command: Command, cwd: object) -> dict[Words, list[str]]:
    """The directories in which each plain command runs: from the root and, as Codex shows some, from the first one."""
    around = [cwd if isinstance(cwd, str) else _UNKNOWN, "."]
    found: dict[Words, list[str]] = {}
    for part in command.parts or ((*command.words(),),):
        found.setdefault(part, []).extend(around)
        if part[:1] == ("cd",):
            around = [_joined(place, part[-1]) for place in around]
    return found


def _joined(place: str, word: str) -> str:
    """The path ``word`` in the directory ``place``."""
    return normpath(join(place, word)) if len(place) + len(word) <= _LONGEST_PLACE else _UNKNOWN


def _said_of(parts: frozenset[Words], places: Mapping[Words, Sequence[str]]) -> _Said:
    words = frozenset(word for part in parts for word in part)
    names = frozenset(name for word in words for name in (word, word.rstrip("/"), _shortened(word)))
    paths = {_joined(place, word) for part in parts for place in dict.fromkeys(places[part]) for word in part}
    paths |= {_joined(_HOME, word[2:]) for word in words if word.startswith("~/")}
    return _Said(words, names, frozenset(paths))


def _is_right(action: object, parts: frozenset[Words], said: _Said) -> bool:
    """Whether what a description says of the command is in it."""
    kinds, names, paths, queries = (values(action, name) for name in ("type", "name", "path", "query"))
    if not all(isinstance(each, str) for each in (*kinds, *names, *paths, *queries)):
        return False
    return (
        all(unmarked(name) in said.names for name in names)
        and all(unmarked(query) in said.words for query in queries)
        and all(said.has_path(unmarked(path)) for path in paths)
        and all(_does(parts, fold_key(kind[:100])) for kind in kinds)
    )


def _does(parts: frozenset[Words], kind: str) -> bool:
    """Whether these commands do what a type of description says. Of another type than the three there is no telling."""
    programs = _DOES.get(kind)
    if programs is None:
        return True
    return bool(parts) and all(_is_quiet(part) or _is_one_of(part, programs, kind) for part in parts)


def _is_one_of(part: Words, programs: frozenset[str], kind: str) -> bool:
    directory, slash, name = part[0].rpartition("/")
    if slash and directory not in SYSTEM:
        return False
    if kind == "read" and name in ("sed", "awk"):  # a form that only prints, and the file
        prints = _is_quiet((name, *part[1:-1])) and not all(word.startswith("-") for word in part[1:-1])
        return prints and not part[-1].startswith("-")
    if name not in programs and " ".join((name, *part[1:2])) not in programs:
        return False
    acts = _ACTS.get(name)
    return acts is None or not any(map(acts.fullmatch, part))


def _is_quiet(words: Words) -> bool:
    """Whether a description may leave out this command: it prints, or changes what others print."""
    form = _QUIET.get(words[0])
    return form is not None and all(form.fullmatch(word) for word in words[1:])


def _shortened(word: str) -> str:
    """How Codex shows the path ``word``: its last part that is not the name of every project's."""
    at = len(word)
    while at > 0:
        start = word.rfind("/", 0, at)
        part = word[start + 1 : at]
        if part and part not in _NOT_SHOWN:
            return part
        at = start
    return word


def values(holder: object, name: str) -> list[Any]:
    """Each member that some client may read as ``name``, except those that are null."""
    if not isinstance(holder, dict):
        return []
    wanted = fold_key(name)
    return [value for key, value in holder.items() if fold_key(key) == wanted and value is not None]
