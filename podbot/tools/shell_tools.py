"""The tools that run something in the workspace: shell_execute and evaluate_python."""

from __future__ import annotations

from podbot.errors import InvalidWorkingDirectory
from podbot.execution.causes import cause_in_words
from podbot.execution.result import limits_met
from podbot.shell.types import ExecutionResult, Shell
from podbot.tools import params as given
from podbot.tools import tool_limits as limits
from podbot.tools.contract import AnyTool, Before, Tool, ToolAnnotations, ToolContext, ToolResult
from podbot.tools.paths import invalid, invalid_as, logical_path, parse_path, path_text
from podbot.tools.results import EvalResult, ShellExecuteResult
from podbot.tools.tool_failures import settled

_CHANGES = ToolAnnotations(destructive=True)
# Its own variables for standard streams: an image may have a locale that cannot encode what a program prints.
_PYTHON_ENV = {"PYTHONIOENCODING": "utf-8:backslashreplace"}


class ShellTools:
    """Both tools on one shell, whose root is the workspace.

    The shell needs ``SUITE_SHELL_LIMITS``, since code travels on stdin. ``before``: called before each use of it; its
    errors are the tool's. ``code_chars``: the most characters of ``evaluate_python``; None for no limit but its time.
    ``python``: the interpreter. A command that fails is a success of ``shell_execute``; a program that fails is none of
    ``evaluate_python``, and its output is still in the value.
    """

    def __init__(self, shell: Shell, before: Before, *, code_chars: int | None = None, python: str = "python3") -> None:
        self._shell, self._before = shell, before
        self._code_chars, self._python = code_chars, python

    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, each under its name."""
        return (
            Tool(
                name="shell_execute",
                description="Run a command in the workspace, for at most 120 seconds. "
                "Returns its exit code and at most 32 KiB of what it prints.",
                params_type=given.ShellExecuteParams,
                result_type=ShellExecuteResult,
                handler=self._shell_execute,
                annotations=_CHANGES,
            ),
            Tool(
                name="evaluate_python",
                description="Run a Python program in the workspace, for at most 5 seconds. "
                "Returns the first 4,096 characters that it prints on stdout and on stderr.",
                params_type=given.EvalParams,
                result_type=EvalResult,
                handler=self._evaluate_python,
                annotations=_CHANGES,
            ),
        )

    def _shell_execute(
        self, params: given.ShellExecuteParams, /, *, context: ToolContext
    ) -> ToolResult[ShellExecuteResult]:
        del context
        cwd = working_directory(params.cwd)

        def call() -> ToolResult[ShellExecuteResult]:
            self._before()
            try:
                ran = self._shell.execute(
                    params.command,
                    cwd=path_text(cwd) or None,
                    env=params.env,
                    stdin=params.stdin,
                    timeout_seconds=params.timeout_seconds,
                    capture_output=params.capture_output,
                )
            except InvalidWorkingDirectory as error:
                raise invalid("cwd", logical_path(cwd), error.reason) from error
            value = _executed(params, ran, logical_path(cwd))
            return ToolResult.ok(value, f"The command {_end(ran, value.exit_code)}.")

        return settled(call)

    def _evaluate_python(self, params: given.EvalParams, /, *, context: ToolContext) -> ToolResult[EvalResult]:
        del context
        if self._code_chars is not None and len(params.code) > self._code_chars:
            raise invalid_as("code", f"{len(params.code)} characters", f"the limit is {self._code_chars}")

        def call() -> ToolResult[EvalResult]:
            self._before()
            ran = self._shell.execute(
                [self._python, "-"], env=_PYTHON_ENV, stdin=params.code, timeout_seconds=limits.PYTHON_SECONDS
            )
            return _evaluated(ran)

        return settled(call)


def working_directory(cwd: str | None) -> tuple[str, ...]:
    """The segments of a ``cwd``. Raises ToolValidationError also for an absolute path that is not below the workspace.

    The file tools take ``/src`` for the workspace's, because nothing else exists for them. For a command ``/tmp``
    exists, and running it in the workspace's ``tmp`` instead would surprise.
    """
    text = (cwd or "").strip()
    if text.startswith("/"):
        root, *_ = [segment for segment in text.split("/") if segment] or [""]
        if f"/{root}" != limits.WORKSPACE:
            raise invalid("cwd", cwd, f"it is relative to the workspace, or begins with {limits.WORKSPACE}")
    return parse_path(text, "cwd")


def _executed(params: given.ShellExecuteParams, ran: ExecutionResult, cwd: str) -> ShellExecuteResult:
    out, err = (ran.stdout, ran.stderr) if params.capture_output else (limits.CAPTURE_DISABLED,) * 2
    return ShellExecuteResult(
        command=params.command,
        cwd=cwd,
        exit_code=exit_status(ran),
        stdout=out,
        stderr=err,
        duration_ms=round(ran.duration_seconds * 1000),
        timed_out=ran.timed_out,
        truncated=ran.truncated,
    )


def _evaluated(ran: ExecutionResult) -> ToolResult[EvalResult]:
    value = EvalResult(
        value_repr=None,
        stdout=_first(ran.stdout),
        stderr=_first(ran.stderr),
        globals={},
        reads=(),
        writes=(),
        exit_code=exit_status(ran),
        timed_out=ran.timed_out,
    )
    return ToolResult(f"The program {_end(ran, value.exit_code)}.", value, ran.success)


def _first(text: str) -> str:
    most = limits.PYTHON_STREAM_CHARS
    return text if len(text) <= most else f"{text[:most]}..."


def exit_status(ran: ExecutionResult) -> int:
    """The exit code as tools report it: 124 after a time limit."""
    return limits.TIMEOUT_EXIT_CODE if ran.timed_out else ran.exit_code


def _end(ran: ExecutionResult, status: int) -> str:
    if ran.timed_out:
        return f"exceeded its time limit and was terminated after {ran.duration_seconds:.1f} s (exit code {status})"
    why = limits_met(ran) or cause_in_words(ran.signal, ran.cause)
    return f"ended with exit code {status}" + (f": {why}" if why else "")
