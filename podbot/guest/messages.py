"""The messages between podbot and a guest, as values. Messages from a guest are hostile and are validated."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from podbot.errors import BadWorkingDirectory, CommandRefused
from podbot.exec_spec import is_argument, is_env_name
from podbot.frozen import Frozen, field
from podbot.guest import frames
from podbot.visible_text import printable

_TEXT = frames.TEXT_LIMIT
_SHOWN = 300  # characters of a guest's words in an error
_PIDS = 1 << 22  # the kernel's limit for process ids
_TOTAL = 1 << 53
_IDS = (1 << 32) - 1
# What the guest of an older podbot, in a kept session, does not say.
_NEWER: Mapping[str, Any] = {"memory_kills": 0, "forks_refused": 0, "disk_full": False, "left_job": 0, "cause": ""}
# Why a command ended by something else than itself. The last one: a process sent the signal, or nothing is known of it.
Cause = Literal[
    "", "deadline", "out_of_memory", "podbot", "terminal", "sandbox_end",
    "fault", "closed_pipe", "timer", "limit", "refused_call", "sent",
]  # fmt: skip
CAUSES: tuple[Cause, ...] = get_args(Cause)


class Malformed(ValueError):
    """A message from a guest is not valid. The text of this error contains nothing of it."""


class GuestCommand(Frozen):
    """A command for a guest.

    ``argv``: program and arguments; the program is looked up in the PATH that the command will have. ``cwd``: an
    absolute path; empty means the guest's root. ``within``: a directory that no link in ``cwd`` may lead out of; empty
    allows every link. ``env``: additional variables; with ``env_mode`` "replace", the command gets only these and PATH.
    ``stdin``: "none" means an immediate end of file; with "lent" the guest gives credit for the first bytes, at most
    one page, only when the command has read them. ``deadline``: seconds after which all its
    processes get TERM, and KILL after a further ``term_grace`` seconds; a process that hides on purpose is not found
    (ADR 0031). ``rlimits``: soft and hard limits by their names without ``RLIMIT_``. ``tty``: columns and rows of its
    terminal; all output is then on stdout. ``discard``: whether the output is discarded. ``user``: ``USER`` or
    ``USER:GROUP``, names or numbers, for a guest that is root; empty means the guest's own user. ``keep``: above 0, the
    command is a job: the guest keeps that many bytes of each stream, and the job continues when the channel is closed.
    ``keep_left``: above 0, processes that have its output open when it has ended become a job, of which that many
    bytes are kept; else nothing reads what they print. A guest of an older podbot does the latter. ``term_choices``:
    values for TERM, in place of that in ``env``: it gets the first that the sandbox has a terminfo entry for. If it has
    none of them, or its guest is of an older podbot, ``env`` counts.
    """

    argv: tuple[str, ...]
    cwd: str = ""
    within: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    env_mode: Literal["extend", "replace"] = "extend"
    stdin: Literal["none", "open", "lent"] = "none"
    deadline: float | None = None
    term_grace: float = 2.0
    rlimits: Mapping[str, int] = field(default_factory=dict)
    tty: tuple[int, int] | None = None
    discard: bool = False
    user: str = ""
    keep: int = 0
    keep_left: int = 0
    term_choices: tuple[str, ...] = ()

    def document(self, window: int, *, discard: bool) -> bytes:
        """The request as JSON. ``window``: bytes of output that the guest may send before podbot gives credit.

        Raises CommandRefused for texts that no program can get. The guest would close the connection for them.
        """
        texts = (*self.argv, *self.env, *self.env.values(), *self.term_choices, self.cwd, self.within, self.user)
        if not is_argument("".join(texts)):
            reason = "an argument, a variable or a path of it has a NUL character or a lone surrogate"
            raise CommandRefused(field="command", value="", reason=reason)
        if not all(map(is_env_name, self.env)):
            raise CommandRefused(field="env", value="", reason="a name of a variable is empty, or has an equals sign")
        words = {
            "argv": list(self.argv),
            "cwd": self.cwd,
            "within": self.within,
            "env": dict(self.env),
            "mode": self.env_mode,
            "stdin": self.stdin != "none",
            "lent": self.stdin == "lent",
            "deadline": self.deadline,
            "grace": self.term_grace,
            "rlimits": dict(self.rlimits),
            "tty": self.tty,
            "discard": discard,
            "user": self.user,
            "keep": self.keep,
            "keep_left": self.keep_left,
            "term_choices": self.term_choices,
            "window": window,
        }
        return json.dumps(words, allow_nan=False).encode("ascii")


class Ended(Frozen):
    """How a command ended.

    ``code``: its exit status; 128 + the signal if a signal ended it; 127 not found, 126 not executable. ``signal``: the
    signal that ended it. ``timed_out``: its deadline passed. ``out_of_memory``: KILL ended it, and while it ran
    the kernel killed a process of the sandbox because memory ran out. ``seconds``: from start to end. ``survivors``:
    the number of processes that KILL did not end within 5 s. ``memory_kills``: how many of the sandbox's processes
    the kernel killed meanwhile because memory ran out; ``forks_refused``: how many new ones it refused because of the
    limit of processes. ``disk_full``: it failed, and then the file system of ``/`` was full. ``left_job``: the number
    of the job of the processes that it left with its output open; 0 if it left none. ``cause``: why it ended by
    something else than itself; empty if it ended by itself, or a guest of an older podbot does not say it.
    """

    code: int
    signal: int | None
    timed_out: bool
    out_of_memory: bool
    seconds: float
    survivors: int = 0
    memory_kills: int = 0
    forks_refused: int = 0
    disk_full: bool = False
    left_job: int = 0
    cause: Cause = ""


class GuestFacts(Frozen):
    """The facts that a guest reports. ``shell``: the path of a shell, or empty; ``path``: the guest's PATH."""

    version: int
    python: str
    uid: int
    gid: int
    pid: int
    cwd: str
    root: str
    shell: str
    path: str
    home: str


