"""``podbot history`` and ``--no-history`` from the command line down to an engine in memory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.cli import fast
from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.container_spec import Mount
from podbot.launch.resources.history import HistoryPlan, project_key
from podbot.management.history_list import history_root
from podbot.session.resources.history import history_in_use
from podbot.testing import FakeEngine
from tests.session.plans import Place

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _globals_as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


def kept(project: str, kind: str = "claude") -> HistoryPlan:
    key = project_key("host_mount", project)
    directory = os.path.join(history_root(os.environ), key)
    made = HistoryPlan(key, directory, project, Mount(os.path.join(directory, kind), "/x"), ())
    with history_in_use(made):
        Path(made.store.source, "talk").write_text("x" * 70_000)
    return made


@pytest.mark.usefixtures("place")
def test_a_table_and_json(capsys: Capture) -> None:
    assert main(["history", "ls"]) == 0
    assert capsys.readouterr() == ("", "podbot: no conversations are kept\n")
    assert main(["-q", "history", "ls"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["history", "ls", "--json"]) == 0
    assert capsys.readouterr() == ("[]\n", "")
    made = kept("/home/ann/[red]shop\x1b[31m")
    kept(made.project, "gemini")
    for kind in ("claude", "gemini"):
        os.utime(os.path.join(made.directory, f"{kind}.used"), (time.time() - 7300,) * 2)
    assert main(["history", "ls"]) == 0
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines()] == [
        ["PROJECT", "AGENTS", "SIZE", "LAST", "USED"],
        ["/home/ann/[red]shop\\x1b[31m", "claude,", "gemini", "0.1", "MB", "2", "hours", "ago"],
    ]
    assert main(["history", "ls", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["project"], found["key"]) == (made.project, made.key)
    assert {part["agent"] for part in found["agents"]} == {"claude", "gemini"}
    assert set(found["agents"][0]) == {"agent", "bytes", "complete", "last_used"}


@pytest.mark.usefixtures("engine")
def test_conversations_are_removed_after_confirmation(place: Place, capsys: Capture) -> None:
    made = kept(place.workspace)
    kept("/home/ann/other")
    assert main(["history", "rm", place.workspace]) == 2  # there is no terminal to ask on
    assert "add --yes" in capsys.readouterr().err
    assert os.path.exists(made.store.source)
    assert main(["history", "rm", "--yes", place.workspace]) == 0
    assert capsys.readouterr().out == f"{place.workspace}\n"
    assert not os.path.exists(made.directory)
    assert main(["history", "rm", "-y", "--all"]) == 0
    assert os.listdir(history_root(os.environ)) == []
    assert capsys.readouterr().err == ""
    assert main(["history", "rm", "-y", "--all"]) == 0
    assert capsys.readouterr().err == "podbot: no conversations are kept\n"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "`podbot history ls` lists them"),
        (["--all", "/x"], 2, "PROJECT and --all exclude each other"),
        (["/x"], 1, "`podbot history ls` lists the projects"),
        ([""], 2, "it is blank"),
        (["--all", "--agent", "codx"], 2, "Did you mean codex?"),
        (["/home/ann/shop", "--agent", "nosuch"], 2, "is not one of claude,"),
        (["/home/ann/shop", "--agent", "codex"], 1, "there are no conversations of '/home/ann/shop' with codex"),
        (["--all", "--agent", "codex"], 0, ""),
    ],
)
def test_the_project_to_remove_is_given_once_and_exists(
    engine: FakeEngine, words: list[str], code: int, said: str, capsys: Capture
) -> None:
    """There is no question first: each of these is the same with and without ``--yes``."""
    made = kept("/home/ann/shop")
    for yes in ([], ["--yes"]):
        assert main(["history", "rm", *yes, *words]) == code
        captured = capsys.readouterr()
        assert said in " ".join(captured.err.split())
        assert "remove" not in captured.err.lower()
    assert engine.calls == []
    assert os.path.exists(made.store.source)


def test_the_question_lists_only_projects_with_the_agent(engine: FakeEngine, place: Place, capsys: Capture) -> None:
    kept(place.workspace, "codex")
    kept("/home/ann/other", "claude")
    assert main(["history", "rm", "--all", "--agent", "codex"]) == 2  # no terminal for a question
    asked = capsys.readouterr().err
    assert f"  - {place.workspace}: codex" in asked
    assert "/home/ann/other" not in asked
    assert main(["history", "rm", "-y", "--all", "--agent", "codex"]) == 0
    assert capsys.readouterr().out == f"{place.workspace}\n"


@pytest.mark.usefixtures("engine")
def test_a_missing_project_is_named_in_full(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(place.workspace)
    named = {".": place.workspace, "a": f"{place.workspace}/a", "~/a": f"{os.environ['HOME']}/a", "octo/a": "octo/a"}
    for typed, looked_for in named.items():
        assert main(["history", "rm", "-y", typed]) == 1
        assert f"there are no conversations of '{looked_for}'. " in capsys.readouterr().err


@pytest.mark.usefixtures("place")
def test_a_conversation_in_use_is_not_removed(engine: FakeEngine, capsys: Capture) -> None:
    made = kept("/home/ann/shop")
    with history_in_use(made):
        assert main(["history", "rm", "--yes", "/home/ann/shop"]) == 1
    assert "in use by" in capsys.readouterr().err
    assert ("remove", made.key) not in engine.calls
    assert os.path.exists(made.store.source)


@pytest.mark.parametrize("command", ["run", "host"])
def test_no_history_is_a_flag_of_run_and_host(place: Place, command: str, capsys: Capture) -> None:
    plain = [command, "--image", "x", "--workspace", place.workspace, "--dry-run", "--json"]
    assert main(plain) == 0
    assert json.loads(capsys.readouterr().out)["history"]["project"] == place.workspace
    assert main([*plain, "--no-history"]) == 0
    assert json.loads(capsys.readouterr().out)["history"] is None


def test_the_fast_lane_knows_the_flag(place: Place, capsys: Capture) -> None:
    for words, kept in (([], True), (["--no-history"], False)):
        argv = ["host", "--image", "x", "--workspace", place.workspace, "--dry-run", "--json", *words]
        command = fast.parse(argv)
        assert command is not None
        assert command() == 0
        assert (json.loads(capsys.readouterr().out)["history"] is not None) == kept
