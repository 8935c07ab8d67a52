"""Both lanes read the same command lines the same way."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import podbot.cli.exec
import podbot.cli.ps
import podbot.cli.token_daemon
from podbot.cli import fast, guard, main
from podbot.cli.exec import ExecArgs
from podbot.cli.globals import Globals
from podbot.cli.ps import PsArgs
from podbot.cli.token_daemon import TokenArgs
from podbot.errors import PodbotError

Call = tuple[str, Globals, Any]


@pytest.fixture(autouse=True)
def _globals_as_before() -> Iterator[None]:
    before = Globals.current
    yield
    Globals.current = before


@contextlib.contextmanager
def recorded() -> Iterator[list[Call]]:
    """The calls of the commands' ``execute``, instead of their work."""
    calls: list[Call] = []

    def execute(name: str) -> Any:
        def record(g: Globals, args: Any) -> int:
            calls.append((name, g, args))
            return 7

        return record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(podbot.cli.exec, "execute", execute("exec"))
        patch.setattr(podbot.cli.ps, "execute", execute("ps"))
        patch.setattr(podbot.cli.token_daemon, "execute", execute("token-daemon"))
        yield calls


def by_fast(argv: list[str]) -> Call | None:
    with recorded() as calls:
        quick = fast.parse(argv)
        if quick is None:
            assert calls == []
            return None
        assert quick() == 7
        assert Globals.current == calls[0][1], "an error is rendered with the command's own options"
        return calls[0]


def by_typer(argv: list[str]) -> Call | str:
    said = io.StringIO()
    with recorded() as calls, contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            code = main._typer(argv)
        except PodbotError as exc:
            return str(exc)
        if not calls:
            return f"{code}: {said.getvalue()}"
        assert code == 7
        return calls[0]


WORDS = st.sampled_from(
    ["s", "podbot-a-1", "x y", "", "-", "exec", "ps", "status", "ünï", "-x", "--nope", "-dv", "--", "1"]
)
VALUES = st.one_of(WORDS, st.sampled_from(["text", "json", "junk", "K=V", "K", "/w", "-c", "--json", "a=b=c"]))
VALUED = ["-c", "--config", "--engine-socket", "--image", "--log-format", "--log-file"]
VALUED += ["-w", "--workdir", "-e", "--env", "-u"]
VALUED += ["--user", "--env-file", "--name"]
GLOBALS = VALUED[:6]
SWITCHES = [
    "-v",
    "-vv",
    "-vvv",
    "--verbose",
    "-d",
    "--detach",
    "-i",
    "-t",
    "-it",
    "-Tdv",
    "--tty",
    "--no-tty",
    "-a",
    "--all",
    "--json",
    "--once",
    "-h",
    "--version",
    "-av",
]


def spelled(names: list[str]) -> st.SearchStrategy[list[str]]:
    """An option with its value in one of its spellings, or without."""
    return st.one_of(
        st.builds(lambda name, value: [f"{name}{value}"], st.sampled_from(names), VALUES),
        st.builds(lambda name, value: [name, value], st.sampled_from(names), VALUES),
        st.builds(lambda name, value: [f"{name}={value}"], st.sampled_from(names), VALUES),
        st.builds(lambda name: [name], st.sampled_from(names)),
    )


PIECES = st.one_of(spelled(VALUED), st.sampled_from(SWITCHES).map(lambda word: [word]), WORDS.map(lambda word: [word]))
PLAIN = st.one_of(
    st.builds(lambda name, value: [name, value], st.sampled_from(GLOBALS[:4]), VALUES),
    st.sampled_from([["-v"], ["-vv"], ["--verbose"], ["--log-format", "json"]]),
)
EXEC = st.one_of(
    PLAIN,
    st.builds(lambda name, value: [name, value], st.sampled_from(VALUED[5:12]), VALUES),
    st.builds(lambda name, value: [f"{name}={value}"], st.sampled_from(VALUED[5:12]), VALUES),
    st.builds(lambda name, value: [f"{name}{value}"], st.sampled_from(["-w", "-e", "-u", "-dw", "-itu"]), VALUES),
    st.sampled_from([["-d"], ["--detach"], ["-it"], ["-ti"], ["-dit"], ["-T"], ["--no-tty"], ["-iv"], ["--tty"]]),
)
PS = st.one_of(PLAIN, st.sampled_from([["-a"], ["--all"], ["--json"]]))

