"""What is kept of a login file, and what a session may change of it. Pure: bytes in, bytes or a refusal out.

The file is written by an agent, which is not trusted, and read by the agents of later sessions. Only the fields that
the agent's file in ``podbot.agents`` lists are taken, and only as plain values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from podbot.agents.definition import OwnLogin

LARGEST = 1 << 18  # bytes of a login file; logins of a dozen providers take 30 KiB
_LONGEST = 1 << 15  # characters of one value; a JSON Web Token has 1,000 to 4,000
_MOST = 500  # fields
_DEPTH = 3
_LARGEST_NUMBER = (1 << 53) - 1  # that every reader of JSON has exactly

Path = tuple[str, ...]
Fields = dict[Path, Any]


class Refused(ValueError):
    """A login file that is not taken. ``another``: it contains another login, which the session keeps."""

    def __init__(self, reason: str, *, another: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.another = reason, another


def accepted(spec: OwnLogin, found: bytes) -> bytes:
    """The login in a file that the agent's own login flow wrote. Raises Refused."""
    fields = _fields(spec, found)
    if not any(isinstance(fields.get(path), str) and fields[path] for path in _matching(spec.tokens, fields)):
        raise Refused("it contains no login")
    return _rendered(fields)


def without_refresh(spec: OwnLogin, found: bytes) -> bytes:
    """The login in ``found``, which ends with its access token: the token that renews it is empty. Raises Refused.

    Codex does not read a file in which that token is missing (0.169).
    """
    fields = _fields(spec, found)
    for path in list(_matching((spec.refresh,), fields)):
        fields[path] = ""
    return accepted(spec, _rendered(fields))


def tokens_of(spec: OwnLogin, login: bytes) -> bytes:
    """What makes it another login than one before: its tokens and its account, in a fixed order. Raises Refused."""
    fields = _fields(spec, login)
    found = [[list(path), fields[path]] for path in sorted(fields) if _is((*spec.tokens, *spec.fixed), path)]
    return json.dumps(found).encode()


def refresh_token(spec: OwnLogin, found: bytes) -> str:
    """The token in ``found`` that renews the login; empty if there is none. Raises Refused for no login file."""
    fields = _fields(spec, found)
    return next((str(fields[path]) for path in _matching((spec.refresh,), fields) if fields[path]), "")


def renewed(spec: OwnLogin, stored: bytes, found: bytes, *, base: bytes | None = None) -> bytes:
    """``stored`` with the tokens that a session renewed in ``found``. Raises Refused.

    A session can add no provider and no key, and change no field that the agent's list calls fixed. Tokens of another
    account look like renewed ones, unless such a field names the account. A login with an empty token is refused,
    because agents empty a copy whose token was renewed elsewhere. ``base``: what the session was given, if that is not
    ``stored``; what it did not change is not taken.
    """
    kept, new = _fields(spec, stored), _fields(spec, found)
    given = kept if base is None else _fields(spec, base)
    groups = {path[:1] for path in kept if len(path) > 1}
    for path in kept:
        if path[:1] in groups and not any(other[:1] == path[:1] for other in new):
            continue  # the session logged out of this provider, which concerns it alone
        if _is(spec.fixed, path) and new.get(path) != kept[path]:
            raise Refused("it contains another login", another=True)
        if _is(spec.tokens, path) and kept[path] and not new.get(path, kept[path]):
            raise Refused("it contains no login any more")
    unchanged = object()
    for path, value in new.items():
        known = path in kept or (path[:1] in groups and not _is(spec.fixed, path))
        if known and value != given.get(path, unchanged):
            kept[path] = value
    return _rendered(kept)


def _fields(spec: OwnLogin, data: bytes) -> Fields:
    """The listed fields of a document. Raises Refused for one that is no login file."""
    if len(data) > LARGEST:
        raise Refused(f"it is larger than {LARGEST >> 10} KiB")
    try:
        document = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refused("it is not JSON") from None
    if not isinstance(document, dict):
        raise Refused("it is not a JSON object")
    fields = {path: value for path, value in _leaves(document, ()) if _is(spec.kept, path)}
    if len(fields) > _MOST:
        raise Refused(f"it has more than {_MOST} fields")
    return fields


def _no_number(name: str) -> None:
    """For NaN and Infinity, which Python reads and writes, and JSON does not have."""
    raise ValueError(name)


def _leaves(document: Mapping[str, Any], above: Path) -> Iterator[tuple[Path, Any]]:
    for name, value in document.items():
        path = (*above, name)
        if isinstance(value, dict):
            if len(path) < _DEPTH:
                yield from _leaves(value, path)
        elif _is_plain(value) or (isinstance(value, list) and len(value) <= _MOST and all(map(_is_word, value))):
            yield path, value


def _is_plain(value: object) -> bool:
    if isinstance(value, int | float):  # also a bool
        return abs(value) <= _LARGEST_NUMBER  # 1e999 is infinite
    return value is None or _is_word(value)


def _is_word(value: object) -> bool:
    """One printable line, as every token is."""
    return isinstance(value, str) and len(value) <= _LONGEST and value.isprintable()


def _matching(patterns: tuple[str, ...], fields: Fields) -> Iterator[Path]:
    return (path for path in fields if _is(patterns, path))


def _is(patterns: tuple[str, ...], path: Path) -> bool:
    """Whether a pattern matches: names separated by dots, of which ``*`` is any one."""
    return any(_matches(tuple(pattern.split(".")), path) for pattern in patterns)


def _matches(words: Path, path: Path) -> bool:
    return len(words) == len(path) and all(word in ("*", name) for word, name in zip(words, path, strict=True))


def _rendered(fields: Fields) -> bytes:
    document: dict[str, Any] = {}
    for path, value in fields.items():
        at = document
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = value
    return json.dumps(document, indent=2, allow_nan=False).encode()