class JobState(Frozen):
    """A job. ``started``: seconds since the epoch; ``ended``: None while it runs; ``totals``: bytes of each stream."""

    job: int
    argv: tuple[str, ...]
    started: float
    ended: Ended | None
    totals: tuple[int, int]


class JobOutput(Frozen):
    """A part of a job's stream. ``offset``: where ``data`` begins; ``total``: bytes that the job has printed there."""

    offset: int
    data: bytes
    total: int


def parsed(payload: bytes) -> dict[str, Any]:
    """A JSON object. Raises Malformed."""
    try:
        found = json.loads(payload.decode())
    except (ValueError, RecursionError):
        raise Malformed("it is not JSON") from None
    if not isinstance(found, dict):
        raise Malformed("it is not a JSON object")
    return found


def facts_from(payload: bytes) -> GuestFacts:
    """Raises Malformed."""
    message = parsed(payload)
    return GuestFacts(
        version=_number(message, "version", 0, _IDS),
        python=_text(message, "python"),
        uid=_number(message, "uid", 0, _IDS),
        gid=_number(message, "gid", 0, _IDS),
        pid=_number(message, "pid", 0, _PIDS),
        cwd=_text(message, "cwd"),
        root=_text(message, "root"),
        shell=_text(message, "shell"),
        path=_text(message, "path"),
        home=_text(message, "home"),
    )


def ended_from(payload: bytes | Mapping[str, Any]) -> Ended:
    """Raises Malformed."""
    message = {**_NEWER, **(parsed(payload) if isinstance(payload, bytes) else payload)}
    signal = message.get("signal")
    return Ended(
        code=_number(message, "code", 0, 255),
        signal=None if signal is None else _number(message, "signal", 1, 64),
        timed_out=_flag(message, "timed_out"),
        out_of_memory=_flag(message, "out_of_memory"),
        seconds=_seconds(message, "seconds"),
        survivors=_number(message, "survivors", 0, _PIDS),
        memory_kills=_number(message, "memory_kills", 0, _TOTAL),
        forks_refused=_number(message, "forks_refused", 0, _TOTAL),
        disk_full=_flag(message, "disk_full"),
        left_job=_number(message, "left_job", 0, _TOTAL),
        cause=_cause(message, ended_by_signal=signal is not None),
    )


