"""How an answer of a worker is taken, before anything of it is believed."""

from __future__ import annotations

import pytest

from podbot.tools.answers import Lie, message_from


def test_an_object_of_json_is_taken() -> None:
    assert message_from(b'{"id": 1, "ok": {"a": "\\u00e9"}}') == {"id": 1, "ok": {"a": "\u00e9"}}


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"{", b"\xff{}", b'{"a": "\xff"}', b"[" * 100_000])
def test_anything_else_is_a_lie(data: bytes) -> None:
    with pytest.raises(Lie):
        message_from(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
def test_a_large_structure_is_a_lie_in_every_encoding(encoding: str) -> None:
    """U+2261 is a quotation mark's byte in UTF-16, behind which everything would count as text."""
    text = '{"a": "\u2261", "b": [' + ",".join(["[]"] * 200_000) + "]}"
    with pytest.raises(Lie):
        message_from(text.encode(encoding))
