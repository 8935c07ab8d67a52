"""Which part of a command the engine's requests, which are JSON, cannot carry unchanged."""

from __future__ import annotations

from podbot.launch.command import ExecSpec


def not_text(spec: ExecSpec) -> str | None:
    """What of a command is not UTF-8, and so has no form in JSON; None if all is. Never a value."""
    parts = (
        *(("one of its arguments", word) for word in spec.command),
        *((f"the value of {name}", value) for name, value in spec.env.items()),
        ("its working directory", spec.workdir or ""),
        ("its user", spec.user or ""),
    )
    return next((part for part, text in parts if any("\ud800" <= char <= "\udfff" for char in text)), None)
