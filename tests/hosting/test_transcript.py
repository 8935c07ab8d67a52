"""The content of a transcript, its permissions, and the behaviour when it cannot be written."""

from __future__ import annotations

import json
import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PathError
from podbot.events import Event
from podbot.hosting.transcript import HEAD, LAST, LIMIT, WHOLE, Lines, Transcript
from tests.streams.channels import Refusal


@pytest.fixture
def path(tmp_path: os.PathLike[str]) -> str:
    return os.path.join(tmp_path, "t.jsonl")


@pytest.fixture
def transcript(path: str, events: list[Event]) -> Iterator[Transcript]:
    made = Transcript(path, session="shop", secrets=["s3cretvalue"], emit=events.append)
    yield made
    made.close()


def lines(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_line_for_each_frame_in_any_chunks(path: str, transcript: Transcript) -> None:
    transcript.passed("agent", b'{"id":1,"meth', "client")
    transcript.passed("client", b'{"id":"a","result":"s3cretvalue"}\n', "agent")
    transcript.passed("agent", b'od":"session/new","params":{"env":{"K":"v"}}}\n{"id":2}\n', "client")
    transcript.passed("agent", b'{"id":"7","error":{}}\n', "podbot")
    transcript.passed("client", b'[{"method":"x"}]', "agent")
    transcript.ended("client")
    transcript.refused(Refusal("agent"))
    transcript.refused(Refusal("agent", None, "8", 20, "removed_login"))
    transcript.close()
    found = lines(path)
    for line in found:
        assert line.pop("time").endswith("Z")
        assert line.pop("session") == "shop"
    frame = {"cut": False, "method": None}
    assert found == [
        {**frame, "to": "client", "from": "agent", "size": 33, "id": "a", "text": '{"id":"a","result":"[redacted]"}'},
        {
            **frame,
            "to": "agent",
            "from": "client",
            "size": 58,
            "method": "session/new",
            "id": 1,
            "text": '{"id":1,"method":"session/new","params":{"env":"[redacted]"}}',
        },
        {**frame, "to": "agent", "from": "client", "size": 8, "id": 2, "text": '{"id":2}'},
        {**frame, "to": "agent", "from": "podbot", "size": 21, "id": "7", "text": '{"id":"7","error":{}}'},
        {**frame, "to": "client", "from": "agent", "size": 16, "id": None, "text": '[{"method":"x"}]'},
        {"from": "agent", "size": 10, "method": "fs/x", "id": 7, "refused": "denied_method"},
        {"from": "agent", "size": 20, "method": None, "id": 8, "changed": "removed_login"},
    ]


def test_refused_frames_are_redacted_as_well(path: str, transcript: Transcript) -> None:
    transcript.refused(Refusal("agent", method="fs/s3cretvalue", id='"s3cretvalue"'))
    transcript.close()
    (line,) = lines(path)
    assert (line["method"], line["id"]) == ("fs/[redacted]", "[redacted]")


@pytest.mark.parametrize("raw", ["7", '"a"', "1.5", "null", '"' + "x" * 90 + '"'])
def test_an_id_is_spelled_alike_in_all_lines(path: str, transcript: Transcript, raw: str) -> None:
    transcript.passed("agent", f'{{"id":{raw},"method":"x"}}\n'.encode(), "client")
    transcript.refused(Refusal("agent", id=raw))
    transcript.refused(Refusal("agent", id=None))
    transcript.refused(Refusal("agent", id='"clip...'))
    transcript.close()
    passed, refused, without, clipped = lines(path)
    assert passed["id"] == refused["id"] == json.loads(raw)
    assert (without["id"], clipped["id"]) == (None, '"clip...')


def test_what_is_no_json_and_what_is_long(path: str, events: list[Event]) -> None:
    transcript = Transcript(path, session="shop", secrets=[], emit=events.append, whole=20_000)
    transcript.passed("client", b"apiKey: oops\n", "agent")
    transcript.passed("client", json.dumps({"method": "m" * 5000, "id": 1e400}).encode() + b"\n", "agent")
    for _ in range(3):
        transcript.passed("client", b'"' + b"x" * 9_000, "agent")
    transcript.passed("client", b"\n", "agent")
    transcript.close()
    found = lines(path)
    assert [line["size"] for line in found] == [12, 5030, 27_003]
    assert [line["text"] and len(line["text"]) for line in found] == [None, HEAD, None]
    assert [line["cut"] for line in found] == [False, True, False]
    assert [line["id"] for line in found] == [None, "…", None]
    assert found[1]["method"] == "m" * 200


@given(st.lists(st.binary(max_size=12) | st.just(b"\n")))
def test_lines_out_of_chunks(chunks: list[bytes]) -> None:
    assembled = Lines()
    found = [line for chunk in chunks for line in assembled.feed(chunk)] + list(assembled.rest())
    assert [head for head, _ in found] == [line for line in b"".join(chunks).split(b"\n") if line]
    assert all(len(head) == size for head, size in found)


def test_only_its_owner_may_read_it_and_nothing_is_wiped_out(path: str, events: list[Event]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"before": true}\n')
    os.chmod(path, 0o644)
    made = Transcript(path, session="s", secrets=[], emit=events.append)
    made.passed("agent", b"{}\n", "client")
    made.close()
    made.passed("agent", b"{}\n", "client")
    made.refused(Refusal("agent"))
    made.ended("agent")
    made.close()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert [line.get("before") for line in lines(path)] == [True, None]


def test_a_umask_that_removes_no_permission(path: str, events: list[Event]) -> None:
    before = os.umask(0)
    try:
        Transcript(path, session="s", secrets=[], emit=events.append).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize("kind", ["link", "second name", "fifo", "directory", "nul", "device", "no parent"])
def test_files_that_are_not_written(path: str, kind: str, tmp_path: os.PathLike[str], events: list[Event]) -> None:
    other = os.path.join(tmp_path, "other")
    with open(other, "wb"):
        pass
    match kind:
        case "link":
            os.symlink(other, path)
        case "second name":
            os.link(other, path)
        case "fifo":
            os.mkfifo(path)
        case "directory":
            os.mkdir(path)
        case "nul":
            path += "\0"
        case "device":
            path = os.devnull
        case _:
            path = os.path.join(path, "x")
    with pytest.raises(PathError, match="cannot write the transcript"):
        Transcript(path, session="s", secrets=[], emit=events.append)
    assert os.path.getsize(other) == 0


def test_the_limit() -> None:
    assert LIMIT == 1 << 30
    assert LIMIT > 8 * WHOLE


@given(st.lists(st.integers(min_value=0, max_value=5000), min_size=20, max_size=40), st.integers(0, 4000))
def test_a_flood_ends_with_a_last_line_and_within_the_limit(sizes: list[int], before: int) -> None:
    events: list[Event] = []
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "t")
        with open(path, "w", encoding="ascii") as file:
            file.write('{"before":"' + "x" * before + '"}\n')
        # Two sessions: what either writes counts for both.
        both = [Transcript(path, session=name, secrets=[], emit=events.append, limit=12_000) for name in ("one", "two")]
        for number, size in enumerate(sizes):
            both[number % 2].passed("client", b'{"x":"' + b"y" * size + b'"}\n', "agent")
            both[number % 2].refused(Refusal("agent"))
        for made in both:
            for _ in range(60):
                made.refused(Refusal("agent"))
        full = os.path.getsize(path)
        assert 12_000 - LAST - HEAD - 200 < full <= 12_000
        for made in both:
            made.passed("client", b"{}\n", "agent")
            made.refused(Refusal("agent"))
            made.ended("client")
            made.close()
        assert os.path.getsize(path) == full
        found = lines(path)
    last = [line for line in found if "stopped" in line]
    assert sorted((line["session"], line["stopped"], line["limit"]) for line in last) == [
        ("one", "limit", 12_000),
        ("two", "limit", 12_000),
    ]
    assert found[-1] == last[-1]
    assert [(event.level, event.kind, event.fields["path"]) for event in events] == [
        ("warning", "host.transcript", path)
    ] * 2


def test_a_file_that_is_full_already(path: str, events: list[Event]) -> None:
    with open(path, "wb") as file:
        file.truncate(LIMIT - 500)  # takes no space
    made = Transcript(path, session="s", secrets=[], emit=events.append)
    made.passed("agent", b"{}\n", "client")
    made.refused(Refusal("agent"))
    made.close()
    assert os.path.getsize(path) == LIMIT - 500
    (event,) = events
    assert event.level == "warning"
    reason = "it has reached 1 GiB; the session continues without it"
    assert event.message == f"cannot write the transcript {path}: {reason}"


def test_a_full_disk_is_reported_once(path: str, transcript: Transcript, events: list[Event]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    transcript.passed("agent", b"{}\n", "client")
    full = os.path.getsize(path) + 20
    resource.setrlimit(resource.RLIMIT_FSIZE, (full, hard))
    try:
        for _ in range(5):
            transcript.passed("agent", b"{}\n", "client")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [event.kind for event in events] == ["host.transcript"]
    assert "the session continues without it" in events[0].message
