"""Arguments in, an exit code out, every error one paragraph on stderr."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from podbot import errors
from podbot.cli.commands import GROUPS
from podbot.cli.entry import main
from podbot.cli.interaction import Declined
from podbot.cli.remedies import paragraph, remedy_of
from podbot.errors import PodbotError, RequestFailed
from podbot.streams.wake import Interrupted

Capture = pytest.CaptureFixture[str]


def classes(base: type[PodbotError] = PodbotError) -> Iterator[type[PodbotError]]:
    for cls in base.__subclasses__():
        if cls.__module__.startswith("podbot.errors."):
            yield cls
            yield from classes(cls)


LEAVES = [cls for cls in classes() if not cls.__subclasses__()]


def made(cls: type[PodbotError]) -> PodbotError:
    """One error of each class, with a value for every field."""
    numbers = {"status", "columns", "rows", "minimum_columns", "minimum_rows"}
    return cls(**{name: 42 if name in numbers else f"<{name}>" for name in cls.field_names})


def main_doing(work: Callable[[], int], *options: str) -> int:
    """podbot's exit code when the command does ``work``."""
    return main([*options, "ps"], carry_out=lambda *_: work())


def main_raising(exc: BaseException, *options: str) -> int:
    def work() -> int:
        raise exc

    return main_doing(work, *options)


def test_the_command_s_code_is_ours() -> None:
    for code in (0, 3, 137, 255):
        assert main_doing(lambda code=code: code) == code  # type: ignore[misc]


@pytest.mark.usefixtures("no_terminal_here")
@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_error_is_one_paragraph(cls: type[PodbotError], capsys: Capture) -> None:
    exc = made(cls)
    assert main_raising(exc) == exc.exit_code
    usage = isinstance(exc, (errors.ConfigError, errors.UnsupportedEndpoint, errors.NotATerminalCommand))
    assert exc.exit_code == (2 if usage else 3 if isinstance(exc, errors.GuardTripped) else 1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"podbot: {paragraph(exc, terminal=False)}\n"
    assert len(captured.err.splitlines()) == 1
    assert "{" not in captured.err
    for name in set(exc.fields) - {"origin", "hint", "suggestion", "reason", "log", "operation", "effect", "agents"}:
        if name not in ("status", "stream", "detail", "cause") and not name.startswith("minimum"):
            assert str(getattr(exc, name)) in captured.err, f"the error names its {name}"


def test_the_engines_own_words_are_printed_with_v_alone(capsys: Capture) -> None:
    exc = errors.ExecFailed(container="c", command="x", reason=errors.ExecFailed.NOT_STARTED, detail="runc: boom")
    main_raising(exc)
    assert "boom" not in capsys.readouterr().err
    main_raising(exc, "-v")
    assert "podbot: the engine's own words: runc: boom\n" in capsys.readouterr().err


def test_a_relative_working_directory_is_refused_before_the_engine_is_asked(capsys: Capture) -> None:
    assert main(["exec", "-w", "here", "shop", "true"]) == 2
    assert "'here' does not begin with /" in capsys.readouterr().err


@pytest.mark.usefixtures("no_terminal_here")
@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_error_is_one_json_object(cls: type[PodbotError], capsys: Capture) -> None:
    exc = made(cls)
    assert main_raising(exc, "--log-format", "json") == exc.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line) == {
        "level": "error",
        "kind": cls.__name__,
        "message": exc.message,
        "remedy": remedy_of(exc, terminal=False),
        "fields": exc.fields,
    }


@pytest.mark.parametrize(("verbose", "shown"), [(0, False), (1, False), (2, True), (3, True)])
@pytest.mark.parametrize("exc", [RequestFailed(operation="x", status=500, reason="y"), ValueError("z")])
def test_a_traceback_takes_two_v(exc: Exception, verbose: int, shown: bool, capsys: Capture) -> None:
    assert main_raising(exc, *["-v"] * verbose) == 1
    assert ("Traceback (most recent call last)" in capsys.readouterr().err) == shown


def test_a_bug_is_one_line_that_says_so(capsys: Capture) -> None:
    assert main_raising(ValueError("it \x1b[31mbroke")) == 1
    err = capsys.readouterr().err
    assert err == "podbot: internal error: ValueError: it \\x1b[31mbroke. This is a bug; -vv shows where.\n"


@pytest.mark.parametrize(
    ("exc", "code"), [(KeyboardInterrupt(), 130), (Interrupted(2), 130), (Interrupted(15), 143), (Interrupted(1), 129)]
)
def test_signals_are_codes_and_no_words(exc: BaseException, code: int, capsys: Capture) -> None:
    assert main_raising(exc) == code
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("exc", "code", "words"),
    [
        (KeyboardInterrupt(), 130, ""),
        (Interrupted(15), 143, ""),
        (RequestFailed(operation="stop", status=500, reason="no"), 1, "the engine refused to stop"),
        (BrokenPipeError(32, "Broken pipe"), 1, "the reader of podbot's stdout went away"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (SystemExit(1), 1, "the reader of podbot's stdout went away"),  # as rich ends, where it has
        (KeyError("x"), 1, "internal error: KeyError"),
    ],
)
def test_typer_s_lane_ends_the_same_way(exc: BaseException, code: int, words: str, capsys: Capture) -> None:
    def check(*_args: Any) -> int:
        raise exc

    assert main(["config", "check"], carry_out=check, fast_path=False) == code
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


def test_a_reader_that_left_is_an_error_with_words(capsys: Capture) -> None:
    assert main_raising(BrokenPipeError(32, "Broken pipe")) == 1
    assert "went away" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["nope"], ["exec"], ["exec", "-d"], ["ps", "x"], ["stop", "--time", "x"], ["--nope"]])
