"""Taking secrets out of a protocol frame before it is written down. As good as shapes and names allow, no better."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

HIDDEN = "[redacted]"
SHORTEST = 5  # a shorter value is found in too many words to be a secret
# Whole members: an MCP server's environment and headers are where an editor puts its keys.
_WHOLE = frozenset({"env", "environment", "headers", "httpheaders"})
_NAMES = re.compile(
    r"(?i)api[-_]?key|access[-_]?key|private[-_]?key|token|secret|passw|passphrase|authorization|credential|cookie|bearer"
)
_SHAPES = re.compile(
    r"""
    \b(?:sk|rk|pk)[-_][A-Za-z0-9][A-Za-z0-9_-]{15,}   # OpenAI, Anthropic, Stripe
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{16,} | \bnpm_[A-Za-z0-9]{20,}
    | \bxox[abeprs]-[A-Za-z0-9-]{10,} | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30,} | \bya29\.[\w-]{20,}
    | (?<![\w-])[\w-]{11,}+\.eyJ[\w-]{8,}(?:\.[\w-]*)?   # JSON Web Token; begun anywhere, eyJ-eyJ-... is quadratic
    | (?i:\bbearer|\bbasic)\s+[A-Za-z0-9+/._~=-]{8,}
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)                  # user:password in an address
    """,
    re.VERBOSE | re.DOTALL,
)


class Redactor:
    """``values``: the session's own secrets, wherever they turn up."""

    def __init__(self, values: Iterable[str]) -> None:
        # The longest first: one secret may be part of another.
        found = sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, found))) if found else None

    def frame(self, data: bytes) -> tuple[Any, str] | None:
        """The frame as JSON values, and its redacted text; None for what is not JSON and so cannot be redacted."""
        try:
            value = json.loads(data)
            return value, json.dumps(self._walk(value), ensure_ascii=False, separators=(",", ":"))
        except (ValueError, RecursionError):
            return None

    def text(self, text: str) -> str:
        """``text`` without known secrets and what has the shape of one."""
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        return _SHAPES.sub(HIDDEN, text)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            named = isinstance(value.get("name"), str) and _NAMES.search(value["name"]) is not None
            return {self.text(k): self._member(k, v, hide=named and k == "value") for k, v in value.items()}
        return value

    def _member(self, key: str, value: Any, *, hide: bool) -> Any:
        if hide or key.lower() in _WHOLE or _NAMES.search(key):
            # Counts stay: "totalTokens" is a number, and no number is a secret here.
            return value if value is None or isinstance(value, (bool, int, float)) else HIDDEN
        return self._walk(value)
