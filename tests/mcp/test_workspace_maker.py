"""A workspace that says what of it was not removed."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from pathlib import Path

from podbot.errors import ConnectionFailed
from podbot.events import Emit, Event
from podbot.mcp.workspace_maker import RemovableWorkspace
from podbot.suites import WorkspaceSettings
from podbot.suites.backends import Opened
from tests.suites.fake_backend import FakeBackend


class Staying(FakeBackend):
    """Its containers cannot be ended."""

    def open(self, ident: str, directory: str, settings: WorkspaceSettings, now: datetime, emit: Emit) -> Opened:
        opened = super().open(ident, directory, settings, now, emit)

        def close() -> None:
            opened.close()
            raise ConnectionFailed(endpoint="e", origin="o", reason="it stays")

        return dataclasses.replace(opened, close=close)


def test_what_fails_is_returned_and_reported(tmp_path: Path) -> None:
    events: list[Event] = []
    settings = WorkspaceSettings()
    staying = RemovableWorkspace(Staying(tmp_path), ident="a", settings=settings, emit=events.append)
    staying.start()
    (left,) = staying.remove()
    assert "it stays" in left
    assert [event.message for event in events if event.kind == "workspace.end_failed"] == [left]
    other = RemovableWorkspace(FakeBackend(tmp_path), ident="b", settings=settings, emit=events.append)
    other.start()
    assert other.remove() == ()
    assert other.remove() == ()
