"""exec from the command line down to an engine in memory."""

from __future__ import annotations

import contextlib
import os

import pytest

from podbot.cli.entry import main
from podbot.session.directory import session_directory
from podbot.testing import STDERR, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.cli.terminals import terminal_on
from tests.session.plans import Place, container, in_state, kept, made, orphaned

Capture = pytest.CaptureFixture[bytes]
pytestmark = pytest.mark.usefixtures("no_terminal_here")


def test_execs_streams_and_status(engine: FakeEngine, place: Place, capfdbinary: Capture) -> None:
    engine.start(engine.create(container("any", marks={})))
    engine.on("it", ScriptedExec(stdout=b"out\xff", stderr=b"err", code=42))
    assert main(["exec", "any", "--", "it", "-x"]) == 42
    assert capfdbinary.readouterr() == (b"out\xff", b"err")


def test_exec_passes_the_request_on(
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
def test_exec_with_an_invalid_variable(engine: FakeEngine, place: Place, pair: str, capfd: Capture) -> None:
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


def test_words_after_the_session_belong_to_the_command(engine: FakeEngine, place: Place, capfdbinary: Capture) -> None:
    """Issue 10.1: podbot used `-d` itself, and `git branch nosuch` made a branch."""
    made(engine, "a")
    seen = []

    def it(io: ExecPeer) -> int:
        seen.append(io.spec.command)
        io.write(STDOUT, b"out")
        return 0

    for words in (
        ("git", "branch", "-d", "nosuch"),
        ("grep", "-v", "foo", "f"),
        ("sh", "-c", "x"),
        ("ls", "-la"),
        ("tool", "--", "--help"),
    ):
        engine.on(words[0], it)
        for between in ((), ("--",)):
            assert main(["exec", "a", *between, *words]) == 0
            assert seen.pop() == words
    assert capfdbinary.readouterr().out == b"out" * 10


def test_exec_alone_opens_a_shell_that_reads_stdin(engine: FakeEngine, place: Place, capfdbinary: Capture) -> None:
    made(engine, "a")
    seen = []

    def shell(io: ExecPeer) -> int:
        seen.append(io.spec)
        return 3

    engine.on("/bin/sh", shell)
    assert main(["exec", "a"]) == 3
    (spec,) = seen
    assert "exec bash" in spec.command[2]
    assert spec.command[2].endswith("exec sh")
    assert (spec.stdin, spec.tty) == (True, False)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-d", "a"], "-d needs a command"),
        (["a", "--"], "there is no command after --"),
        (["-u", "", "a", "id"], "user (flag --user): it is blank"),
        (["-w=", "a", "id"], "workdir (flag --workdir): it is blank"),
        (["--env-file", "/dev/zero", "a", "id"], "/dev/zero is neither a file nor a pipe"),
        (["--env-file", "/nosuch", "a", "id"], "env-file (flag --env-file): there is no file /nosuch"),
    ],
)
def test_exec_refuses_meaningless_combinations(
    engine: FakeEngine, place: Place, argv: list[str], words: str, capfd: Capture
) -> None:
    made(engine, "a")
    assert main(["exec", *argv]) == 2
    assert words in str(capfd.readouterr().err)
    assert not any(name == "exec_create" for name, _ in engine.calls)


