"""The results of a captured command, as text and as bytes."""

from __future__ import annotations

from dataclasses import dataclass

from podbot.execution.causes import cause_in_words, signal_name
from podbot.guest.messages import Cause
from podbot.visible_text import printable

_SHOWN = 4000  # characters of each stream that a printed result shows
_WORDS = 80  # characters of the command that it shows


class _Printed:
    """How a result prints: one line that says what happened, and its output with control characters made visible."""

    __slots__ = ()

    exit_code: int
    stdout: str | bytes
    stderr: str | bytes
    command: tuple[str, ...]
    duration_seconds: float
    truncated: bool
    timed_out: bool
    signal: int | None
    out_of_memory: bool
    forks_refused: int
    disk_full: bool
    left_job: str | None
    cause: Cause

    @property
    def success(self) -> bool:
        """Whether it ended by itself with status 0: not if it did so because its sandbox was ending."""
        return self.exit_code == 0 and not self.timed_out and not self.cause

    @property
    def summary(self) -> str:
        """What happened, in one line: ``make test: exit code 2 after 3.1 s``."""
        import shlex

        words = _visible(shlex.join(self.command)).replace("\n", "\\n")
        words = words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…"
        notes = f"; {met}" if not self.out_of_memory and (met := limits_met(self)) else ""
        notes += "; some of its output is missing" if self.truncated else ""
        notes += f"; its background processes are job {self.left_job}" if self.left_job else ""
        return f"{words}: {self._end()} after {self.duration_seconds:.3g} s{notes}"

    def _end(self) -> str:
        if self.timed_out:
            return "terminated by its timeout"
        if self.out_of_memory:
            return "killed, because the sandbox's memory was used up,"
        if self.signal is not None:
            told = cause_in_words(self.signal, self.cause)
            return f"ended by {told}," if told else f"ended by {signal_name(self.signal)}"
        if self.cause == "sandbox_end":
            return f"exit code {self.exit_code}, at the end of its sandbox,"
        return f"exit code {self.exit_code}"

    def __str__(self) -> str:
        shown = [self.summary]
        for name, output in (("stdout", self.stdout), ("stderr", self.stderr)):
            text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
            if text:
                shown += [f"--- {name}", _visible(_shortened(text)).removesuffix("\n")]
        return "\n".join(shown)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}; stdout {len(self.stdout)}, stderr {len(self.stderr)}>"


@dataclass(frozen=True, slots=True, repr=False)
class ExecutionResult(_Printed):
    """A command that ended. ``exit_code``: its own status; -1 when it was terminated after its timeout.

    ``stdout``, ``stderr``: its output, empty when it was not captured; bytes that are not UTF-8 became replacement
    characters. ``cwd``: the directory inside. ``truncated``: some of the output is missing. ``signal``: the signal
    that killed it, or by which podbot ended it, else None. ``out_of_memory``: the kernel killed it because the
    sandbox's memory was used up. ``memory_kills``: how many processes of the sandbox it killed for that meanwhile.
    ``forks_refused``: how many new processes it refused the sandbox meanwhile, because of the limit of processes.
    ``disk_full``: the command failed, and then a file system was full that it could write to. ``left_job``: the id of
    the job of processes that it left with its output open, or None. ``cause``: why it ended by something else than
    itself, one of podbot.shell.types.Cause, else "". ``print`` shows all of it that a person wants to see.
    """

    exit_code: int
    stdout: str
    stderr: str
    command: tuple[str, ...]
    cwd: str
    duration_seconds: float
    truncated: bool = False
    timed_out: bool = False
    signal: int | None = None
    out_of_memory: bool = False
    memory_kills: int = 0
    forks_refused: int = 0
    disk_full: bool = False
    left_job: str | None = None
    cause: Cause = ""


@dataclass(frozen=True, slots=True, repr=False)
class BytesResult(_Printed):
    """A command that ended, with the first bytes of each stream, undecoded. The other fields: see ExecutionResult."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    command: tuple[str, ...]
    cwd: str
    duration_seconds: float
    truncated: bool = False
    timed_out: bool = False
    signal: int | None = None
    out_of_memory: bool = False
    memory_kills: int = 0
    forks_refused: int = 0
    disk_full: bool = False
    left_job: str | None = None
    cause: Cause = ""


def limits_met(result: _Printed) -> str:
    """Which limits of the sandbox may be why the command failed, in words; empty if none, or if it did not fail."""
    if result.success:
        return ""
    met = ["the sandbox's memory was used up"] * result.out_of_memory
    met += ["the sandbox had as many processes as it may"] * (result.forks_refused > 0)
    met += ["a disk was full"] * result.disk_full
    return ", and ".join(met)


def _shortened(text: str) -> str:
    """The beginning and the end of a long text; the end of a log says most."""
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _visible(text: str) -> str:
    """Terminals obey control characters, and the command's output is not trusted."""
    return printable(text, keep="\n\t")