def test_wrong_usage_is_2_and_names_the_help(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("podbot: ")
    assert "`podbot " in line


@pytest.mark.parametrize(
    ("argv", "command", "words"),
    [
        (["--log-format", "json", "nope"], "podbot", "there is no command 'nope'"),
        (["ps", "--log-format=json", "--nope"], "podbot ps", "there is no option --nope"),
        (["ps", "--nope", "--log-format", "text", "--log-format", "json"], "podbot ps", "--nope"),
        (["exec", "--log-format", "json"], "podbot exec", "SESSION is missing"),
        (["run", "--depth", "x", "--log-format", "json", "--", "--log-format", "text"], "podbot run", "--depth"),
        (["host", "--log-format", "json", "--nope"], "podbot host", "--nope"),
        (["--log-format", "json", "config"], "podbot config", "a command is missing"),
        (["token-daemon", "--log-format", "json", "install", "--once"], "podbot token-daemon", "install"),
        (["run", "--log-format", "json", "--json", "."], "podbot run", "--json works only with --dry-run"),
        (["exec", "--log-format", "json", "s", "--"], "podbot exec", "there is no command after --"),
    ],
)
def test_wrong_usage_as_json_is_one_object(argv: list[str], command: str, words: str, capfd: Capture) -> None:
    """Issue 10.3: before, it was text in either form."""
    assert main(argv) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    said = json.loads(line)
    assert (said["level"], said["kind"], said["fields"]["command"]) == ("error", "UsageError", command)
    assert words in said["message"]
    assert said["remedy"]


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        ("run claude . --resume", "podbot run claude . -- --resume"),
        ("run claude . --continue", "podbot run claude . -- --continue"),
        ("run claude . --model opus", "podbot run claude . -- --model opus"),
        ("run claude . --model=opus", "podbot run claude . -- --model=opus"),
        ("run --ask . --resume -- hi", "podbot run --ask . -- --resume hi"),
        ("run . --model 'a b'", "podbot run . -- --model 'a b'"),
        ("host -w . --resume", "podbot host -w . -- --resume"),
        # Where the agent's words end is not known here.
        ("run --model opus .", "podbot run [AGENT] [PATH] [-- WORDS…]"),
        ("run --resume codex", "podbot run [AGENT] [PATH] [-- WORDS…]"),
        ("run . --resume --ask", "podbot run [AGENT] [PATH] [-- WORDS…]"),
        ("run . --resume --name=shop", "podbot run [AGENT] [PATH] [-- WORDS…]"),
        ("host --model opus -w .", "podbot host [-- WORDS…]"),
        ("run . --model " + "x" * 500, "podbot run [AGENT] [PATH] [-- WORDS…]"),
        ("run . --model '\x1b'", "podbot run [AGENT] [PATH] [-- WORDS…]"),
    ],
)
def test_the_error_says_where_an_option_for_the_agent_belongs(words: str, typed: str, capfd: Capture) -> None:
    """Issue 10.2: `podbot run claude . --resume` suggested --rm and --submodules."""
    argv = shlex.split(words)
    hint = f"Options for the agent follow --: `{typed}`."
    assert main(argv) == 2
    assert capfd.readouterr().err.endswith(f". {hint}\n")
    assert main([argv[0], "--log-format=json", *argv[1:]]) == 2
    typed_as_json = hint.replace(f"podbot {argv[0]} ", f"podbot {argv[0]} --log-format=json ")
    assert json.loads(capfd.readouterr().err)["remedy"] == (hint if "WORDS…" in typed else typed_as_json)


def test_an_unknown_option_of_another_command_gets_no_advice_about_agents(capfd: Capture) -> None:
    assert main(["ps", "--nope"]) == 2
    assert "for the agent" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ["ps", "--nope", "--", "--log-format", "json"],
        ["--log-format", "json", "ps", "--nope", "--log-format", "text"],
        [],
    ],
)
def test_wrong_usage_is_text_unless_json_was_requested(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 2
    assert "".join(capsys.readouterr()).startswith(("podbot: ps: there is no option --nope.", "Usage: podbot"))


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_alone_lacks_a_command_and_prints_its_help(group: str, capfd: Capture) -> None:
    assert main([group]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"podbot: {group}: a command is missing\nUsage: podbot {group} [OPTIONS] COMMAND …\n\n")
    assert main(["--log-format", "json", group]) == 2
    assert json.loads(capfd.readouterr().err)["message"] == f"{group}: a command is missing"


def test_an_answer_that_was_broken_off(capsys: Capture) -> None:
    def check(*_args: Any) -> int:
        raise Declined

    assert main(["config", "check"], carry_out=check) == 1
    assert capsys.readouterr().err == "podbot: nothing was changed\n"


@pytest.mark.parametrize("argv", [["--log-format", "xml", "ps"], ["ps", "--log-format", "xml"]])
def test_an_invalid_log_format(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().err.endswith("'xml' is neither text nor json. Write one of the two.\n")


def test_stop_needs_a_name_or_all(capsys: Capture) -> None:
    assert main(["stop"]) == 2
    assert "SESSION is required" in capsys.readouterr().err


def test_the_version(capsys: Capture) -> None:
    import podbot

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"podbot {podbot.__version__}\n"


def test_an_error_is_printed_with_the_commands_own_options(tmp_path: os.PathLike[str], capsys: Capture) -> None:
    missing = os.path.join(tmp_path, "none.toml")
    for argv in (
        ["ps", "--log-format", "json", "-c", missing],
        ["stop", "--all", "--log-format", "json", "-c", missing],
    ):
        assert main(argv) == 2
        said = json.loads(capsys.readouterr().err)
        assert (said["kind"], said["fields"]["path"]) == ("ConfigFileNotFound", missing)
