"""Notes on settings of a repository that git inside cannot follow."""

from __future__ import annotations

import pytest

from podbot.launch.git_settings import MOST, is_of_interest, setting_notes


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("commit.gpgsign", "true", ["signs commits (commit.gpgsign)", "`git config commit.gpgsign false`"]),
        ("tag.gpgsign", "yes", ["signs tags", "--no-sign"]),
        ("extensions.refstorage", "reftable", ["git 2.45", "refstorage = reftable", "git refs migrate"]),
        ("extensions.relativeworktrees", "true", ["git 2.48"]),
        ("extensions.future", "x\x1b[2J", ["a newer git", "\\x1b[2J"]),
        ("filter.lfs.required", "true", ["requires the filter lfs"]),
    ],
)
def test_each_setting_has_a_note_with_its_remedy(key: str, value: str, words: list[str]) -> None:
    assert is_of_interest(key)
    (note,) = setting_notes([(key, value)])
    assert all(word in note for word in words), note
    assert note.isprintable()


@pytest.mark.parametrize(
    "settings",
    [
        [("commit.gpgsign", "true"), ("commit.gpgsign", "false")],
        [("filter.lfs.required", "false")],
        [("extensions.worktreeconfig", "true"), ("extensions.objectformat", "sha256")],
        [],
    ],
)
def test_what_git_inside_can_follow_has_none(settings: list[tuple[str, str]]) -> None:
    assert setting_notes(settings) == ()


def test_a_hostile_configuration_makes_few_notes() -> None:
    notes = setting_notes([(f"extensions.{'x' * 500}{number}", "y" * 500) for number in range(1000)])
    assert len(notes) == MOST
    assert max(map(len, notes)) < 300


def test_other_keys_are_not_read() -> None:
    assert not any(map(is_of_interest, ("core.bare", "filter.lfs.clean", "user.name", "extension.x")))
