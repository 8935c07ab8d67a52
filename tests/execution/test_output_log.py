"""The log of an agent's output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.events import Event, ignore
from podbot.execution.output_log import CURRENT, EARLIER, OutputLog
from podbot.protocol.redact import HIDDEN

SECRET = "s3cret-value"


def recorded(
    directory: Path, *pieces: bytes, limit: int = 1 << 20, secrets: tuple[str, ...] = (SECRET,)
) -> list[Event]:
    events: list[Event] = []
    log = OutputLog(str(directory), secrets, events.append, limit=limit)
    for piece in pieces:
        log(memoryview(piece))
    log.close()
    return events


def text(directory: Path) -> bytes:
    return b"".join((directory / name).read_bytes() for name in (EARLIER, CURRENT) if (directory / name).exists())


def test_it_is_private_and_created_with_the_first_output(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert recorded(log) == []
    assert not log.exists()
    assert recorded(log, b"one\n", b"two") == []
    assert text(log) == b"one\ntwo"
    assert log.stat().st_mode & 0o777 == 0o700
    assert (log / CURRENT).stat().st_mode & 0o777 == 0o600


def test_secrets_are_removed_also_when_they_are_cut(tmp_path: Path) -> None:
    token = "ghs_" + "a" * 36
    recorded(tmp_path / "log", b"a s3cret-", b"value b\n", token[:10].encode(), token[10:].encode(), b"\nend")
    assert text(tmp_path / "log") == f"a {HIDDEN} b\n{HIDDEN}\nend".encode()


def test_a_key_of_several_lines_is_removed(tmp_path: Path) -> None:
    key = b"-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----\n"
    recorded(tmp_path / "log", b"before\n", *(key[at : at + 7] for at in range(0, len(key), 7)), b"after\n")
    assert text(tmp_path / "log") == f"before\n{HIDDEN}\nafter\n".encode()


def test_a_secret_in_a_line_without_an_end_is_not_cut(tmp_path: Path) -> None:
    pieces = [b"x" * 1000 + b" " + SECRET.encode() + b" "] * 300
    recorded(tmp_path / "log", *pieces)
    assert SECRET.encode() not in text(tmp_path / "log")


SEVERAL = "line-one-secret\nx\nline-two-secret"


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("step", [1, 7, 16, 18, 1000])
def test_a_secret_of_several_lines_is_removed(tmp_path: Path, ends: str, step: int) -> None:
    """A terminal prints \\r\\n, and the pieces may end anywhere."""
    printed = f"a {SEVERAL} b\nline-two-secret\nx\n".replace("\n", ends).encode()
    pieces = [printed[at : at + step] for at in range(0, len(printed), step)]
    recorded(tmp_path / "log", *pieces, secrets=(f"{SEVERAL}\n",))
    assert text(tmp_path / "log") == f"a {HIDDEN} b\n{HIDDEN}\nx\n".replace("\n", ends).encode()


def test_what_only_begins_like_a_secret_is_recorded(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path / "log"), ["x\ny\nz"], ignore)
    for piece in (b"1\nx\n", b"y\n"):
        log(piece)
        assert text(tmp_path / "log") == b"1\n"
    log(b"2\n")
    assert text(tmp_path / "log") == b"1\nx\ny\n2\n"
    log.close()


def test_a_long_line_is_not_cut_in_a_secret_with_blanks(tmp_path: Path) -> None:
    secret = "correct horse battery staple " * 30 + "end"
    for number in range(0, 900, 31):  # wherever the cut comes
        log = tmp_path / f"log{number}"
        recorded(log, b"a " * 20_000 + b"y" * number, f" {secret} ".encode() * 60, secrets=(secret,))
        assert b"horse battery" not in text(log)


def test_a_long_line_is_not_cut_in_what_is_shaped_like_a_secret(tmp_path: Path) -> None:
    recorded(tmp_path / "log", b"x" * 60 + b" Bearer " + b"abcd1234" * 9000, b" y\n")
    assert b"abcd1234" not in text(tmp_path / "log")


def test_a_token_that_changes_is_removed(tmp_path: Path) -> None:
    tokens = ["token-one", "token-two"]
    log = OutputLog(str(tmp_path / "log"), [], ignore, token=lambda: tokens[0])
    log(b"token-one token-two\n")
    del tokens[0]
    log(b"token-one token-two\n")
    log.close()
    assert text(tmp_path / "log") == f"{HIDDEN} token-two\n{HIDDEN} {HIDDEN}\n".encode()


def test_bytes_that_are_no_text_are_recorded_as_they_are(tmp_path: Path) -> None:
    recorded(tmp_path / "log", b"\xff\x1b[2J\0\r\n")
    assert text(tmp_path / "log") == b"\xff\x1b[2J\0\r\n"


def test_it_keeps_the_last_output_within_its_limit(tmp_path: Path) -> None:
    recorded(tmp_path / "log", *(b"%06d\n" % number for number in range(1000)), limit=700)
    found = text(tmp_path / "log")
    assert 700 < len(found) <= 1400
    assert found.endswith(b"000999\n")
    recorded(tmp_path / "log", b"z" * 5000 + b"\n", limit=700)
    assert len(text(tmp_path / "log")) <= 1400


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 200))
def test_any_output_is_recorded_whole_or_its_end(pieces: list[bytes], limit: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as base:
        assert recorded(Path(base, "log"), *pieces, limit=limit, secrets=()) == []
        found = text(Path(base, "log"))
        whole = b"".join(pieces)
        assert len(found) <= 2 * limit
        if HIDDEN.encode() not in found:
            assert whole.endswith(found)


def test_a_failure_is_reported_once_and_ends_the_log(tmp_path: Path) -> None:
    """The session was removed meanwhile: its directory is not made again."""
    events = recorded(tmp_path / "gone" / "log", b"one\n", b"two\n")
    assert [event.kind for event in events] == ["session.log"]
    assert os.listdir(tmp_path) == []


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir(mode=0o700)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "log" / CURRENT).symlink_to(tmp_path / "mine")
    assert [event.kind for event in recorded(tmp_path / "log", b"x\n")] == ["session.log"]
    assert (tmp_path / "mine").read_text() == "mine"
