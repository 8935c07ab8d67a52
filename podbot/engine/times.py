"""Parsing times in engines' responses."""

from __future__ import annotations

from typing import Any


def seconds(text: Any) -> float:
    """A time such as "2026-11-21T21:51:46.229760239Z", in any zone, as seconds since the epoch; 0.0 if invalid."""
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return 0.0
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
