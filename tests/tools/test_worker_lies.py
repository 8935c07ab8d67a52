"""Files workers that lie, stall, flood, end and send frames of 4 GiB: one clear error, and another worker next time."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import WorkerLost, WorkerUnavailable
from podbot.guest.exchange import Exchange
from podbot.guest.local import LocalGuest
from podbot.shell.cancellation import CALL, Cancellation
from podbot.shell.conformance import eventually
from podbot.tools.files import Files
from tests.tools.workers import files_in, liar, refused, starts

ONCE = "request = hear()\n"
STAY = "while True: hear()\n"
PATIENT: dict[str, Any] = {"seconds": 30.0, "grace": 30.0}
SHORT: dict[str, Any] = {"seconds": 0.1, "grace": 0.1}


def lost(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(WorkerLost, match=reason) as caught:
        call()
    assert len(str(caught.value)) < 300
    assert "SECRET" not in str(caught.value)


# What a worker does after its greeting, and what podbot says of it.
VIOLATIONS = {
    "a wrong id": ('say({"id": request["id"] + 1, "ok": {}})', "wrong id"),
    "no id": ('say({"ok": {}})', "wrong id"),
    "a flag as the id": ('say({"id": True, "ok": {}})', "wrong id"),
    "neither result nor error": ('say({"id": request["id"]})', "no result"),
    "a result that is no object": ('say({"id": request["id"], "ok": []})', "no result"),
    "no JSON": (r'raw(struct.pack("!I", 6) + b"SECRET")', "not JSON"),
    "no UTF-8": (r'raw(struct.pack("!I", 1) + b"\xff")', "not JSON"),
    "no object": ('say(["SECRET"])', "not a JSON object"),
    "deep JSON": ('raw(struct.pack("!I", 200000) + b"[" * 200000)', "not JSON"),
    "a long number": ('raw(struct.pack("!I", 100000) + b"1" * 100000)', "not JSON"),
    "many values": ('say({"id": request["id"], "ok": {"x": [[]] * 300000}})', "more values than any answer"),
    "many values, and texts that hide them": (
        'say({"id": request["id"], "ok": {"x": [["\\"[", "]"]] * 100000}})', "more values than any answer",
    ),
    "a text without an end": ('raw(struct.pack("!I", 1000001) + b"\\"" + b"\\\\x" * 500000)', "not JSON"),
    "4 GiB": ('raw(b"\\xff" * 4 + b"x" * 1000)', "4294967295 bytes, over the limit"),
    "two answers": ('say({"id": request["id"], "ok": {}}); say({})', "more than one answer|was not asked|not valid"),
    "a flood": ('while True: raw(b"\\0" * 65536)', "more than one answer|not JSON"),
    "a flood of stderr": ('while True: os.write(2, b"x" * 65536)', "did not answer"),
    "an end": ("sys.exit(3)", "ended with status 3"),
    "an end in the middle": ('raw(struct.pack("!I", 100) + b"{"); sys.exit(0)', "ended with status 0"),
    "a KILL": ("os.kill(os.getpid(), 9)", "signal 9"),
    "silence": (STAY, "did not answer within"),
    "half an answer": ('raw(struct.pack("!I", 100) + b"{")\n' + STAY, "did not answer within"),
    "one byte after another": (
        'raw(struct.pack("!I", 1000000))\nwhile True: raw(b" "); time.sleep(0.001)', "did not answer within",
    ),
    "an unknown refusal": ('say({"id": request["id"], "error": {"kind": "SECRET"}})', "unknown kind"),
    "a refusal that is no object": ('say({"id": request["id"], "error": "SECRET"})', "not a JSON object"),
    "a refusal with a text for a number": (
        'say({"id": request["id"], "error": {"kind": "missing", "at": "SECRET"}})', "a number of a refusal",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VIOLATIONS)
def test_each_violation_is_one_error_and_the_next_call_starts_another_worker(
    guest: LocalGuest, root: Path, name: str
) -> None:
    script, reason = VIOLATIONS[name]
    limits = SHORT if "did not answer" in reason else PATIENT
    with files_in(guest, root, python=liar(root, ONCE + script + "\n" + STAY), **limits) as files:
        for number in (1, 2):
            lost(files.ls, reason)
            assert starts(root) == number


FILE = ["file", 1, 1]
TOKEN = "0" * 16
MARKS = {"file": "1.1", "stamp": ""}
ENTRY = ["file", 1, 0o644, "", ""]
LIES: list[tuple[str, object]] = [
    ("stat", {}), ("stat", {"facts": ["file", 1]}), ("stat", {"facts": ["SECRET", 1, 1]}),
    ("stat", {"facts": ["file", -1, 1]}), ("stat", {"facts": ["file", 1, 1 << 53]}),
    ("stat", {"facts": ["file", 1, 1.5]}), ("stat", {"facts": ["file", True, 1]}), ("stat", {"facts": [[], 1, 1]}),
    ("ls", {"entries": []}), ("ls", {"entries": {}, "truncated": False}),
    ("ls", {"entries": [["b", *FILE], ["a", *FILE]], "truncated": False}),
    ("ls", {"entries": [["a/b", *FILE]], "truncated": False}), ("ls", {"entries": [["..", *FILE]], "truncated": False}),
    ("ls", {"entries": [["", *FILE]], "truncated": False}), ("ls", {"entries": [["a\0", *FILE]], "truncated": False}),
    ("ls", {"entries": [["a" * 1021, *FILE]], "truncated": False}), ("ls", {"entries": [["a"]], "truncated": False}),
    ("ls", {"entries": [["\ud800", *FILE]], "truncated": False}), ("ls", {"entries": ["a"], "truncated": False}),
    ("ls", {"entries": [["a", *FILE]] * 2001, "truncated": False}), ("ls", {"entries": [["a", *FILE]], "truncated": 0}),
    ("read", {"content": "a", "lines": 2, "total": 2}), ("read", {"content": "a", "lines": 0, "total": 0}),
    ("read", {"content": "a\nb", "lines": 1, "total": 1}), ("read", {"content": "a", "lines": 1, "total": 0}),
    ("read", {"content": "\n" * 3, "lines": 4, "total": 4}), ("read", {"content": "a", "lines": 1, "total": 2}),
    ("read", {"content": "\ud800", "lines": 1, "total": 1}), ("read", {"content": 1, "lines": 1, "total": 1}),
    ("read", {"content": "x" * ((1 << 20) + 1), "lines": 1, "total": 1}),
    ("write", {"facts": ["directory", 0, 1]}), ("edit", {"facts": FILE, "count": 0}), ("edit", {"facts": FILE}),
    ("rm", {"kind": "file"}), ("rm", {"kind": 1, "count": 1}),
    ("glob", {"matches": [["../x", 1, 1]], "truncated": False, "skipped": 0}),
    ("glob", {"matches": [["/etc/passwd", 1, 1]], "truncated": False, "skipped": 0}),
    ("glob", {"matches": [["a//b", 1, 1]], "truncated": False, "skipped": 0}),
    ("glob", {"matches": [["b", 1, 1], ["a", 1, 1]], "truncated": False, "skipped": 0}),
    ("glob", {"matches": [], "truncated": False, "skipped": -1}), ("glob", {"matches": [], "truncated": False}),
    ("grep", {"matches": [["a", 0, "x"]], "truncated": False, "skipped": 0}),
    ("grep", {"matches": [["a", 1, "x\ny"]], "truncated": False, "skipped": 0}),
    ("grep", {"matches": [["", 1, "x"]], "truncated": False, "skipped": 0}),
    ("grep", {"matches": [["a", 2, "x"], ["a", 1, "x"]], "truncated": False, "skipped": 0}),
    ("grep", {"matches": [["a", 1, None]], "truncated": False, "skipped": 0}),
    ("grep", {"matches": [[None, 1, ""]], "truncated": False, "skipped": 0}),
    ("ls after", {"entries": [["a", *FILE]], "truncated": False}),
    ("ls after", {"entries": [["b", *FILE]], "truncated": False}),
    ("glob after", {"matches": [["a", 1, 1]], "truncated": False, "skipped": 0}),
    ("glob after", {"matches": [["b", 1, 1]], "truncated": False, "skipped": 0}),
    ("search", {"matches": [["a", 1, "x"]], "truncated": False, "skipped": 0}),
    ("search", {"matches": [["a", 1, "x", 0, 2]], "truncated": False, "skipped": 0}),
    ("search", {"matches": [["a", 1, "x", 1, 0]], "truncated": False, "skipped": 0}),
    ("search", {"matches": [["a", 1, "x", -1, 0]], "truncated": False, "skipped": 0}),
    ("search", {"matches": [["a", line, "x", 0, 1] for line in (1, 2, 3)], "truncated": False, "skipped": 0}),
    ("piece", {"data": "eA==", "facts": FILE, "stamp": ""}), ("piece", {"data": "eA==", "facts": FILE, "file": "1"}),
    ("piece", {"data": "eA==", "facts": FILE, "file": "1", "stamp": "1" * 129}),
    ("piece", {"data": "eA", "facts": FILE, **MARKS}),
    ("piece", {"data": "eHh4eA==", "facts": FILE, **MARKS}), ("piece", {"data": 1, "facts": FILE, **MARKS}),
    ("piece", {"data": "\u00fc", "facts": FILE, **MARKS}),
    ("piece", {"data": "", "facts": FILE, "file": "1" * 65, "stamp": ""}),
    ("piece", {"data": "", "facts": ["directory", 0, 1], **MARKS}),
    ("put", {"facts": ["link", 0, 1]}), ("put", {}), ("commit", {"facts": ["other", 0, 1]}),
    ("begin", {"size": 1}), ("stage", {"size": 2}), ("stage", {}), ("mkdir", {"facts": FILE}), ("mkdir", {}),
    ("link", {}), ("mode", {"facts": ["SECRET", 1, 1]}), ("inventory", {"entries": []}),
    *(("inventory", {"entries": entries, "truncated": False}) for entries in (
        [["../x", *ENTRY]], [["/x", *ENTRY]], [["x"]], [["a", *ENTRY]], [["b", *ENTRY]],
        [["c", *ENTRY]] * 2, [["d", *ENTRY], ["c", *ENTRY]], [["/".join("c" * 65), *ENTRY]], [["c" * 256, *ENTRY]],
        [["c", "file", 1, 0o1000, "", ""]], [["c", "file", 1, 0o644, "", "eA=="]], [["c", "link", 1, 0o777, "", ""]],
        [["c", "link", 1, 0o777, "", "!"]], [["c", "link", 1, 0o777, "", "AAAA"]],
        [["c", "link", 1, 0o777, "", "eHh4" * 1366]],
        [["c", "file", 1, 0o644, "1" * 129, ""]], [["c", "SECRET", 1, 0, "", ""]],
    )),
]  # fmt: skip


def calls(files: Files) -> dict[str, Callable[[], object]]:
    return {
        "stat": lambda: files.stat(("x",)), "ls": files.ls, "read": lambda: files.read(("x",), limit=3),
        "write": lambda: files.write(("x",), ""), "edit": lambda: files.edit(("x",), "a", "b"),
        "rm": lambda: files.rm(("x",)), "glob": lambda: files.glob("*"), "grep": lambda: files.grep("x"),
        "ls after": lambda: files.ls(after="b"), "glob after": lambda: files.glob("*", after="b"),
        "search": lambda: files.search("x", most=2), "piece": lambda: files.piece(("x",), limit=3),
        "put": lambda: files.put(("x",), b"", how="create"),
        "commit": lambda: files.commit(("x",), TOKEN, size=3, how="create"),
        "begin": lambda: files.begin(("x",), TOKEN, how="create"),
        "stage": lambda: files.stage(("x",), TOKEN, b"abc", offset=0), "mkdir": lambda: files.mkdir(("x",)),
        "link": lambda: files.link(("x",), b"y"), "mode": lambda: files.set_bits(("x",), 0),
        "inventory": lambda: files.inventory(after="b"),
    }  # fmt: skip


def test_a_result_that_cannot_be_true_is_a_lie(guest: LocalGuest, root: Path) -> None:
    """One liar answers all of them: a line of its file is the answer to the next request."""
    answers = root / "answers"
    answers.write_text("".join(json.dumps(answer) + "\n" for _, answer in LIES))
    script = (
        f"request = hear()\nnumber = int(open({str(root / 'log')!r}).read().count('started')) - 1\n"
        f"say({{'id': request['id'], 'ok': json.loads(open({str(answers)!r}).readlines()[number])}})\n"
    )
    with files_in(guest, root, python=liar(root, script + STAY), **PATIENT) as files:
        for number, (operation, _) in enumerate(LIES, 1):
            lost(calls(files)[operation], "its answer is not valid")
            assert starts(root) == number


@pytest.mark.parametrize(
    ("script", "error", "reason"),
    [
        ("sys.exit(38)", WorkerUnavailable, "older than 3.8"),
        ("sys.exit(127)", WorkerUnavailable, "no python3"),
        ("sys.exit(126)", WorkerLost, "cannot be started, or there are too many processes"),
        ("sys.exit(1)", WorkerLost, "status 1 when it was started"),
        ('say({"id": 0, "ok": {"version": 2}})', WorkerLost, "another version"),
        ('say({"id": 0, "ok": {}})', WorkerLost, "another version"),
        ('say({"id": 1, "ok": {"version": 1}})', WorkerLost, "wrong id"),
        ('say({"id": 0, "error": {}})', WorkerUnavailable, "cannot be opened"),
        ('raw(b"\\xff" * 8)', WorkerLost, "over the limit"),
    ],
)
def test_greetings(guest: LocalGuest, root: Path, script: str, error: type[Exception], reason: str) -> None:
    python = liar(root, f"{script}\n{STAY}", greets=False)
    with files_in(guest, root, python=python, **PATIENT) as files, pytest.raises(error, match=reason):
        files.ls()


def test_a_missing_interpreter_and_a_missing_directory(guest: LocalGuest, root: Path) -> None:
    with files_in(guest, root, python="no-such-python") as files, pytest.raises(WorkerUnavailable, match="no python3"):
        files.ls()
    with files_in(guest, root / "none") as files, pytest.raises(WorkerUnavailable, match="cannot be opened"):
        files.ls()


def test_a_worker_that_reads_nothing_does_not_hold_a_long_request(guest: LocalGuest, root: Path) -> None:
    with files_in(guest, root, python=liar(root, "time.sleep(600)\n"), **SHORT) as files:
        lost(lambda: files.write(("x",), "x" * (1 << 20)), "did not answer within")


def test_a_worker_that_ended_between_two_calls_is_replaced_without_an_error(guest: LocalGuest, root: Path) -> None:
    pid = root / "pid"
    answer = 'say({"id": request["id"], "ok": {"entries": [], "truncated": False}})\n'
    script = f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n" + ONCE + answer
    with files_in(guest, root, python=liar(root, script), **PATIENT) as files:
        for number in range(1, 4):
            assert files.ls().entries == ()
            assert starts(root) == number
            eventually(lambda: not os.path.exists(f"/proc/{pid.read_text()}"), what="the worker's end")
            guest.channel.jobs()  # the guest has reported the end before it answers this


def test_what_a_worker_says_of_a_pattern_is_shortened_and_printable(guest: LocalGuest, root: Path) -> None:
    error = {"kind": "bad_pattern", "reason": "a\x1b[2J\n" + "b" * 9000}
    script = f"while True:\n request = hear()\n say({{'id': request['id'], 'error': {error!r}}})\n"
    with files_in(guest, root, python=liar(root, script), **PATIENT) as files:
        text = str(refused(lambda: files.grep("x"), "bad_pattern"))
    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 500


def test_a_refusal_is_not_an_end(guest: LocalGuest, root: Path) -> None:
    script = "while True:\n request = hear()\n say({'id': request['id'], 'error': {'kind': 'missing', 'at': 7}})\n"
    with files_in(guest, root, python=liar(root, script), **PATIENT) as files:
        for _ in range(3):
            assert str(refused(files.ls, "missing")) == "cannot ls /: / does not exist (missing)"
    assert starts(root) == 1


def test_a_call_can_be_cancelled_from_another_thread(guest: LocalGuest, root: Path) -> None:
    call = Cancellation()
    with files_in(guest, root, python=liar(root, STAY), **PATIENT) as files:

        def wait() -> None:
            CALL.set(call)
            lost(files.ls, "signal|status")
            over.set()

        over = threading.Event()
        thread = threading.Thread(target=wait)
        thread.start()
        eventually(lambda: starts(root) == 1, what="the worker's start")
        call.cancel()
        thread.join()
        assert over.is_set()


def waits_for_guest(thread: int) -> bool:
    """Whether a thread has sent its request: one that is interrupted before that ends the channel."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented, and nothing else tells
    while frame is not None and frame.f_code is not Exchange.wait.__code__:
        frame = frame.f_back
    return frame is not None


def test_an_interrupted_call_ends_its_worker(guest: LocalGuest, root: Path) -> None:
    """The answer that the interrupted call waited for must not become that of the next one."""
    heard = root / "heard"
    script = (
        f"first = open({str(root / 'log')!r}).read().count('started') == 1\n"
        f"while True:\n request = hear()\n open({str(heard)!r}, 'w').close()\n"
        " if not first: say({'id': request['id'], 'ok': {'entries': [], 'truncated': False}})\n"
    )

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    def once_heard(interrupted: int) -> None:
        """The worker has the request, which it never answers: the call is waiting for the answer."""
        eventually(lambda: heard.exists() and waits_for_guest(interrupted), what="the request")
        signal.pthread_kill(interrupted, signal.SIGALRM)

    thread = threading.Thread(target=once_heard, args=(threading.get_ident(),))
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with files_in(guest, root, python=liar(root, script), **PATIENT) as files:
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                files.ls()
            assert files.ls().entries == ()
            assert starts(root) == 2
    finally:
        thread.join()
        signal.signal(signal.SIGALRM, before)
