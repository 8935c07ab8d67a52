"""Tokens that the operator already has: of a `gh` program in PATH, or in a variable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import TokenSourceFailed
from podbot.github.borrowed import reader
from tests.waiting import HANG

SERVER = "https://github.com"
TOKEN = "gho_16C7e42F292c6912E7710c838347Ae178B4a"


def gh(directory: Path, script: str) -> dict[str, str]:
    """An environment whose PATH begins with a program gh that runs ``script``."""
    path = directory / "gh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}", "HOME": str(directory)}


def test_the_token_of_gh_is_read_anew_each_time(tmp_path: Path) -> None:
    environ = gh(tmp_path, f'echo "$@" >> {tmp_path}/asked; pwd >> {tmp_path}/asked; cat {tmp_path}/token')
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    read = reader("gh", SERVER, environ, seconds=HANG)
    assert read().token == TOKEN
    (tmp_path / "token").write_text("gho_second\n")
    assert read().token == "gho_second"
    assert (tmp_path / "asked").read_text() == "auth token --hostname github.com\n/\n" * 2


def test_gh_is_asked_for_the_configured_server(tmp_path: Path) -> None:
    environ = gh(tmp_path, f'[ "$4" = git.example.org ] && echo {TOKEN}')
    assert reader("gh", "https://git.example.org:8443/x", environ, seconds=HANG)().token == TOKEN


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'no oauth token found for github.com' >&2; exit 1", "no oauth token found for github.com"),
        ("exit 4", "gh ended with status 4"),
        ("true", "gh ended with status 0"),
        ("echo a token", "what gh printed is not a token"),
        (f"echo {TOKEN} >&2; exit 1", "(hidden)"),
    ],
    ids=["logged-out", "silent", "empty", "no-token", "token-on-stderr"],
)
def test_a_gh_that_gives_no_token(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(TokenSourceFailed) as caught:
        reader("gh", SERVER, gh(tmp_path, script), seconds=HANG)()
    assert (caught.value.source, caught.value.reason) == ("your `gh` login for github.com", said)
    assert TOKEN not in str(caught.value)
    assert "gh auth login" in caught.value.remedy


def test_without_gh_the_remedy_is_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(TokenSourceFailed) as caught:
        reader("gh", SERVER, {"PATH": str(tmp_path)})()
    assert "Install the GitHub CLI" in str(caught.value)


def test_a_gh_that_waits_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(TokenSourceFailed, match="did not answer"):
        reader("gh", SERVER, gh(tmp_path, "exec sleep 600"), seconds=0.2)()


def test_a_variable_is_read_anew_each_time() -> None:
    environ = {"MINE": f" {TOKEN}\n"}
    read = reader("env:MINE", SERVER, environ)
    assert read().token == TOKEN
    del environ["MINE"]
    with pytest.raises(TokenSourceFailed, match="the variable MINE: it is not set"):
        read()


def test_what_was_read_is_not_shown() -> None:
    assert TOKEN not in repr(reader("env:MINE", SERVER, {"MINE": TOKEN})())


@given(text=st.text().filter(lambda text: "\0" not in text))
def test_a_variable_yields_one_printable_word_or_an_error_without_its_text(text: str) -> None:
    error = ""
    try:
        token = reader("env:MINE", SERVER, {"MINE": text})().token
    except TokenSourceFailed as exc:
        error, token = str(exc), ""
    if error:
        assert error.startswith("cannot take a GitHub token from the variable MINE: ")
        assert len(error) < 200
    else:
        assert token == text.strip()
        assert token.isascii()
        assert token.isprintable()
        assert token.split() == [token]
