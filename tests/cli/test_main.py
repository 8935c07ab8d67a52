"""Arguments in, an exit code out, every error one paragraph on stderr."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import podbot.cli.stop
from podbot import errors
from podbot.cli import fast
from podbot.cli.globals import Globals
from podbot.cli.main import main
from podbot.errors import PodbotError, RequestFailed
from podbot.streams.wake import Interrupted

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _globals_as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


def classes(base: type[PodbotError] = PodbotError) -> Iterator[type[PodbotError]]:
    for cls in base.__subclasses__():
        if cls.__module__.startswith("podbot.errors."):
            yield cls
            yield from classes(cls)


LEAVES = [cls for cls in classes() if not cls.__subclasses__()]


def made(cls: type[PodbotError]) -> PodbotError:
    """One of each, with a value for every field."""
    numbers = {"status", "columns", "rows", "minimum_columns", "minimum_rows"}
    return cls(**{name: 42 if name in numbers else f"<{name}>" for name in cls._names})


def doing(monkeypatch: pytest.MonkeyPatch, work: Callable[[], int]) -> None:
    """Whatever the arguments, this is the command."""
    monkeypatch.setattr(fast, "parse", lambda _argv: work)


def raising(monkeypatch: pytest.MonkeyPatch, exc: BaseException) -> None:
    def work() -> int:
        raise exc

    doing(monkeypatch, work)


def test_the_command_s_code_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for code in (0, 3, 137, 255):
        doing(monkeypatch, lambda code=code: code)  # type: ignore[misc]
        assert main([]) == code


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_error_is_one_paragraph(cls: type[PodbotError], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    exc = made(cls)
    raising(monkeypatch, exc)
    assert main(["x"]) == exc.exit_code
    assert exc.exit_code == (
        2 if isinstance(exc, (errors.ConfigError, errors.UnsupportedEndpoint, errors.NotATerminalCommand)) else 1
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"podbot: {exc}\n"
    assert len(captured.err.splitlines()) == 1
    assert "{" not in captured.err
    for name in set(exc.fields) - {"origin", "hint", "suggestion", "reason", "log", "operation", "effect"}:
        if name not in ("status", "stream") and not name.startswith("minimum"):
            assert str(getattr(exc, name)) in captured.err, f"the error names its {name}"


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_error_is_one_json_object(
    cls: type[PodbotError], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    exc = made(cls)
    raising(monkeypatch, exc)
    Globals.current = Globals(log_format="json")
    assert main(["x"]) == exc.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line) == {
        "level": "error",
        "kind": cls.__name__,
        "message": exc.message,
        "remedy": exc.remedy,
        "fields": exc.fields,
    }


@pytest.mark.parametrize(("verbose", "shown"), [(0, False), (1, False), (2, True), (3, True)])
@pytest.mark.parametrize("exc", [RequestFailed(operation="x", status=500, reason="y"), ValueError("z")])
def test_a_traceback_takes_two_v(
    exc: Exception, verbose: int, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    raising(monkeypatch, exc)
    Globals.current = Globals(verbose=verbose)
    assert main([]) == 1
    assert ("Traceback (most recent call last)" in capsys.readouterr().err) == shown


def test_a_bug_is_one_line_that_says_so(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    raising(monkeypatch, ValueError("it \x1b[31mbroke"))
    assert main([]) == 1
    err = capsys.readouterr().err
    assert err == "podbot: internal error: ValueError: it \\x1b[31mbroke. This is a bug; -vv shows where.\n"


@pytest.mark.parametrize(
    ("exc", "code"), [(KeyboardInterrupt(), 130), (Interrupted(2), 130), (Interrupted(15), 143), (Interrupted(1), 129)]
)
def test_signals_are_codes_and_no_words(
    exc: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    raising(monkeypatch, exc)
    assert main([]) == code
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("exc", "code", "words"),
    [
        (KeyboardInterrupt(), 130, ""),
        (Interrupted(15), 143, ""),
        (RequestFailed(operation="stop", status=500, reason="no"), 1, "the engine refused to stop"),
        (BrokenPipeError(32, "Broken pipe"), 1, "the reader of podbot's stdout went away"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (KeyError("x"), 1, "internal error: KeyError"),
    ],
)
def test_typer_s_lane_ends_the_same_way(
    exc: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def execute(*_args: Any) -> int:
        raise exc

    monkeypatch.setattr(podbot.cli.stop, "execute", execute)
    assert main(["stop", "x"]) == code
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


def test_a_reader_that_left_is_an_error_with_words(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    raising(monkeypatch, BrokenPipeError(32, "Broken pipe"))
    assert main([]) == 1
    assert "went away" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["nope"], ["exec"], ["exec", "s"], ["ps", "x"], ["stop", "--time", "x"], ["--nope"]])
def test_wrong_usage_is_2_and_names_the_help(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: podbot" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("argv", [["--log-format", "xml", "ps"], ["ps", "--log-format", "xml"]])
def test_a_log_format_that_is_none(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 2
    assert "'xml' is neither text nor json" in capsys.readouterr().err


def test_stop_needs_a_name_or_all(capsys: Capture) -> None:
    assert main(["stop"]) == 2
    assert "SESSION is required" in capsys.readouterr().err


def test_the_version(capsys: Capture) -> None:
    import podbot

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"podbot {podbot.__version__}\n"


def test_an_error_is_said_with_the_command_s_own_options(tmp_path: os.PathLike[str], capsys: Capture) -> None:
    missing = os.path.join(tmp_path, "none.toml")
    for argv in (
        ["ps", "--log-format", "json", "-c", missing],
        ["stop", "--all", "--log-format", "json", "-c", missing],
    ):
        assert main(argv) == 2
        said = json.loads(capsys.readouterr().err)
        assert (said["kind"], said["fields"]["path"]) == ("ConfigFileNotFound", missing)
