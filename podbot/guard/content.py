"""Reduces a file's content to a short value that changes when the part that acts changes. Pure.

Parsers are imported only for such a file, because the import takes longer than most scans.
"""

from __future__ import annotations

from _blake2 import blake2b  # all that hashlib has of it, without OpenSSL

from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

MOST = 256 << 10
"""Bytes of a file that are read at most."""

_LOCK = 4 << 20
_TEXT, _TOML, _ONE_TOML = 8 << 20, 256 << 10, 64 << 10
# tomllib's time and memory grow with the square of a key's parts, or worse: 16 KB of `a.a.a…` took 0.7 s, and 200 KB
# 24 GB (Python 3.11). Each key pays for the parts of its table's name, too.
_PARTS = 1 << 20


# Of parsers, of their results' unusual types, and of writing what they accept: TOML has numbers of any length.
_UNPARSABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, MemoryError)
PARTIAL = frozenset((
    "node.scripts", "php.composer", "python.project", "rust.crate", "locks", "requirements", "go.mod",
    "python.version",
))  # fmt: skip
"""Rules for files of which only a part acts."""


class Budget:
    """How much may still be parsed in one scan. What exceeds it is compared byte by byte.

    ``text``: bytes of JSON and lock files; ``toml``: bytes of TOML, of which tomllib reads 0.2 to 2 MB a second;
    ``parts``: the sum of the squares of the parts of each line of TOML.
    """

    def __init__(self, text: int = _TEXT, toml: int = _TOML, parts: int = _PARTS) -> None:
        self.text, self.toml, self.parts = text, toml, parts

    def allows(self, data: bytes) -> bool:
        """Count ``data``; false when it is not to be parsed."""
        if len(data) > self.text:
            return False
        self.text -= len(data)
        return True

    def allows_toml(self, data: bytes) -> bool:
        """Count ``data``; false when it is not to be parsed."""
        if len(data) > min(self.toml, _ONE_TOML):
            return False
        parts = table = 0
        for line in data.splitlines():
            own = line.count(b".") + 1
            if line.lstrip().startswith(b"["):
                table = own
            parts += (table + own) ** 2
        if parts > self.parts:
            return False
        self.toml -= len(data)
        self.parts -= parts
        return True


def most(rule: str) -> int:
    """How many bytes of a file of that rule are read."""
    return _LOCK if rule == "locks" else MOST


def value(rule: str, name: str, data: bytes, budget: Budget) -> str:
    """``data`` is the whole file. Empty if nothing in it acts: of some files only a part does.

    Where that part cannot be determined, or not within the budget, every byte counts.
    """
    if rule in PARTIAL:
        try:
            part = _part(rule, name, data, budget)
            if part is not None:
                return digest(_written(part)) if part else ""
        except _UNPARSABLE:
            pass
    return digest(data)


def _part(rule: str, name: str, data: bytes, budget: Budget) -> dict[str, Any] | list[str] | None:
    """What acts; None if every byte does."""
    toml = rule in ("python.project", "rust.crate")
    if not (budget.allows_toml(data) if toml else budget.allows(data)):
        return None
    if rule in ("locks", "requirements", "go.mod", "python.version"):
        from podbot.guard.references import references

        return references(rule, name, data)
    from podbot.guard.manifests import part_of

    return part_of(rule, data)


def _written(part: dict[str, Any] | list[str]) -> bytes:
    import json

    return json.dumps(part, sort_keys=True, default=str).encode()


def digest(data: bytes) -> str:
    """A hash of sixteen bytes, as hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest()
