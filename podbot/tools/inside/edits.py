"""Replaces text in the content of a file. Pure: bytes in, bytes out."""

from __future__ import annotations

from podbot.tools.inside.refusals import Refused


def replaced(data: bytes, old: str, new: str, limit: int, *, every: bool) -> tuple[bytes, int]:
    """``data`` with ``old`` replaced by ``new``, and how often. All other bytes stay as they are.

    In a file whose lines all end in ``\\r\\n``, a ``\\n`` of ``old`` and ``new`` means that, unless one of the two has
    a ``\\r``. Matches do not overlap. ``every``: replace more than one match. ``limit``: bytes of the result.
    Raises Refused.
    """
    if not old:
        raise Refused("no_match")
    if "\r" not in old + new and _only_crlf(data):
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    try:
        data.decode("utf-8")
        before, after = old.encode("utf-8"), new.encode("utf-8")
    except UnicodeError:
        raise Refused("not_text") from None
    count = data.count(before)
    if not count:
        raise Refused("no_match")
    if count > 1 and not every:
        raise Refused("several_matches", count=count)
    if len(data) + count * (len(after) - len(before)) > limit:
        raise Refused("too_large", what="file", limit=limit)
    return data.replace(before, after), count


def _only_crlf(data: bytes) -> bool:
    ends = data.count(b"\n")
    return ends > 0 and ends == data.count(b"\r\n")