def test_variables_that_a_file_reads_from_the_host_are_reported_by_name(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """An agent that can write the file could name the operator's secrets in it."""
    made(engine, "a")
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    path = os.path.join(place.base, "variables")
    with open(path, "w", encoding="utf-8") as file:
        file.write("A=hidden\nMY_TOKEN\nNOT_SET\n")
    engine.on("it", ScriptedExec())
    assert main(["exec", "--env-file", path, "a", "it"]) == 0
    assert str(capfd.readouterr().err) == "podbot: passing variables of this host that --env-file names: MY_TOKEN\n"


def test_the_engine_runs_a_command_as_another_user(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """This session has no guest."""
    made(engine, "a")
    seen = []

    def it(io: ExecPeer) -> int:
        seen.append(io.spec)
        return 0

    engine.on("it", it)
    for flags in (["-u", "1000:1000"], ["-u=1000:1000"], ["--user=1000:1000"]):
        assert main(["exec", *flags, "a", "it"]) == 0
        assert seen.pop().user == "1000:1000"


@pytest.mark.parametrize(
    ("flags", "terminals", "tty", "notice"),
    [
        ((), True, True, ""),
        (("-i",), True, True, ""),
        (("-it",), True, True, ""),
        (("-T",), True, False, ""),
        (("-t", "--no-tty"), True, False, ""),
        ((), False, False, ""),
        (("-i",), False, False, ""),
        (("-it",), False, False, "no terminal (-t)"),
        (("-dit",), True, False, "-i and -t have no effect"),
        (("-di",), False, False, "-i and -t have no effect"),
        (("-d",), True, False, ""),
    ],
)
def test_when_a_command_gets_a_terminal(  # noqa: PLR0917 - four of them are the table's columns
    engine: FakeEngine,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capfd: Capture,
    flags: tuple[str, ...],
    terminals: bool,
    tty: bool,
    notice: str,
) -> None:
    made(engine, "a")
    monkeypatch.setenv("TERM", "screen")
    monkeypatch.setenv("COLORTERM", "truecolor")
    seen = []

    def it(io: ExecPeer) -> int:
        seen.append(io.spec)
        return 0

    engine.on("it", it)
    with terminal_on(0, 1) if terminals else contextlib.nullcontext():
        assert main(["exec", *flags, "-e", "COLORTERM=no", "a", "it"]) == 0
    (spec,) = seen
    assert spec.tty == tty
    assert spec.env == {"COLORTERM": "no"} | ({"TERM": "screen"} if tty else {})
    err = str(capfd.readouterr().err)
    assert len(err.splitlines()) == (1 if notice else 0)
    assert notice in err


@pytest.mark.parametrize("ours", [True, False])
def test_exec_tells_another_term_once_in_a_session_and_elsewhere_with_v_only(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: Capture, ours: bool
) -> None:
    if ours:
        kept(engine, place, "a")
    else:
        made(engine, "a")
    for name, value in {"TERM": "foot", "COLORTERM": "", "TERM_PROGRAM": "foot"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TERM_PROGRAM_VERSION", raising=False)
    seen = []

    def it(io: ExecPeer) -> int:
        seen.append((io.spec.env, io.spec.term_choices[:2]))
        return 0

    def said(*words: str) -> bool:
        assert main([*words, "a", "it"]) == 0
        err = str(capfd.readouterr().err)
        assert err.count("no entry for foot") in (0, 1)
        return "TERM is xterm-256color inside: podbot's images have no entry for foot" in err

    engine.on("it", it)
    with terminal_on(0, 1):
        assert not said("exec", "-e", "TERM")
        assert said("exec") is ours
        assert not said("exec")
        assert said("-v", "exec")
    chosen = ({"TERM": "xterm-256color", "TERM_PROGRAM": "foot"}, ("foot", "xterm-256color"))
    assert seen == [({"TERM": "foot", "TERM_PROGRAM": "foot"}, ()), chosen, chosen, chosen]


def test_exec_in_a_missing_container(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    assert main(["exec", "nobody", "--", "true"]) == 1
    assert "there is no container nobody" in str(capfd.readouterr().err)


def test_exec_reports_what_a_killed_podbot_left(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "left", "a")
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        in_state(directory, "running")
    assert main(["exec", "a", "--", "true"]) == 0
    captured = capfd.readouterr()
    assert "left behind" in str(captured.err)
    assert str(captured.out) == ""


def test_the_beginning_of_a_name_is_enough_for_exec_and_stop(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    for name in ("shop-a", "shop-b", "notes"):
        orphaned(engine, place, name)
    assert main(["exec", "no", "true"]) == 0
    assert main(["exec", "shop", "true"]) == 1
    assert "shop could be any of shop-a, shop-b" in str(capfd.readouterr().err)
    assert main(["stop", "notes", "shop-b"]) == 0
    assert main(["stop", "shop"]) == 0
    assert str(capfd.readouterr().out).split() == ["notes", "shop-b", "shop-a"]


def test_the_directory_is_enough_for_exec_and_stop_of_a_session_without_a_name(
    engine: FakeEngine, place: Place, capfd: Capture
) -> None:
    """README has `podbot exec shop` and `podbot stop shop` after `podbot run codex ~/src/shop`."""
    for name in ("podbot-shop-1a2b3c", "podbot-api-1a2b3c", "podbot-api-9d8e7f"):
        orphaned(engine, place, name)
    assert main(["exec", "shop", "true"]) == 0
    assert main(["stop", "--rm", "api"]) == 1
    assert "api could be any of podbot-api-1a2b3c, podbot-api-9d8e7f" in str(capfd.readouterr().err)
    assert main(["stop", "shop"]) == 0
    assert str(capfd.readouterr().out) == "podbot-shop-1a2b3c\n"


@pytest.mark.parametrize("command", [["stop"], ["rm", "--force"], ["stop", "--rm"], ["exec"]])
def test_the_beginning_of_a_directory_never_reaches_the_session_of_another_project(
    engine: FakeEngine, place: Place, capfd: Capture, command: list[str]
) -> None:
    orphaned(engine, place, "podbot-shop-api-4c5d6e")
    assert main([*command, "shop", *(["true"] if command == ["exec"] else [])]) == 1
    assert "podbot: there is no container shop" in str(capfd.readouterr().err)
    assert engine.inspect("podbot-shop-api-4c5d6e").state == "running"


def test_a_container_of_that_whole_name_is_meant(engine: FakeEngine, place: Place) -> None:
    """Another program's, whose name is the beginning of a session's."""
    engine.start(engine.create(container("shop", marks={})))
    orphaned(engine, place, "shop-a")
    assert main(["exec", "shop", "true"]) == 0
    assert [name for operation, name in engine.calls if operation == "exec_create"] == ["shop"]


@pytest.mark.parametrize("pair", ["A B=1", "=1", "A\nB=1", "1A=x"])
def test_exec_refuses_an_invalid_variable_name(engine: FakeEngine, place: Place, pair: str) -> None:
    assert main(["exec", "-e", pair, "a", "--", "true"]) == 2
    assert engine.calls == []
