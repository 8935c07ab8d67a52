"""The file is read back by git itself."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.launch.resources.git_identity import gitconfig, identity_note
from tests.examples import examples

# git's own values are bytes without NUL; other control characters are dropped on purpose.
VALUES = st.text(
    alphabet=st.one_of(st.sampled_from('\\"\n\t #;=[]$%()'), st.characters(codec="utf-8", exclude_categories=["Cc"])),
    min_size=1,
    max_size=12,
)


def read_back(text: bytes) -> dict[str, bytes]:
    """git's reading of a file: every key, with its last value."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
        done = subprocess.run(
            ["git", "config", "-f", file.name, "--list", "-z"], capture_output=True, check=True, env=environ
        )
    pairs = (entry.partition(b"\n") for entry in done.stdout.split(b"\0") if entry)
    return {key.decode(): value for key, _, value in pairs}


@settings(max_examples=examples(60))
@given(VALUES, VALUES, VALUES)
def test_git_reads_back_the_same_values(name: str, email: str, target: str) -> None:
    found = read_back(gitconfig({"user.name": name, "user.email": email}, target).encode())
    assert found == {
        "include.path": b"/etc/gitconfig",
        "gc.worktreepruneexpire": b"never",
        "core.checkstat": b"minimal",
        "user.name": name.encode(),
        "user.email": email.encode(),
        "safe.directory": target.encode(),
    }


def test_an_unknown_identity_is_left_to_the_image() -> None:
    found = read_back(gitconfig({}, "/workspace").encode())
    assert found == {
        "include.path": b"/etc/gitconfig",
        "gc.worktreepruneexpire": b"never",
        "core.checkstat": b"minimal",
        "safe.directory": b"/workspace",
    }


def test_every_path_of_the_workspace_is_safe() -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(gitconfig({}, "/a", "/b"))
        file.flush()
        command = ["git", "config", "-f", file.name, "--get-all", "safe.directory"]
        assert subprocess.run(command, capture_output=True, check=True).stdout == b"/a\n/b\n"


NAME, EMAIL = {"user.name": "Ann"}, {"user.email": "ann@example.org"}
BY_VARIABLES = {"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"}


@pytest.mark.parametrize(
    ("identity", "variables", "said", "unsaid"),
    [
        ({}, set(), ["no user.name and no user.email", "`git config --global user.name", "global user.email"], []),
        (NAME, set(), ["no user.email on this host", "`git config --global user.email"], ["user.name"]),
        (EMAIL, set(), ["no user.name on this host"], ["user.email"]),
        ({}, BY_VARIABLES, ["no user.email on this host"], ["user.name"]),
        ({}, {"GIT_AUTHOR_NAME"}, ["no user.name and no user.email"], []),
    ],
)
def test_a_missing_identity_is_one_notice_with_the_remedy(
    identity: dict[str, str], variables: set[str], said: list[str], unsaid: list[str]
) -> None:
    """Issue 10.3: before, the agent's commit failed."""
    (note,) = identity_note(identity, variables)
    assert all(words in note for words in said)
    assert not any(words in note for words in unsaid)


def test_a_complete_identity_gives_no_notice() -> None:
    assert identity_note(NAME | EMAIL, set()) == ()
    assert identity_note(EMAIL, BY_VARIABLES) == ()
