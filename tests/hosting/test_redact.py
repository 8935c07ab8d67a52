"""Secrets that a transcript must not hold."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.hosting.redact import HIDDEN, Redactor

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
def test_members_whose_name_says_it(member: dict[str, object]) -> None:
    (name,) = member
    assert redacted({"params": [{**member, "cwd": "/w"}]}) == {"params": [{name: HIDDEN, "cwd": "/w"}]}


def test_a_named_value_beside_its_name() -> None:
    assert redacted([{"name": "API_KEY", "value": "v"}, {"name": "HOME", "value": "/root"}]) == [
        {"name": "API_KEY", "value": HIDDEN},
        {"name": "HOME", "value": "/root"},
    ]


def test_counts_of_tokens_stay() -> None:
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
def test_what_cannot_be_read_cannot_be_redacted(data: bytes) -> None:
    assert Redactor(["abcdef"]).frame(data) is None


@pytest.mark.parametrize("piece", ["eyJ-", "eyJ.", "eyJaaaaaaaa.", "sk-", "a:", "://a:", "bearer  ", "-----BEGIN A"])
def test_no_text_takes_the_square_of_its_length(piece: str) -> None:
    """``eyJ-eyJ-…`` of 64 KiB took 4 s, a frame of 1 MiB 20 minutes in which podbot heard no signal."""
    text = piece * (256_000 // len(piece))
    began = time.process_time()
    Redactor([SECRET]).text(text)
    assert time.process_time() - began < 20  # 64 s when it was quadratic; an emulated processor needs 4 s as it is


def test_a_json_web_token_is_found_behind_other_words() -> None:
    token = "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"
    assert redacted([f"id-{token}", f"a.b {token}."]) == [HIDDEN, f"a.b {HIDDEN}."]
