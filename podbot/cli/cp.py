"""``podbot cp``: copies files between this host and a session."""

from __future__ import annotations

import os
import sys

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.signals import handled
from podbot.errors import InvalidValue
from podbot.events import Event


def invoke(g: Globals, *, source: str, target: str, limit: str | None, as_json: bool) -> int:
    """Copy, and report what was left out; returns podbot's exit code."""
    from podbot.api import sessions as api
    from podbot.api.copying import copy

    most = None if limit is None else _size(limit)
    config = api.load_config(g.load_options(os.environ, {}, {}))
    emit = Reporter(g, late=True)
    try:
        with handled(tty=False) as wake:
            report = copy(config, source, target, most=most, wake=wake, emit=emit)
    finally:
        emit.clear()
    for left in report.left_out:
        fields = {"path": left.path.encode("utf-8", "backslashreplace").decode(), "reason": left.reason}
        emit(Event("warning", "copy.left_out", f"{left.path} was not copied: {left.reason}", fields))
    if report.more:
        emit(Event("warning", "copy.more", f"{report.more} more were not copied", {"count": report.more}))
    for text in report.warnings:
        emit(Event("warning", "copy.warning", text, {}))
    if as_json:
        import json

        left_out = [
            {"path": left.path.encode("utf-8", "backslashreplace").decode(), "reason": left.reason}
            for left in report.left_out
        ]
        found = {
            "files": report.files,
            "bytes": report.size,
            "left_out": left_out,
            "more": report.more,
            "warnings": report.warnings,
        }
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


def _size(text: str) -> int:
    from podbot.config.checks import Refusal, parse_memory

    try:
        return parse_memory(text, called="a size")
    except Refusal as exc:
        raise InvalidValue(field="limit", origin="flag --limit", reason=exc.reason, hint=exc.hint) from exc
