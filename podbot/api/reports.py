"""The reports that hosted sessions have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.api.engines import environment

if TYPE_CHECKING:
    from podbot.session.kept_reports import KeptReport


def reports(
    session: str | None = None, *, shown: bool = False, environ: Mapping[str, str] | None = None
) -> list[KeptReport]:
    """The kept reports, newest first: those that were not shown, with ``shown`` all. Contacts no engine.

    ``session``: all of that session's; its name, or the beginning if no other begins so. Raises ReportNotFound,
    AmbiguousName and ReportsUnreadable.
    """
    from podbot.session.kept_reports import kept_reports

    return kept_reports(environment(environ), session, shown=shown)


def mark_shown(found: Sequence[KeptReport], *, environ: Mapping[str, str] | None = None) -> None:
    """These reports were shown."""
    from podbot.session.kept_reports import mark_shown as mark

    mark(environment(environ), found)
