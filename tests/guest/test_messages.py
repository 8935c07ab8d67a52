"""What a guest says becomes a value, or is refused; nothing of it is believed without a look."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import CommandRefused
from podbot.exec_spec import is_argument, is_env_name
from podbot.guest import frames, messages
from podbot.guest.messages import Ended, GuestCommand, Malformed

ENDED = {"code": 3, "signal": None, "timed_out": False, "out_of_memory": False, "seconds": 0.5, "survivors": 0}
FACTS = {
    "version": 1, "python": "3.8.1", "uid": 0, "gid": 0, "pid": 2,
    "cwd": "/", "root": "/", "shell": "/bin/sh", "path": "/bin", "home": "/root",
}  # fmt: skip
JOB = {"job": 4, "argv": ["make"], "started": 1e9, "ended": None, "totals": [3, 0]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
READERS: list[Callable[[bytes], object]] = [
    messages.facts_from, messages.ended_from, messages.started_from, messages.refused_from, messages.jobs_from,
    messages.output_from, lambda payload: messages.job_from(messages.parsed(payload)),
]  # fmt: skip


def _said(document: object) -> bytes:
    return json.dumps(document).encode()


def test_an_end_is_read() -> None:
    assert messages.ended_from(_said(ENDED)) == Ended(3, None, timed_out=False, out_of_memory=False, seconds=0.5)
    counted = messages.ended_from(_said({**ENDED, "memory_kills": 2, "forks_refused": 7}))
    assert (counted.memory_kills, counted.forks_refused) == (2, 7), "a guest of an older podbot says neither"
    assert messages.ended_from(_said({**ENDED, "disk_full": True})).disk_full
    with pytest.raises(messages.Malformed):
        messages.ended_from(_said({**ENDED, "disk_full": 1}))
    assert messages.ended_from(_said({**ENDED, "left_job": 5})).left_job == 5
    killed = messages.ended_from(_said({**ENDED, "code": 137, "signal": 9, "timed_out": True}))
    assert (killed.code, killed.signal, killed.timed_out) == (137, 9, True)
    assert messages.ended_from(_said({**ENDED, "code": 139, "signal": 11, "cause": "fault"})).cause == "fault"
    assert messages.ended_from(_said({**ENDED, "cause": "sandbox_end"})).cause == "sandbox_end", "TERM was handled"


def test_a_guest_of_an_older_podbot_names_no_cause_but_those_that_it_has_flags_for() -> None:
    ends = ({"signal": 9}, {"signal": 15, "timed_out": True}, {"code": 137, "out_of_memory": True})
    found = [messages.ended_from(_said({**ENDED, **end})).cause for end in ends]
    assert found == ["", "deadline", "out_of_memory"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("code", 256), ("code", -1), ("code", "0"), ("code", True), ("code", None), ("signal", 0), ("signal", 65),
        ("timed_out", 1), ("timed_out", None), ("seconds", -1), ("seconds", "1"), ("seconds", float("nan")),
        ("seconds", 1e300), ("survivors", 1 << 30), ("survivors", -1),
        ("cause", "fault"), ("cause", "deadline"), ("cause", "out_of_memory"), ("cause", "x"), ("cause", None),
        ("cause", ["sent"]), ("left_job", -1), ("left_job", 1 << 70), ("left_job", "1"), ("left_job", True),
        ("memory_kills", -1),
    ],
)  # fmt: skip
def test_an_end_that_cannot_be_is_refused(name: str, value: object) -> None:
    with pytest.raises(Malformed, match=name):
        messages.ended_from(_said({**ENDED, name: value}))


@pytest.mark.parametrize("cause", ["deadline", "out_of_memory", "\x1b[31mroot", "Fault", "sent ", 1, {}, True])
def test_a_cause_that_is_not_a_word_of_podbot_s_or_contradicts_the_end_is_refused(cause: object) -> None:
    with pytest.raises(Malformed, match=r"^cause is not"):
        messages.ended_from(_said({**ENDED, "code": 139, "signal": 11, "cause": cause}))


@pytest.mark.parametrize(
    ("name", "value"), [("uid", -1), ("pid", 1 << 40), ("shell", "x" * 5000), ("cwd", None), ("version", "1")]
)
def test_facts_that_cannot_be_are_refused(name: str, value: object) -> None:
    assert messages.facts_from(_said(FACTS)).shell == "/bin/sh"
    with pytest.raises(Malformed, match=name):
        messages.facts_from(_said({**FACTS, name: value}))


@pytest.mark.parametrize(
    "change",
    [
        {"argv": "make"}, {"argv": [1]}, {"argv": ["x"] * 5000}, {"totals": [1]}, {"totals": [1, -1]},
        {"ended": 1}, {"job": 0}, {"started": None},
    ],
)  # fmt: skip
def test_jobs_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    jobs, more = messages.jobs_from(_said({"jobs": [JOB, {**JOB, "job": 5, "ended": ENDED}], "more": True}))
    assert (jobs[0].ended, jobs[1].ended is None, more) == (None, False, True)
    with pytest.raises(Malformed):
        messages.jobs_from(_said({"jobs": [{**JOB, **change}], "more": False}))


def test_output_of_a_job_lies_within_its_total() -> None:
    found = messages.output_from(frames.DATA.pack(5, 9) + b"text")
    assert (found.offset, found.data, found.total) == (5, b"text", 9)
    for payload in (b"", frames.DATA.pack(5, 8) + b"text"):
        with pytest.raises(Malformed):
            messages.output_from(payload)


@given(st.none() | st.integers(-2, 9) | st.floats() | st.booleans() | st.text(max_size=2), st.integers(0, 8))
def test_a_chosen_term_is_one_of_those_that_were_sent(term: object, choices: int) -> None:
    """A guest of an older podbot names none."""
    said = _said({"pid": 7, "job": 0, "term": term})
    if term is None or (type(term) is int and 0 <= term < choices):
        assert messages.started_from(said, choices) == (7, 0, term)
    else:
        with pytest.raises(Malformed):
            messages.started_from(said, choices)
    assert messages.started_from(_said({"pid": 7, "job": 0}), choices) == (7, 0, None)


@given(st.binary(max_size=200) | JSON.map(lambda found: json.dumps(found).encode()))
def test_whatever_is_said_is_a_value_or_malformed(payload: bytes) -> None:
    for read in READERS:
        with contextlib.suppress(Malformed):
            read(payload)


def test_deep_nesting_is_malformed() -> None:
    with pytest.raises(Malformed):
        messages.parsed(b"[" * 60_000)


WORDS = st.binary(min_size=1, max_size=20).map(lambda data: data.decode("utf-8", "surrogateescape"))
TEXTS = WORDS | st.text(max_size=5)


@given(st.lists(TEXTS, min_size=1), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_a_request_is_ascii_and_loses_nothing_or_is_refused(argv: list[str], env: dict[str, str]) -> None:
    usable = all(map(is_argument, (*argv, *env, *env.values()))) and all(map(is_env_name, env))
    try:
        document = GuestCommand(tuple(argv), env=env).document(1024, discard=False)
    except CommandRefused:
        assert not usable
        return
    assert usable
    assert document.isascii()
    found = json.loads(document)
    assert (found["argv"], found["env"], found["window"]) == (argv, env, 1024)


@given(st.text(max_size=20) | WORDS)
def test_what_a_program_can_get_is_what_the_kernel_takes(word: str) -> None:
    if is_argument(word):
        assert b"\0" not in word.encode("utf-8", "surrogateescape")
    else:
        assert "\0" in word or any("\ud800" <= character <= "\udfff" for character in word)
    assert not is_env_name(word + "=")


def test_a_deadline_that_is_no_number_is_not_sent() -> None:
    with pytest.raises(ValueError, match="JSON"):
        GuestCommand(("true",), deadline=float("nan")).document(0, discard=False)
