"""Secrets that a transcript must not contain."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.redact import HIDDEN, Redactor

SECRET = "hunter2hunter2"
SHAPED = [
    "sk-ant-api03-" + "a1B2" * 8,
    "sk-proj-" + "Zz09_-" * 6,
    "ghp_" + "a" * 36,
    "ghs_" + "b" * 36,
    "github_pat_" + "c" * 30,
    "glpat-" + "d" * 20,
    "npm_" + "e" * 36,
    "xoxb-1234567890-abcdef",
    "AKIA" + "A1B2C3D4E5F6G7H8",
    "AIza" + "S" * 35,
    "ya29." + "t" * 30,
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "Bearer abcdefgh12345",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


def redacted(value: object, *secrets: str) -> object:
    found = Redactor(secrets).frame(json.dumps(value).encode())
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("token", SHAPED)
def test_tokens_of_known_shape(token: str) -> None:
    assert redacted({"text": f"use {token}, please"}) == {"text": f"use {HIDDEN}, please"}


def test_a_password_in_an_address() -> None:
    assert redacted(["https://u:pw@host/x", "https://host/x:y@z"]) == [f"https://{HIDDEN}@host/x", "https://host/x:y@z"]


@pytest.mark.parametrize(
    "member",
    [
        {"env": {"X": "v"}},
        {"env": [{"name": "X", "value": "v"}]},
        {"headers": ["a: b"]},
        {"apiKey": "v"},
        {"api_key": "v"},
        {"accessToken": "v"},
        {"client_secret": ["v"]},
        {"Authorization": "v"},
        {"password": "v"},
    ],
)
def test_members_with_secret_names(member: dict[str, object]) -> None:
    (name,) = member
    assert redacted({"params": [{**member, "cwd": "/w"}]}) == {"params": [{name: HIDDEN, "cwd": "/w"}]}


def test_a_secret_value_next_to_its_name() -> None:
    assert redacted([{"name": "API_KEY", "value": "v"}, {"name": "HOME", "value": "/root"}]) == [
        {"name": "API_KEY", "value": HIDDEN},
        {"name": "HOME", "value": "/root"},
    ]


def test_counts_of_tokens_are_kept() -> None:
    value = {"usage": {"totalTokens": 12, "tokenLimit": None}}
    assert redacted(value) == value


VALUES = st.recursive(
    st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.text("ab", max_size=3), st.text("ab", max_size=3))
def test_the_session_s_secrets_wherever_they_are(value: object, before: str, behind: str) -> None:
    frame = {"a": value, before + SECRET + behind: [before + SECRET + behind]}
    found = Redactor([SECRET, "", "x"]).frame(json.dumps(frame).encode())
    assert found is not None
    assert found[0] == frame
    assert SECRET not in found[1]


def test_a_secret_with_escapes_and_one_in_another() -> None:
    assert redacted(['"\\\n'], '"\\\n') == ['"\\\n'], "too short to look for"
    assert redacted(['x"quo\\te\né'], '"quo\\te\né', '"quo\\te') == ["x" + HIDDEN]


@pytest.mark.parametrize(
    "data", [b"not json", b'{"apiKey": "v"', b"\xff", b"[" * 100_000, b'{"n": ' + b"9" * 5000 + b"}"]
)
def test_text_that_cannot_be_parsed_is_not_logged(data: bytes) -> None:
    assert Redactor(["abcdef"]).frame(data) is None


@pytest.mark.parametrize("piece", ["eyJ-", "eyJ.", "eyJaaaaaaaa.", "sk-", "a:", "://a:", "bearer  ", "-----BEGIN A"])
def test_no_text_takes_the_square_of_its_length(piece: str) -> None:
    """``eyJ-eyJ-…`` of 64 KiB took 4 s, a frame of 1 MiB 20 minutes in which podbot handled no signal."""
    text = piece * (256_000 // len(piece))
    began = time.process_time()
    Redactor([SECRET]).text(text)
    assert time.process_time() - began < 20  # 64 s when it was quadratic; an emulated processor needs 4 s as it is


def test_a_json_web_token_is_found_behind_other_words() -> None:
    token = "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"
    assert redacted([f"id-{token}", f"a.b {token}."]) == [HIDDEN, f"a.b {HIDDEN}."]


SEVERAL = "first-line\nno\nanother line"


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r\r\n"])
def test_a_secret_of_several_lines(ends: str) -> None:
    found = Redactor([f"{SEVERAL}\n"])
    assert found.text(f"<{SEVERAL}>".replace("\n", ends)) == f"<{HIDDEN}>"
    assert found.text("another line, no, first-line") == f"{HIDDEN}, no, {HIDDEN}"


def test_a_key_is_recognized_beside_a_known_one() -> None:
    """Its first line is every key's, and is not hidden alone."""
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    found = Redactor([f"{begin}\nabcdefgh\n{end}\n"])
    assert found.text(f"{begin}\nother\n{end} abcdefgh") == f"{HIDDEN} {HIDDEN}"


@pytest.mark.parametrize("value", ["\n" * 9, "\r\n\r\n\r\n"])
def test_lines_alone_are_no_secret(value: str) -> None:
    assert Redactor([value]).text("a\n\nb") == "a\n\nb"


def test_many_returns_do_not_take_the_square_of_their_number() -> None:
    """The agent chooses them, and podbot looks for the beginning of a secret at every piece of output."""
    found = Redactor([SEVERAL])
    text = "\r" * 256_000 + "x\n"
    began = time.process_time()
    assert (found.begun(text), found.text(text)) == (0, text)
    assert time.process_time() - began < 20


def test_lines_that_may_begin_a_secret() -> None:
    found = Redactor(["a-1\na-1\nb", "single"])
    for text, lines in (("x\n", 0), ("a-1\n", 1), ("xa-1\r\na-1\r\n", 2), ("a-1\na-1\nb\n", 0), ("single\n", 0)):
        assert found.begun(text) == lines, text


@pytest.mark.parametrize(
    ("text", "cut", "place"),
    [("ab hunter2hunter2 cd", 1, 1), ("ab hunter2hunter2 cd", 9, 17), ("ab hunter2hunter2", 9, 3),
     ("hunter2hunter2", 9, 9), ("a Bearer abcdefghijk ", 8, 20)],
)  # fmt: skip
def test_where_a_text_can_be_divided(text: str, cut: int, place: int) -> None:
    assert Redactor([SECRET]).spared(text, cut) == place
    assert Redactor([]).spared("ab hunter2hunter2 cd", cut) == cut
