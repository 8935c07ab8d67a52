"""What an agent would log in with, judged from the files and variables that it reads itself. Pure; shows no secret."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from podbot.frozen import Frozen

State = Literal["usable", "expired", "blank", "unreadable", "key", "cloud", "none"]
LoginFiles = Mapping[str, bytes | str]  # name -> content, or the reason why there is none; a missing file is not in it

LARGEST = 1 << 18  # bytes of a file that is judged
_TRUE = ("1", "true", "yes", "on")
_YEAR_9999 = 253402300799.0  # seconds since the epoch


class LoginState(Frozen):
    """A login. ``where``: the name of the file or variable with it. ``at``: seconds since the epoch, at which a usable
    one ends, or an expired one ended; None: it is not known, or never. ``renews``: it has a token that renews it.

    ``usable``: an account's login. ``key``: a key or a token in a variable or file. ``cloud``: the login is another
    program's or provider's. ``blank``: a file without a token. ``unreadable``: ``reason`` says why. ``none``: nothing.
    """

    state: State = "none"
    where: str = ""
    at: float | None = None
    renews: bool = False
    reason: str = ""

    @property
    def works(self) -> bool:
        """Whether the agent can try to use it."""
        return self.state in ("usable", "key", "cloud")

    def described(self) -> dict[str, Any]:
        """Plain values; ``at`` in ISO 8601, UTC."""
        at = iso(self.at) if self.at is not None else None
        return {
            "state": self.state, "where": self.where, "at": at, "renews": self.renews, "reason": self.reason,
        }  # fmt: skip


NONE = LoginState()


class Unreadable(ValueError):
    """A file that is not what its agent writes; the message says why, without its content."""


def iso(seconds: float) -> str:
    """A time in ISO 8601, UTC, such as ``2026-08-01T12:00:00Z``."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(max(0.0, min(seconds, _YEAR_9999)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def document(content: bytes | str) -> dict[str, Any]:
    """The JSON object in a file. Raises Unreadable."""
    if isinstance(content, str):
        raise Unreadable(content)
    if len(content) > LARGEST:
        raise Unreadable(f"it is larger than {LARGEST >> 10} KiB")
    if not content.strip():
        return {}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON; it may have been cut off") from None
    if not isinstance(found, dict):
        raise Unreadable("it is not a JSON object")
    return found


def is_filled(value: object) -> bool:
    """Whether it is a token or key: a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def is_on(value: object) -> bool:
    """Whether a variable that selects something does."""
    return isinstance(value, str) and value.strip().lower() in _TRUE


def first(names: Iterable[str], env: Mapping[str, Any]) -> str | None:
    """The first variable that is not blank."""
    return next((name for name in names if is_filled(env.get(name))), None)


def seconds(value: object, unit: float = 1.0) -> float | None:
    """A time in a file, of which ``unit`` make a second; None if it has none, or one that is none."""
    # Not divided before the comparison: an integer of a token can be too large for that.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _YEAR_9999 * unit:
        return None
    return value / unit


def jwt_end(token: str) -> float | None:
    """When a JSON Web Token ends; None if it does not say so, or is another kind of token. No signature is checked."""
    part = token.split(".", 2)[1:2]
    if not part or len(token) > LARGEST:
        return None
    import base64

    try:
        claims = json.loads(base64.urlsafe_b64decode(part[0] + "=" * (-len(part[0]) % 4)))
    except (ValueError, RecursionError):
        return None
    return seconds(claims.get("exp")) if isinstance(claims, dict) else None


def account(
    where: str, now: float, *, access: object, refresh: object, end: float | None, last: float | None = None
) -> LoginState:
    """An account's login with a token for ``access`` until ``end``, and one for ``refresh`` until ``last``."""
    if is_filled(refresh) and (last is None or last > now):
        return LoginState("usable", where, last, renews=True)
    if not is_filled(access):
        return LoginState("blank", where)
    if end is not None and end <= now:
        return LoginState("expired", where, max(end, last or 0.0))
    return LoginState("usable", where, end)
