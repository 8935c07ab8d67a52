"""What ``podbot ps`` prints: ``--filter``, ``--format``, and a token's state in words. Pure, on the fast path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from podbot.cli.columns import Column, laid_out
from podbot.config.checks import shown
from podbot.config.schema import nearest
from podbot.errors import InvalidValue
from podbot.tokens.token_info import TokenInfo
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.management.manage import SessionInfo

Render = Callable[[list["SessionInfo"]], str]

FIELDS = (
    "session", "id", "agent", "mode", "workspace", "path", "image", "state", "created", "orphan", "detached",
)  # fmt: skip
"""Those of SessionInfo that a template can name."""
_OTHER_NAMES = {"name": "session", "names": "session", "status": "state", "createdat": "created"}  # as podman's
FILTERS = ("name", "agent", "mode", "state", "path", "image", "orphan", "detached")
"""The keys of ``--filter``."""
_PLACE = re.compile(r"\{\{\s*\.(\w+)\s*\}\}")
_ESCAPES = {r"\t": "\t", r"\n": "\n", r"\\": "\\"}
_ESCAPE = re.compile(r"\\[tn\\]")


def chosen(found: Iterable[SessionInfo], filters: Sequence[str]) -> list[SessionInfo]:
    """The sessions that fit: for each key of ``filters`` one of its values. Raises InvalidValue.

    ``name`` and ``path`` fit if they contain the value; the others must be equal to it.
    """
    wanted: dict[str, list[str]] = {}
    for text in filters:
        key, equals, value = text.partition("=")
        key = {"status": "state", "session": "name", "workspace": "path"}.get(key.lower(), key.lower())
        if not equals or key not in FILTERS:
            reason = f"a filter is written KEY=VALUE, with one of {', '.join(FILTERS)}"
            raise _invalid("filter", text, reason, "Write one, such as state=running.")
        wanted.setdefault(key, []).append(value)
    return [info for info in found if all(_fits(info, key, values) for key, values in wanted.items())]


def _fits(info: SessionInfo, key: str, values: Sequence[str]) -> bool:
    text = _text(info, "session" if key == "name" else key)
    return any(value in text if key in ("name", "path") else value.lower() == text.lower() for value in values)


def renderer(template: str) -> Render:
    """What ``--format`` prints: a line for each session, or with ``table`` before the template, columns with titles.

    Raises InvalidValue for an unknown field, and for a function of Go's templates.
    """
    words = template.removeprefix("table ")
    as_table = words != template
    text = _ESCAPE.sub(lambda found: _ESCAPES[found[0]], words)
    for name in _PLACE.findall(text):
        _field(name, template)
    if "{{" in _PLACE.sub("", text):
        reason = f"only fields can stand in braces: {', '.join(f'{{{{.{field}}}}}' for field in FIELDS[:2])} and so on"
        raise _invalid("format", template, reason, "All fields as JSON: --format json.")

    def filled(line: str, info: SessionInfo) -> str:
        return _PLACE.sub(lambda found: printable(_text(info, _field(found[1], template))), line)

    if not as_table:
        return lambda found: "".join(filled(text, info) + "\n" for info in found)
    columns = text.split("\t")
    titles = [_PLACE.sub(lambda found: _field(found[1], template).upper(), column) for column in columns]
    return lambda found: laid_out(
        [
            Column(title, tuple(filled(line, info) for info in found))
            for title, line in zip(titles, columns, strict=True)
        ],
        None,
    )


def _field(name: str, template: str) -> str:
    lower = name.lower()
    found = _OTHER_NAMES.get(lower, lower)
    if found not in FIELDS:
        near = nearest(lower, [*FIELDS, *_OTHER_NAMES])
        hint = f" Did you mean {{{{.{near}}}}}?" if near else ""
        raise _invalid(
            "format", template, f"there is no field {name[:40]}; there are {', '.join(FIELDS)}", hint.strip()
        )
    return found


def _text(info: SessionInfo, field: str) -> str:
    value: Any = getattr(info, field)
    if field == "created":
        import time

        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _invalid(option: str, value: str, reason: str, hint: str = "") -> InvalidValue:
    return InvalidValue(field=option, origin=f"flag --{option}", reason=f"{shown(value)}: {reason}", hint=hint)


def token_words(token: TokenInfo | None, now: float) -> str:
    """A text such as "8m old, renews in 46m"; empty without a token."""
    if token is None:
        return ""
    expired = token.expires_at is not None and token.expires_at <= now
    if token.error is not None:
        return f"{'expired' if expired else 'failing'}: {token.error}"
    if expired and token.expires_at is not None:
        return f"expired {span(now - token.expires_at)} ago"
    words = f"{span(now - token.minted_at)} old" if token.minted_at is not None else "there"
    if token.holder is None:
        return f"{words}, not renewed"
    if token.next_renewal is None:
        return words
    due = token.next_renewal - now
    return f"{words}, renews in {span(due)}" if due > 0 else f"{words}, renews now"


def span(seconds: float) -> str:
    """A duration in its largest unit: 40s, 8m, 3h, 2d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
