"""What a snapshot has: entries by their paths, as a text that is kept under its digest."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from podbot.tools.results import Kind

Path = tuple[str, ...]
_KINDS = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Kept:
    """One entry. ``digest``: of a file's content; ``target``: of a link; ``stamp``: see Entry."""

    kind: Kind
    size: int
    bits: int
    digest: str = ""
    target: bytes = b""
    stamp: str = ""


def manifest_text(entries: Mapping[Path, Kept]) -> bytes:
    """The text. The same entries have the same one."""
    rows = [
        ["/".join(path), one.kind, one.size, one.bits, one.digest, _text(one.target), one.stamp]
        for path, one in sorted(entries.items())
    ]
    return json.dumps(rows, separators=(",", ":")).encode("ascii")


def entries_from(text: bytes) -> dict[Path, Kept]:
    """The entries of a text that :func:`manifest_text` made, as its digest shows. Raises ValueError."""
    rows: list[list[Any]] = json.loads(text)
    return {
        tuple(path.split("/")): Kept(_kind(kind), size, bits, digest, _data(target), stamp)
        for path, kind, size, bits, digest, target, stamp in rows
    }


def _kind(value: str) -> Kind:
    for kind in _KINDS:
        if value == kind:
            return kind  # type: ignore[no-any-return]
    raise ValueError(f"no entry is a {value}")


def _text(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _data(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
