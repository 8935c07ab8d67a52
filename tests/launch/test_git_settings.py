"""Notes on settings of a repository that git inside cannot follow."""

from __future__ import annotations

import pytest

from podbot.launch.git_settings import MOST, config_variables, is_of_interest, setting_notes, unsigned


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("commit.gpgsign", "true", ["signs commits (commit.gpgsign)", "without a signature"]),
        ("tag.gpgsign", "yes", ["signs tags (tag.gpgsign)", "on the host"]),
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


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ([], {}),
        ([("commit.gpgsign", "true"), ("commit.gpgsign", "false"), ("filter.lfs.required", "true")], {}),
        (
            [("commit.gpgsign", "true"), ("tag.forcesignannotated", "YES")],
            {
                "GIT_CONFIG_COUNT": "2",
                "GIT_CONFIG_KEY_0": "commit.gpgsign",
                "GIT_CONFIG_VALUE_0": "false",
                "GIT_CONFIG_KEY_1": "tag.forcesignannotated",
                "GIT_CONFIG_VALUE_1": "false",
            },
        ),
    ],
)
def test_signing_is_switched_off_where_the_repository_asks_for_it(
    settings: list[tuple[str, str]], variables: dict[str, str]
) -> None:
    """Issue 29.13: git inside made no commit."""
    assert config_variables(unsigned(settings)) == variables


def test_a_hostile_configuration_makes_few_notes() -> None:
    notes = setting_notes([(f"extensions.{'x' * 500}{number}", "y" * 500) for number in range(1000)])
    assert len(notes) == MOST
    assert max(map(len, notes)) < 300


def test_other_keys_are_not_read() -> None:
    assert not any(map(is_of_interest, ("core.bare", "filter.lfs.clean", "user.name", "extension.x")))
