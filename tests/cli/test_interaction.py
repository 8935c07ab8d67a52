"""What `podbot run` assumes and asks, as tables."""

from __future__ import annotations

import itertools

import pytest

from podbot.cli.interaction import Streams, offers_setup, works_here
from podbot.config.models import AppConfig, Origin, WorkspaceConfig

PERSON = Streams(stdin=True, stdout=True, stderr=True)
EVERY = [Streams(*found) for found in itertools.product([True, False], repeat=3)]
NAMED = AppConfig(workspace=WorkspaceConfig(host_path="/p"), origins={"workspace.host_path": Origin("file", "/c.toml")})


@pytest.mark.parametrize("streams", EVERY, ids=str)
def test_a_person_types_and_reads_messages(streams: Streams) -> None:
    """Output may go to a file or through a pipe: `podbot run claude -- -p question > answer`."""
    assert streams.person is (streams.stdin and streams.stderr)
    assert streams.attach is (streams.stdin and streams.stdout)
    assert works_here(streams, AppConfig(), clone=False, flags=()) is streams.person
    assert offers_setup(streams, log_format="", dry_run=False) is streams.person


@pytest.mark.parametrize(
    ("config", "clone", "flags"),
    [
        (NAMED, False, ()),
        (AppConfig(), True, ()),
        (AppConfig(), False, ("workspace.depth",)),
        (AppConfig(), False, ("workspace.submodules", "agent.kind")),
    ],
)
def test_nothing_is_assumed_where_a_place_is_named(config: AppConfig, clone: bool, flags: tuple[str, ...]) -> None:
    assert not works_here(PERSON, config, clone=clone, flags=flags)


def test_other_options_name_no_place() -> None:
    assert works_here(PERSON, AppConfig(), clone=False, flags=("agent.kind", "session.keep"))


@pytest.mark.parametrize(("log_format", "dry_run"), [("json", False), ("", True), ("text", True)])
def test_a_program_and_a_dry_run_are_asked_nothing(log_format: str, dry_run: bool) -> None:
    assert not offers_setup(PERSON, log_format=log_format, dry_run=dry_run)
