"""The process: takes arguments, returns an exit code, and prints every error as one paragraph."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from podbot.cli import stdio_guard
from podbot.cli.interaction import Declined
from podbot.errors import OutputClosed, PathError, PodbotError
from podbot.execution.codes import BY_SIGNAL
from podbot.streams.wake import Interrupted

if TYPE_CHECKING:
    from podbot.cli.commands import CarryOut

SIGINT = 2


def main(argv: list[str], *, carry_out: CarryOut | None = None, fast_path: bool = True) -> int:
    """Run podbot with ``argv`` (without the program's name); returns the exit code.

    ``carry_out``: what is done with the command that was read, if not what it says. ``fast_path``: whether plain
    command lines are read without Typer.
    """
    closed = _fill_closed_descriptors()
    engaged = stdio_guard.Guard.current is None and stdio_guard.is_hosting(argv)
    try:
        if 1 in closed and not _prints_nothing(argv):
            return _failed(OutputClosed(stream="stdout"))
        if engaged:
            stdio_guard.engage()
        return _flushed(_command(argv, carry_out, fast_path=fast_path))
    except Interrupted as exc:
        return BY_SIGNAL + exc.number
    except KeyboardInterrupt:
        return BY_SIGNAL + SIGINT
    except Declined:
        return _nothing_changed()
    except Exception as exc:  # noqa: BLE001 - the operator must not see a traceback for a bug
        error = _as_podbot_error(exc)
        return _bug(exc) if error is None else _failed(error)
    finally:
        if engaged:
            stdio_guard.release()


def _as_podbot_error(exc: Exception) -> PodbotError | None:
    """``exc`` as one of podbot's errors; None if it can only be a bug."""
    if isinstance(exc, PodbotError):
        return exc
    if isinstance(exc, BrokenPipeError):
        return OutputClosed(stream="stdout")
    if isinstance(exc, OSError):
        return PathError(path=exc.filename or "stdout", operation="use", reason=exc.strerror or str(exc))
    return None


def _command(argv: list[str], carry_out: CarryOut | None, *, fast_path: bool) -> int:
    if argv[:1] == ["__complete"]:
        from podbot.cli import completion_scripts

        return completion_scripts.run(argv[1:])
    from podbot.cli import fast
    from podbot.cli.globals import Globals
    from podbot.cli.help import answers

    Globals.typed = tuple(argv)
    if fast_path and answers(argv):
        return 0
    quick = fast.parse(argv, carry_out) if fast_path else None
    try:
        return quick() if quick is not None else _typer(argv, carry_out)
    except SystemExit as exc:  # how rich ends where the reader of a table has gone
        raise OutputClosed(stream="stdout") from exc


def _typer(argv: list[str], carry_out: CarryOut | None) -> int:
    from podbot.cli.app import parser, root
    from podbot.cli.grammar import PARSER_ERROR

    try:
        command = root() if carry_out is None else parser(carry_out)
        code = command(args=argv, prog_name="podbot", standalone_mode=False)
    except PARSER_ERROR as exc:
        return _wrong_usage(exc, argv)
    return code if isinstance(code, int) else int(code is not None)


def _wrong_usage(exc: Any, argv: list[str]) -> int:
    """Print what is wrong with the command line; the help, too, if it names a group of commands only, or nothing."""
    from podbot.cli.globals import Globals
    from podbot.cli.report import report_error, say
    from podbot.cli.usage_errors import usage_error

    error = usage_error(exc, argv)
    as_json = _asks_for_json(argv)
    if type(exc).__name__ == "NoArgsIsHelpError" and not as_json:
        if argv:  # podbot alone is a question for its help
            say(f"podbot: {error.message}")
        exc.show()
    else:
        report_error(error, Globals(log_format="json" if as_json else ""))
    return error.exit_code


def _asks_for_json(argv: list[str]) -> bool:
    """Search for the option by hand, because parsing failed."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    chosen = ""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name == "--log-format":
            chosen = value if equals else following
    return chosen == "json"


def _flushed(code: int) -> int:
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _fill_closed_descriptors() -> set[int]:
    """Open /dev/null on closed descriptors 0-2, so that a socket never becomes "standard output".

    Writing to that stdout fails, as it does while it is closed.
    """
    closed = set()
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            closed.add(os.open(os.devnull, os.O_RDONLY if fd == 1 else os.O_RDWR))
    return closed


def _prints_nothing(argv: list[str]) -> bool:
    """Whether the command writes to stdout what runs in a sandbox writes, and nothing of its own."""
    from podbot.cli import fast

    line = fast.read(argv)
    return line is not None and line.command.path in {("exec",), ("open",)}


def _nothing_changed() -> int:
    from podbot.cli.report import say

    say("podbot: nothing was changed")
    return 1


def _failed(exc: PodbotError) -> int:
    from podbot.cli.globals import Globals
    from podbot.cli.report import report_error

    if Globals.current.verbose >= 2:
        _traceback(exc)
    report_error(exc, Globals.current)
    return exc.exit_code


def _bug(exc: Exception) -> int:
    from podbot.cli.globals import Globals
    from podbot.cli.report import say
    from podbot.visible_text import printable

    if Globals.current.verbose >= 2:
        _traceback(exc)
    say(f"podbot: internal error: {type(exc).__name__}: {printable(str(exc))}. This is a bug; -vv shows where.")
    return 1


def _traceback(exc: BaseException) -> None:
    import traceback

    from podbot.cli.report import say

    say("".join(traceback.format_exception(exc)).rstrip())


def run(entry: Callable[[list[str]], int] = main) -> None:
    """The console script. It skips the interpreter's tear-down, which costs 4 ms."""
    code = entry(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)
