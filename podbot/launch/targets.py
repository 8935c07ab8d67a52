"""Checks mount targets inside a sandbox, and whether a path can be shown. Pure."""

from __future__ import annotations

import re

from podbot.errors import MountRefused
from podbot.launch.refused_paths import refusal, reserved_targets

_HINT = "Choose another target inside the sandbox."
# C0 and C1 controls, line separators, bidirectional overrides, and surrogates (bytes that are not UTF-8).
# The engine accepts a newline in a path (measured), but terminals and log lines do not, nor JSON a surrogate.
UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def normal_target(text: str, origin: str, hint: str = _HINT) -> str:
    """``text`` as an absolute path inside the sandbox without repeated slashes. Raises MountRefused with ``hint``."""
    reason = unshowable(text)
    if reason is None and not text.startswith("/"):
        reason = "a target inside the sandbox is an absolute path"
    parts = [part for part in text.split("/") if part]
    if reason is None and (".." in parts or "." in parts):
        reason = "a target must not contain '.' or '..'"
    target = "/" + "/".join(parts)
    reason = reason or refusal(target, reserved_targets())
    if reason is not None:
        raise MountRefused(
            path=shown(text),
            origin=origin,
            reason=reason,
            hint=hint,
        )
    return target


def unshowable(path: str) -> str | None:
    return "its name has a control character, or is not UTF-8" if UNSHOWABLE.search(path) else None


def shown(path: str) -> str:
    return ascii(path)[1:-1] if UNSHOWABLE.search(path) else path