TOKEN = st.one_of(PLAIN, st.sampled_from([["--once"], ["--json"], ["status"], ["install"], ["shop"], [""]]))


def joined(*parts: list[list[str]]) -> list[str]:
    return [word for part in parts for piece in part for word in piece]


LIKELY = st.one_of(
    st.builds(
        lambda before, options, session, command: joined(before, [["exec"]], options, [session], command),
        st.lists(PLAIN, max_size=2),
        st.lists(EXEC, max_size=3),
        st.sampled_from([["s"], ["s", "--"], ["--", "s"]]),
        st.lists(st.one_of(EXEC, VALUES.map(lambda word: [word])), max_size=3),
    ),
    st.builds(
        lambda before, after: joined(before, [["ps"]], after), st.lists(PLAIN, max_size=2), st.lists(PS, max_size=3)
    ),
    st.builds(
        lambda before, after: joined(before, [["token-daemon"]], after),
        st.lists(PLAIN, max_size=2),
        st.lists(TOKEN, max_size=4),
    ),
)
ANY = st.builds(
    lambda before, command, after: joined(before, [[command]], after),
    st.lists(PIECES, max_size=2),
    st.sampled_from(["exec", "ps", "stop", "run", "token-daemon"]),
    st.lists(PIECES, max_size=5),
)


@settings(max_examples=250)
@given(st.one_of(LIKELY, ANY))
@example(["--log-format", "junk", "ps", "--log-format", "text"])
@example(["ps", "--log-format", "junk", "--log-format", "json"])
@example(["-c", "", "ps", "-c", ""])
@example(["exec", "s", "-w", "--", "x"])
@example(["exec", "s", "--", "--", "-d"])
@example(["exec", "s", "--", ""])
@example(["exec", "s", "x", "--", "y"])
@example(["exec", "-u=root", "-w=/", "s", "id"])
@example(["exec", "-e", "A=1", "s", "--", "-e", "B"])
@example(["exec", "--tty=true", "s", "x"])
@example(["exec", "-e", "K=1", "-e", "K=2", "s", "--", "env"])
@example(["exec", "s", "-w", "/a", "-w", "/b", "--", "x"])
@example(["--image", "exec", "exec", "s", "--", "x"])
@example(["-v", "ps", "-vv", "--verbose"])
def test_what_the_fast_lane_takes_typer_takes_the_same_way(argv: list[str]) -> None:
    quick = by_fast(argv)
    if quick is not None:
        assert by_typer(argv) == quick


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["ps"], PsArgs()),
        (["token-daemon"], TokenArgs()),
        (["token-daemon", "--once", "a", "--json", "b"], TokenArgs(("a", "b"), once=True, as_json=True)),
        (["token-daemon", "status", "--json"], TokenArgs(("status",), as_json=True)),
        (["ps", "-a", "--json"], PsArgs(include_stopped=True, as_json=True)),
        (["exec", "s", "--", "true"], ExecArgs("s", ("true",))),
        (["exec", "-d", "s", "--", "a", "-d", "--"], ExecArgs("s", ("a", "-d", "--"), detach=True)),
        (["exec", "s", "x"], ExecArgs("s", ("x",))),
        (["exec", "s", "x", "--", "y"], ExecArgs("s", ("x", "--", "y"))),
        (["exec", "s", "--", "--", "y"], ExecArgs("s", ("--", "y"))),
        (["exec", "s"], ExecArgs("s")),
        (["exec", "-it", "s"], ExecArgs("s", tty=True, interactive=True)),
        (["exec", "-tiT", "s", "sh"], ExecArgs("s", ("sh",), tty=False, interactive=True)),
        (["exec", "--no-tty", "-ditt", "s", "sh"], ExecArgs("s", ("sh",), detach=True, tty=True, interactive=True)),
        (
            ["exec", "-w", "/w", "-e", "A=1", "-eB", "s", "-e", "C", "--", "env"],
            ExecArgs("s", ("-e", "C", "--", "env"), workdir="/w", env=("A=1", "B")),
        ),
        (
            ["exec", "--workdir=/w", "--env=A=1", "--user=1:2", "--env-file=a", "--env-file", "b", "s", "env"],
            ExecArgs("s", ("env",), workdir="/w", env=("A=1",), user="1:2", env_files=("a", "b")),
        ),
        (
            ["exec", "-uroot", "-w/w", "-iw", "/v", "s", "id"],
            ExecArgs("s", ("id",), False, "/v", (), "root", (), None, True),
        ),
        # What podbot took for itself once (issue 10.1):
        (["exec", "S", "git", "branch", "-d", "nosuch"], ExecArgs("S", ("git", "branch", "-d", "nosuch"))),
        (["exec", "S", "grep", "-v", "foo", "f"], ExecArgs("S", ("grep", "-v", "foo", "f"))),
        (["exec", "S", "sh", "-c", "x"], ExecArgs("S", ("sh", "-c", "x"))),
        (["exec", "S", "ls", "-la"], ExecArgs("S", ("ls", "-la"))),
        (["exec", "S", "tool", "--help", "--image", "x"], ExecArgs("S", ("tool", "--help", "--image", "x"))),
    ],
)
def test_the_plain_forms_are_on_the_fast_lane(argv: list[str], expected: object) -> None:
    call = by_fast(argv)
    assert call is not None
    assert call[2] == expected
    assert call[1] == Globals()
    assert by_typer(argv) == call
    assert not guard.is_hosting(argv)


