"""Typer and the fast path read the same command lines in the same way, for every command of the table."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podbot.cli import fast, stdio_guard
from podbot.cli.app import parser
from podbot.cli.commands import COMMANDS, Command
from podbot.cli.exec import ExecArgs
from podbot.cli.fast import Line
from podbot.cli.globals import Globals
from podbot.cli.options import COMMON, Option
from podbot.cli.ps import PsArgs
from podbot.cli.token_daemon import TokenArgs
from tests.examples import examples

READ: list[Line] = []


def record(command: Command, g: Globals, values: dict[str, Any]) -> int:
    READ.append(Line(command, g, values))
    return 7


TYPER = parser(record)  # built once: it takes 15 ms


def by_typer(argv: list[str]) -> Line | str:
    """The parsed values, or Typer's message."""
    said = io.StringIO()
    READ.clear()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            code = TYPER(args=argv, prog_name="podbot", standalone_mode=False)
        except Exception as exc:  # noqa: BLE001 - click's and podbot's have no base in common
            return f"{type(exc).__name__}: {exc}"
    if not READ:
        return f"{code}: {said.getvalue()}"
    assert code == 7
    return READ[0]


# --- every option of every command ---------------------------------------------------------------


def spelled(option: Option) -> list[list[str]]:
    """Every way to write it, with a value if it takes one."""
    if option.takes in {"nothing", "count"}:
        return [[word] for word in (*option.spelled, *option.off)]
    value = "3" if option.takes == "number" else "json" if option.name == "log_format" else "x"
    found = [[word, value] for word in option.spelled]
    return found + [[f"{word}={value}" if word.startswith("--") else f"{word}{value}"] for word in option.spelled]


def complete(command: Command, words: list[str]) -> list[str]:
    """``words`` as options of an otherwise valid command line."""
    line = [*command.path, *words]
    if command.path in (("history", "rm"), ("image", "rm")) and not {"--all", "-a"} & set(words):
        line.append("--all")
    if command.path == ("login",) and not {"--list", "-l"} & set(words):
        line.append("--list")
    if command.path == ("token-daemon",) and "--json" in words:
        line.append("--once")
    if command.path == ("doctor",) and {"--yes", "-y"} & set(words):
        line.append("--fix")
    return [*line, *("s" for argument in command.arguments if argument.required)]


WALK = [
    pytest.param(command, option, words, id=" ".join((*command.path, *words)))
    for command in COMMANDS
    for option in [*command.options, *command.common]
    for words in spelled(option)
]


@pytest.mark.parametrize(("command", "option", "words"), WALK)
def test_every_option_of_every_command(command: Command, option: Option, words: list[str]) -> None:
    line = fast.read(complete(command, words))
    assert line is not None
    assert line.command is command
    value = getattr(line.g, option.name) if option in COMMON else line.values[option.name]
    assert value != option.absent
    assert by_typer(complete(command, words)) == line


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_a_command_alone_has_every_value(command: Command) -> None:
    """As its function expects them: a missing one, or one with another name, would be an error at the first call."""
    argv = complete(command, [])
    line = fast.read(argv)
    assert line is not None
    assert by_typer(argv) == line
    assert all(line.values[option.name] == option.absent for option in command.options if option.spelled[0] not in argv)
    names = {argument.name for argument in command.arguments} | {option.name for option in command.options}
    names |= {"words"} if command.takes_words else set()
    assert set(line.values) == names


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_the_named_functions_accept_the_values(command: Command) -> None:
    line = fast.read(complete(command, []))
    assert line is not None
    inspect.signature(named(command.runs)).bind(line.g, **line.values)
    if command.check:
        inspect.signature(named(command.check)).bind(**line.values)


def named(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(f"podbot.cli.{module}"), name)


# --- random command lines ------------------------------------------------------------------------

JUNK = [
    "",
    "-",
    "--",
    "x y",
    "ünï",
    "-x",
    "--nope",
    "-dv",
    "-it",
    "-av",
    "-h",
    "--help",
    "--version",
    "--tty=true",
    "-it=0",
    "-i=f",
]
WORDS = ["s", "1", "text", "json", "junk", "K=V", "a=b=c", "/w", ".", "claude", "status", "install", "-c", "--json"]
NUMBERS = ["007", "+3", " 3", "3601", "9999999999", "-1"]
VALUES = st.sampled_from([*JUNK, *WORDS, *NUMBERS])


def pieces(options: tuple[Option, ...]) -> st.SearchStrategy[list[str]]:
    """One of the options in one of its spellings, with some value, or without one."""
    words = st.sampled_from([(option, word) for option in options for word in (*option.spelled, *option.off)])

    def written(drawn: tuple[Option, str]) -> st.SearchStrategy[list[str]]:
        option, word = drawn
        alone = st.just([word])
        if option.takes in {"nothing", "count"}:
            return alone if word.startswith("--") else st.sampled_from([[word], [word * 2], [word + word[1]]])
        valued = st.builds(lambda value: [word, value], VALUES)
        joined = st.builds(lambda value: [f"{word}={value}"], VALUES)
        return st.one_of(valued, valued, joined, st.builds(lambda value: [f"{word}{value}"], VALUES))

    return words.flatmap(written)


