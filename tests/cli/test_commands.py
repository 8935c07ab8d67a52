"""exec, ps, stop and run from the command line down to an engine in memory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest

from podbot.cli import attach, ps
from podbot.cli.globals import Globals
from podbot.cli.main import main
from podbot.flows.manage import SessionInfo
from podbot.flows.sessions import session_directory
from podbot.testing import IMAGE, STDERR, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.flows.plans import Place, container, kept, labels, orphaned

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "is_terminal", lambda _fd: False)


@pytest.fixture(autouse=True)
def _globals_as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


def made(engine: FakeEngine, *names: str) -> None:
    for name in names:
        engine.start(engine.create(container(name, marks=labels(name))))


# --- exec -----------------------------------------------------------------------------------------


def test_exec_s_streams_and_status(engine: FakeEngine, place: Place, capfdbinary: Capture) -> None:
    engine.start(engine.create(container("any", marks={})))
    engine.on("it", ScriptedExec(stdout=b"out\xff", stderr=b"err", code=42))
    assert main(["exec", "any", "--", "it", "-x"]) == 42
    assert capfdbinary.readouterr() == (b"out\xff", b"err")


def test_exec_passes_on_what_was_asked(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfdbinary: Capture
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    made(engine, "a")
    seen = []

    def it(io: ExecPeer) -> int:
        seen.append(io.spec)
        return 0

    engine.on("it", it)
    argv = ["exec", "-w", "/w", "-e", "A=1=2", "-e", "SECRET", "-e", "EMPTY=", "a", "--", "it", "--flag"]
    assert main(argv) == 0
    (spec,) = seen
    assert (spec.command, spec.workdir, spec.tty, spec.stdin) == (("it", "--flag"), "/w", False, True)
    assert spec.env == {"A": "1=2", "SECRET": "s3cret", "EMPTY": ""}
    assert spec.secrets == {"A", "SECRET", "EMPTY"}
    assert "s3cret" not in repr(spec)


@pytest.mark.parametrize("pair", ["", "=x", "NOT_SET_ANYWHERE"])
def test_exec_with_a_variable_that_is_none(engine: FakeEngine, place: Place, pair: str, capfd: Capture) -> None:
    made(engine, "a")
    assert main(["exec", "-e", pair, "a", "--", "true"]) == 2
    assert "flag -e" in str(capfd.readouterr().err)
    assert not any(name == "exec_create" for name, _ in engine.calls)


def test_exec_detached_attaches_nothing(engine: FakeEngine, place: Place, capfdbinary: Capture) -> None:
    made(engine, "a")

    def it(io: ExecPeer) -> int:
        assert not io.spec.stdin
        io.write(STDOUT, b"x")
        io.write(STDERR, b"y")
        return 5

    engine.on("it", it)
    assert main(["exec", "-d", "a", "--", "it"]) == 5
    assert capfdbinary.readouterr() == (b"", b"")


def test_exec_in_no_container(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    assert main(["exec", "nobody", "--", "true"]) == 1
    assert "there is no container nobody" in str(capfd.readouterr().err)


def test_exec_says_what_a_killed_podbot_left(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "left", "a")
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        directory.has_container = True
    assert main(["exec", "a", "--", "true"]) == 0
    captured = capfd.readouterr()
    assert "left behind" in str(captured.err)
    assert str(captured.out) == ""


# --- ps -------------------------------------------------------------------------------------------


def test_ps_is_a_table(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "podbot-a", "b")
    engine.create(container("stopped"))
    assert main(["ps"]) == 0
    lines = str(capfd.readouterr().out).splitlines()
    assert lines[0].split() == ["SESSION", "AGENT", "STATE", "CREATED", "WORKSPACE"]
    assert [line.split()[0] for line in lines[1:]] == ["b", "podbot-a"]
    assert len({line.index("/home/ann/proj") for line in lines[1:]}) == 1, "columns are aligned"
    assert main(["ps", "-a"]) == 0
    assert "stopped" in str(capfd.readouterr().out)


def test_ps_json_is_for_programs(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    assert main(["ps", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == []
    orphaned(engine, place, "a")
    assert main(["ps", "--json"]) == 0
    (found,) = json.loads(capfd.readouterr().out)
    assert found["session"] == "a"
    assert found["orphan"] is True
    assert set(found) == set(SessionInfo.__dataclass_fields__)


def test_ps_shows_no_control_characters() -> None:
    info = SessionInfo(
        "a\x1b[2J", "id", "codex", "acp", "host_mount", "/x\x07", "i", "running", time.time(), orphan=True
    )
    table = ps._table([info], time.time())
    assert "\x1b" not in table
    assert "\x07" not in table
    assert "codex/acp" in table
    assert "running (left behind)" in table


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "just now"),
        (4.9, "just now"),
        (5, "5 seconds ago"),
        (59.9, "59 seconds ago"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (3600, "1 hour ago"),
        (86399, "23 hours ago"),
        (86400, "1 day ago"),
        (10 * 86400, "10 days ago"),
    ],
)
def test_ages(seconds: float, words: str) -> None:
    assert ps._age(seconds) == words


# --- stop -----------------------------------------------------------------------------------------


def test_stop_several_and_all(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "a", "b", "c")
    engine.start(engine.create(container("stranger", marks={})))
    assert main(["stop", "b", "a"]) == 0
    assert str(capfd.readouterr().out) == "b\na\n"
    assert main(["stop", "--all"]) == 0
    assert str(capfd.readouterr().out) == "c\n"
    assert list(engine.by_name) == ["stranger"]


def test_stop_of_a_stranger(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "a")
    engine.start(engine.create(container("stranger", marks={})))
    assert main(["stop", "a", "stranger"]) == 1
    captured = capfd.readouterr()
    assert "stranger is not one of podbot's containers" in str(captured.err)
    assert str(captured.out) == ""
    assert set(engine.by_name) == {"a", "stranger"}


def test_stop_of_a_kept_one(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    kept(engine, place, "kept")
    assert main(["stop", "kept"]) == 0
    assert str(capfd.readouterr().out) == "kept  (kept, stopped)\n"
    assert main(["stop", "--rm", "kept"]) == 0
    assert str(capfd.readouterr().out) == "kept\n"
    assert engine.by_name == {}


@pytest.mark.parametrize("seconds", ["-1", "3601", "x"])
def test_stop_s_time_has_bounds(engine: FakeEngine, place: Place, seconds: str) -> None:
    made(engine, "a")
    assert main(["stop", "--time", seconds, "a"]) == 2
    assert "a" in engine.by_name


# --- run ------------------------------------------------------------------------------------------


def test_run_is_the_agent_s_status_and_leaves_nothing(engine: FakeEngine, place: Place, capfdbinary: Capture) -> None:
    def agent(io: ExecPeer) -> int:
        assert io.spec.command == ("my-agent", "--flag")
        assert io.spec.workdir == "/workspace"
        io.write(STDOUT, b"answer")
        return 9

    engine.on("my-agent", agent)
    argv = ["--image", IMAGE, "run", "--workspace", place.workspace, "--agent", "custom", "--", "my-agent", "--flag"]
    assert main(argv) == 9
    captured = capfdbinary.readouterr()
    assert captured.out == b"answer", "stdout is the agent's alone"
    assert place.workspace.encode() in captured.err, "what is mounted is said"
    assert engine.by_name == {}
    assert [name for name in os.listdir(place.runtime) if not name.startswith(".")] == []


def test_run_keeps_when_told(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    engine.on("my-agent", ScriptedExec())
    argv = [
        "run",
        "--image",
        IMAGE,
        "-w",
        place.workspace,
        "--agent",
        "custom",
        "--name",
        "mine",
        "--keep",
        "--",
        "my-agent",
    ]
    assert main(argv) == 0
    assert engine.inspect("mine").state == "exited"
    assert "podbot stop --rm mine" in str(capfd.readouterr().err)


def test_dry_run_asks_no_engine(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    argv = ["run", "--image", IMAGE, "-w", place.workspace, "--agent", "custom", "--dry-run", "--json", "--", "x"]
    assert main(argv) == 0
    plan = json.loads(capfd.readouterr().out)
    assert place.workspace in json.dumps(plan)
    assert main([*argv[:-4], "--dry-run", "--", "x"]) == 0
    assert place.workspace in str(capfd.readouterr().out).replace("\n", "")
    assert engine.calls == []


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--agent", "nobody"], 2, "--agent"),
        (["--workspace", "/nonexistent"], 2, "/nonexistent"),
        (["--workspace", "/etc"], 2, "/etc"),
        ([], 2, "--workspace PATH"),
        (["--agent-mode", "acp"], 2, "agent.mode = acp (flag --agent-mode)"),
        (["--image", "localhost/none:1"], 1, "localhost/none:1 (flag --image) is not on this engine"),
        (["--image", " "], 2, "image is required"),
        (["--name", "taken"], 1, "the name taken is taken"),
        (["--name", "../x"], 2, "../x"),
    ],
)
def test_run_s_bad_input_leaves_nothing(  # noqa: PLR0917 - three of them are the table's columns
    engine: FakeEngine, place: Place, flags: list[str], code: int, words: str, capfd: Capture
) -> None:
    engine.create(container("taken", marks={}))
    base = ["--image", IMAGE, "run", "--agent", "custom"]
    if flags and "--workspace" not in flags:
        base += ["--workspace", place.workspace]
    assert main([*base, *flags, "--", "x"]) == code
    err = str(capfd.readouterr().err)
    assert words in err
    assert "Traceback" not in err
    assert list(engine.by_name) == ["taken"]
    assert not os.path.isdir(place.runtime) or [n for n in os.listdir(place.runtime) if n[0] != "."] == []


@pytest.mark.parametrize("pair", ["A B=1", "=1", "A\nB=1", "1A=x"])
def test_exec_takes_no_name_that_cannot_be_a_variable(engine: FakeEngine, place: Place, pair: str) -> None:
    assert main(["exec", "-e", pair, "a", "--", "true"]) == 2
    assert engine.calls == []