GIVEN = ["-c", "f", "--engine-socket", "e", "--image", "i", "--log-format", "json", "--log-file", "l", "-v"]


@pytest.mark.parametrize("argv", [[*GIVEN, "ps"], ["ps", *GIVEN], [*GIVEN[:4], "ps", *GIVEN[4:]]])
def test_global_options_stand_before_and_after_the_command(argv: list[str]) -> None:
    call = by_fast(argv)
    assert call is not None
    assert call[1] == Globals("f", "e", "i", 1, "json", "l")
    assert by_typer(argv) == call


def test_after_the_command_wins_and_v_adds_up() -> None:
    argv = ["-v", "--image", "a", "-c", "f", "exec", "-vv", "--image", "b", "s", "--", "x"]
    call = by_fast(argv)
    assert call is not None
    assert call[1] == Globals(config="f", image="b", verbose=3)
    assert by_typer(argv) == call


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--help"],
        ["--version"],
        ["ps", "--help"],
        ["token-daemon", "--json"],
        ["token-daemon", "install", "--once"],
        ["token-daemon", "--", "a"],
        ["ps", "extra"],
        ["ps", "--"],
        ["exec"],
        ["exec", "s", "--"],
        ["exec", "--", "s", "x"],
        ["exec", "-", "x"],
        ["exec", "-w"],
        ["exec", "-dw"],
        ["exec", "--tty=true", "s", "x"],
        ["exec", "--privileged", "s", "x"],
        ["exec", "-itx", "s", "x"],
        ["exec", "", "x"],
        ["exec", "--help"],
        ["run"],
        ["stop", "s"],
        ["exe", "s", "--", "x"],
        ["--log-format", "junk", "ps"],
    ],
)
def test_everything_else_is_typer_s(argv: list[str]) -> None:
    assert by_fast(argv) is None