def lines(command: Command) -> st.SearchStrategy[list[str]]:
    """Command lines of ``command``: more valid than invalid ones."""
    own = pieces((*command.options, *COMMON))
    word = VALUES.map(lambda word: [word])
    tail = st.lists(st.one_of(own, own, own, word, pieces(tuple(EVERY))), max_size=5)
    before = st.lists(pieces(COMMON), max_size=2)
    needed = [["s"] for argument in command.arguments if argument.required]
    return st.builds(
        lambda before, tail, last: [
            *(word for piece in before for word in piece),
            *command.path,
            *(word for piece in (*tail, *last) for word in piece),
        ],
        before,
        tail,
        st.sampled_from([needed, needed, [*needed, ["--", "x"]], [*needed, ["x"]], []]),
    )


EVERY = [option for command in COMMANDS for option in command.options]
ANY = st.sampled_from(COMMANDS).flatmap(lines)


@settings(max_examples=examples(600))
@given(ANY)
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
@example(["exec", "-w", "--tty=false", "-it=0", "s", "--tty=false"])
@example(["exec", "-ditw=/w", "-v=1", "s", "x"])
@example(["exec", "-e", "K=1", "-e", "K=2", "s", "--", "env"])
@example(["exec", "s", "-w", "/a", "-w", "/b", "--", "x"])
@example(["--image", "exec", "exec", "s", "--", "x"])
@example(["-v", "ps", "-vv", "--verbose"])
@example(["host", "--name", "--", "x"])
@example(["host", "--", "--", "x"])
@example(["run", "codex", "--depth", "007", ".", "--", "--help"])
@example(["stop", "--time", "3601", "s"])
@example(["stop", "--time", "x", "--time", "5", "s"])
@example(["stop", "--", "s"])
@example(["history", "rm", "a", "--all"])
@example(["image", "--help"])
@example(["image"])
def test_typer_reads_what_the_fast_path_accepts_in_the_same_way(argv: list[str]) -> None:
    line = fast.read(argv)
    if line is not None:
        assert by_typer(argv) == line


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
        # As podman takes them (issue 29.20):
        (["exec", "--tty=false", "s", "x"], ExecArgs("s", ("x",), tty=False)),
        (["exec", "-t=false", "-i=false", "s", "x"], ExecArgs("s", ("x",), tty=False, interactive=False)),
        (["exec", "-it=T", "--detach=0", "s", "x"], ExecArgs("s", ("x",), tty=True, interactive=True)),
        (
            ["exec", "-w", "/w", "--interactive=False", "s", "-t=0"],
            ExecArgs("s", ("-t=0",), False, "/w", (), None, (), None, False),
        ),
        (["exec", "-iI", "s", "x"], ExecArgs("s", ("x",), interactive=False)),
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
def test_the_plain_forms_are_on_the_fast_path(argv: list[str], expected: object) -> None:
    READ.clear()
    call = fast.parse(argv, record)
    assert call is not None
    assert call() == 7
    (line,) = READ
    module = importlib.import_module(f"podbot.cli.{line.command.runs.partition(':')[0]}")
    assert (line.g, module.arguments(**line.values)) == (Globals(), expected)
    assert by_typer(argv) == fast.read(argv)
    assert not stdio_guard.is_hosting(argv)


GIVEN = ["-c", "f", "--engine-socket", "e", "--image", "i", "--log-format", "json", "--log-file", "l", "-vq"]


@pytest.mark.parametrize("argv", [[*GIVEN, "doctor"], ["doctor", *GIVEN], [*GIVEN[:4], "doctor", *GIVEN[4:]]])
def test_global_options_stand_before_and_after_the_command(argv: list[str]) -> None:
    line = fast.read(argv)
    assert line is not None
    assert line.g == Globals("f", "e", "i", 1, "json", "l", quiet=True)
    assert by_typer(argv) == line


def test_options_after_the_command_override_and_v_adds_up() -> None:
    argv = ["-v", "--image", "a", "-c", "f", "exec", "-vv", "--image", "b", "s", "--", "x"]
    line = fast.read(argv)
    assert line is not None
    assert line.g == Globals(config="f", image="b", verbose=3)
    assert by_typer(argv) == line


def test_an_error_is_rendered_with_the_commands_own_options() -> None:
    assert fast.parse(["-v", "ps", "--log-format", "json"]) is not None
    assert Globals.current == Globals(verbose=1, log_format="json")


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
        ["exec", "--", "s", "x"],
        ["exec", "-", "x"],
        ["exec", "-w"],
        ["exec", "-dw"],
        ["exec", "--tty=yes", "s", "x"],
        ["exec", "--no-tty=true", "s", "x"],
        ["exec", "--tty=", "s", "x"],
        ["exec", "--privileged", "s", "x"],
        ["exec", "-itx", "s", "x"],
        ["exec", "", "x"],
        ["exec", "--help"],
        ["run", "--nope"],
        ["run", "--depth", "x"],
        ["stop", "--", "s"],
        ["stop", "-t", "3601", "s"],
        ["exe", "s", "--", "x"],
        ["--log-format", "junk", "ps"],
    ],
)
def test_everything_else_is_left_to_typer(argv: list[str]) -> None:
    assert fast.parse(argv) is None