def _cause(message: Mapping[str, Any], *, ended_by_signal: bool) -> Cause:
    """The cause, which must agree with the rest. A guest of an older podbot says the first two only by their flags."""
    if message["timed_out"]:
        return "deadline"
    if message["out_of_memory"]:
        return "out_of_memory"
    value = message["cause"]
    for known in CAUSES:
        alone = known in ("", "sandbox_end")  # a program may handle the TERM of its sandbox's end
        if value == known and (alone or (ended_by_signal and known not in ("deadline", "out_of_memory"))):
            return known
    raise Malformed("cause is not a cause of such an end")


def started_from(payload: bytes, choices: int = 0) -> tuple[int, int, int | None]:
    """The process id inside, the number of the job or 0, and the index of the chosen TERM. Raises Malformed.

    ``choices``: how many were sent. None, also from a guest of an older podbot: it chose none of them.
    """
    message = parsed(payload)
    term = None if message.get("term") is None else _number(message, "term", 0, choices - 1)
    return _number(message, "pid", 0, _PIDS), _number(message, "job", 0, _TOTAL), term


def refused_from(payload: bytes) -> tuple[str, str, str]:
    """Field, value and reason. Raises Malformed."""
    message = parsed(payload)
    return _text(message, "field"), _text(message, "value"), _text(message, "reason")


def refusal(payload: bytes) -> CommandRefused:
    """The error that a REFUSED frame reports, whose words are shown. Raises Malformed."""
    field_name, value, reason = refused_from(payload)
    field_name, reason = printable(field_name)[:_SHOWN], printable(reason)[:_SHOWN]
    kind = BadWorkingDirectory if field_name == "cwd" else CommandRefused
    return kind(field=field_name, value=value, reason=reason)


def job_from(message: object) -> JobState:
    """Raises Malformed."""
    if not isinstance(message, dict):
        raise Malformed("a job is not a JSON object")
    argv, ended, totals = message.get("argv"), message.get("ended"), message.get("totals")
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv) or len(argv) > _TEXT:
        raise Malformed("a job's command is not a list of texts")
    if not isinstance(totals, list) or len(totals) != 2:
        raise Malformed("a job's totals are not two numbers")
    out, err = (_number({"total": total}, "total", 0, _TOTAL) for total in totals)
    if ended is not None and not isinstance(ended, dict):
        raise Malformed("a job's end is not a JSON object")
    return JobState(
        job=_number(message, "job", 1, _TOTAL),
        argv=tuple(argv),
        started=_seconds(message, "started"),
        ended=ended_from(ended) if ended is not None else None,
        totals=(out, err),
    )


def jobs_from(payload: bytes) -> tuple[tuple[JobState, ...], bool]:
    """A part of the list of jobs, in the order of their numbers, and whether there are more. Raises Malformed."""
    message = parsed(payload)
    found = message.get("jobs")
    if not isinstance(found, list):
        raise Malformed("a list of jobs is not a list")
    jobs, more = tuple(job_from(one) for one in found), _flag(message, "more")
    if any(later.job <= earlier.job for earlier, later in itertools.pairwise(jobs)) or (more and not jobs):
        raise Malformed("a list of jobs is not in order, or an empty part of it is not the last")
    return jobs, more


def output_from(payload: bytes) -> JobOutput:
    """Raises Malformed."""
    if len(payload) < frames.DATA.size:
        raise Malformed("a job's output lacks its offset")
    offset, total = frames.DATA.unpack_from(payload)
    data = payload[frames.DATA.size :]
    if offset + len(data) > total:
        raise Malformed("a job's output exceeds its total")
    return JobOutput(offset, data, total)


def _text(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str) or len(value) > _TEXT:
        raise Malformed(f"{name} is not a text, or is too long")
    return value


def _flag(message: Mapping[str, Any], name: str) -> bool:
    value = message.get(name)
    if not isinstance(value, bool):
        raise Malformed(f"{name} is neither true nor false")
    return value


def _number(message: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Malformed(f"{name} is not a number from {low} to {high}")
    return value


def _seconds(message: Mapping[str, Any], name: str) -> float:
    value = message.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < _TOTAL:
        raise Malformed(f"{name} is not a number of seconds")
    return value if math.isfinite(value) else 0.0
