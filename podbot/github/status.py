"""``token.status.json``: the state of a session's token, for ``podbot ps`` and for the next writer of the token."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from podbot.atomic import replace_file
from podbot.errors import PodbotError
from podbot.github.grant import read_record
from podbot.github.schedule import Term
from podbot.visible_text import printable

NAME = "token.status.json"
_LONGEST = 200

Kind = Literal["session", "daemon", "once"]


class Holder(NamedTuple):
    """The process that wrote the status last."""

    pid: int
    kind: str


@dataclass(frozen=True)
class TokenStatus:
    """Times are in seconds since the epoch, except ``minted_uptime``, which is since boot. Contains no secret.

    ``failures``: attempts in a row that failed; ``error``: the last one's short text, None when there are none.
    ``grant``: the :attr:`Grant.digest` that the token was minted for.
    """

    expires_at: float | None = None
    minted_at: float | None = None
    minted_uptime: float | None = None
    next_renewal: float | None = None
    failures: int = 0
    error: str | None = None
    grant: str = ""
    holder: Holder | None = None

    @property
    def term(self) -> Term | None:
        """The token's life; None when there is no token."""
        if self.expires_at is None or self.minted_at is None or self.minted_uptime is None:
            return None
        return Term(self.expires_at, self.minted_at, self.minted_uptime)

    def store(self, session_dir: str) -> None:
        """Write it into the session's directory. Raises DiskFull, PathError."""
        record = dataclasses.asdict(self) | {"holder": self.holder._asdict() if self.holder else None}
        replace_file(status_path(session_dir), json.dumps(record).encode(), operation="write the token's status")

    @classmethod
    def load(cls, session_dir: str) -> TokenStatus | None:
        """The session's status; None if it is missing or unreadable."""
        try:
            record = read_record(status_path(session_dir))
        except OSError:
            return None
        return _from(record) if record else None


def status_path(session_dir: str) -> str:
    """The path of a session's status."""
    return os.path.join(session_dir, NAME)


def short_error(exc: BaseException) -> str:
    """An error in one short line. For foreign exceptions only the class, because their text may contain a secret."""
    text = exc.message if isinstance(exc, PodbotError) else f"unexpected {type(exc).__name__}"
    line = printable(text, instead=" ")
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _from(record: dict[str, Any]) -> TokenStatus:
    failures, error, grant = record.get("failures"), record.get("error"), record.get("grant")
    return TokenStatus(
        expires_at=_time(record.get("expires_at")),
        minted_at=_time(record.get("minted_at")),
        minted_uptime=_time(record.get("minted_uptime")),
        next_renewal=_time(record.get("next_renewal")),
        failures=failures if type(failures) is int and failures >= 0 else 0,
        error=error[:_LONGEST] if isinstance(error, str) else None,
        grant=grant if isinstance(grant, str) else "",
        holder=_holder(record.get("holder")),
    )


def _time(value: Any) -> float | None:
    """A finite number. Python's JSON also accepts NaN, Infinity, and integers of any size."""
    if type(value) not in (int, float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _holder(value: Any) -> Holder | None:
    if not isinstance(value, dict):
        return None
    pid, kind = value.get("pid"), value.get("kind")
    return Holder(pid, kind) if type(pid) is int and pid > 0 and isinstance(kind, str) else None
