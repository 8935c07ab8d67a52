"""Notes on settings of a repository that git inside cannot follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.launch.git_settings import (
    MOST,
    config_variables,
    given_by_variables,
    is_of_interest,
    setting_notes,
    unsigned,
)

FORMAT = ("core.repositoryformatversion", "1")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("commit.gpgsign", "true", ["signs commits (commit.gpgsign)", "without a signature"]),
        ("tag.gpgsign", "yes", ["signs tags (tag.gpgsign)", "on the host"]),
        ("push.gpgsign", "true", ["signs pushes (push.gpgsign)", "without a signature"]),
        ("merge.verifysignatures", "true", ["merges only commits with a signature", "--no-verify-signatures"]),
        ("core.repositoryformatversion", "2", ["format 2", "a newer git"]),
        ("extensions.refstorage", "reftable", ["git 2.45", "refstorage = reftable", "git refs migrate"]),
        ("extensions.relativeworktrees", "true", ["git 2.48"]),
        ("extensions.future", "x\x1b[2J", ["a newer git", "\\x1b[2J"]),
        ("filter.lfs.required", "true", ["requires the filter lfs"]),
        (
            "filter.lfs.process",
            "git-lfs filter-process",
            ["runs git-lfs (filter.lfs.process)", "unfiltered"],
        ),
        (
            "filter.nb.clean",
            '"/usr/bin/python3" -m nbstripout',
            ["runs /usr/bin/python3 (filter.nb.clean)", "on the host"],
        ),
        ("merge.po.driver", "msgmerge %A %O %B", ["has a conflict in each file that it would merge"]),
        ("diff.external", "difft", ["runs difft (diff.external)", "git diff fails, except with --no-ext-diff"]),
        ("diff.bin.textconv", "~/bin/show", ["--no-textconv"]),
        ("diff.img.command", "/opt/x\x1b[2J", ["\\x1b[2J", "git diff of such files fails"]),
        ("filter.f.smudge", "KEY=s3cret decrypt", ["runs decrypt (filter.f.smudge): unless"]),
        (
            "filter.f.smudge",
            "KEY=$(cat s3cret) decrypt",
            ["runs the program of filter.f.smudge: unless the image has it"],
        ),
        ("sequence.editor", "interactive", ["git rebase -i fails: set GIT_SEQUENCE_EDITOR"]),
        ("core.editor", "$HOME/bin/x", ["runs the program of core.editor: unless"]),
        ("core.editor", "/usr/bin/sub/nano", ["runs /usr/bin/sub/nano (core.editor)"]),
        ("core.editor", "code --wait", ["pass -m, or set GIT_EDITOR"]),
        ("core.sshcommand", "corkscrew-ssh", ["reaches no remote by it"]),
        ("remote.o.vcs", "hg", ["runs git-remote-hg (remote.o.vcs)", "reaches no remote by it"]),
        ("remote.o.url", "codecommit::eu-west-1://shop", ["runs git-remote-codecommit (remote.o.url): unless"]),
        ("remote.o.pushurl", "s3://bucket/shop", ["runs git-remote-s3 (remote.o.pushurl): unless"]),
        ("remote.o.url", "hg::x", ["git-remote-hg"]),
        ("interactive.difffilter", "delta --color-only", ["runs delta", "-c interactive.diffFilter=cat"]),
    ],
)
def test_each_setting_has_a_note_with_its_remedy(key: str, value: str, words: list[str]) -> None:
    assert is_of_interest(key, value)
    (note,) = setting_notes([FORMAT, (key, value)], {})
    assert all(word in note for word in words), note
    assert note.isprintable()


@pytest.mark.parametrize(
    "settings",
    [
        [("commit.gpgsign", "true"), ("commit.gpgsign", "false")],
        [("filter.lfs.required", "false")],
        [FORMAT, ("extensions.worktreeconfig", "true"), ("extensions.objectformat", "sha256")],
        [("extensions.future", "true")],  # of format 0, in which git ignores it
        [("merge.verifysignatures", "no")],
        [("merge.ours.driver", "true"), ("diff.z.textconv", "gunzip -c"), ("core.editor", "nano")],
        [("filter.strip.clean", "sed s/x//"), ("filter.strip.smudge", "cat"), ("filter.strip.required", "true")],
        [("filter.own.clean", "./scripts/clean"), ("diff.own.textconv", "'scripts/show' -x"), ("core.editor", "")],
        [("core.sshcommand", "ssh -i ~/.ssh/work")],
        [("core.sshcommand", "/usr/bin/ssh -i k"), ("filter.f.clean", "/bin/sh -c 'x'")],
        [("core.sshcommand", "env X=1 ssh")],
        [("core.sshcommand", "GIT_TRACE=1 A='b c' D= ssh")],
        [("push.gpgsign", "if-asked")],
        [("core.editor", " "), ("diff.z.textconv", ":")],
        [("url.https://h/.insteadof", "gh://"), ("url.https://h/.insteadof", "g::"), ("remote.o.url", "gh://org/x")],
        [("url.https://h/.insteadof", "gh://"), ("url.https://h/.insteadof", "g::"), ("remote.o.url", "g::org/x")],
        [("url.https://h/.insteadof", "g::"), ("url.gh://.insteadof", "g"), ("remote.o.url", "g::org/x")],
        [("remote.o.vcs", "http"), ("remote.p.vcs", ""), ("remote.o.fetch", "+refs/heads/*:refs/remotes/o/*")],
        [],
    ],
)
def test_what_git_inside_can_follow_has_none(settings: list[tuple[str, str]]) -> None:
    assert setting_notes(settings, {}) == ()


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
    assert config_variables(unsigned(settings, {}), {}) == variables


SIGNS = [("commit.gpgsign", "true"), ("tag.gpgsign", "true")]
THEIRS = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "http.proxy",
    "GIT_CONFIG_VALUE_0": "http://proxy:3128",
    "GIT_CONFIG_KEY_1": "commit.gpgSign",
    "GIT_CONFIG_VALUE_1": "true",
}


def test_the_operator_s_own_configuration_stays_and_decides_about_signing() -> None:
    made = config_variables(unsigned(SIGNS, THEIRS), THEIRS)
    assert made.pop("GIT_CONFIG_COUNT") == "3"
    pairs = [(made.pop(f"GIT_CONFIG_KEY_{n}"), made.pop(f"GIT_CONFIG_VALUE_{n}")) for n in range(3)]
    assert pairs == [("http.proxy", "http://proxy:3128"), ("commit.gpgSign", "true"), ("tag.gpgsign", "false")]
    assert made == {}
    (note,) = setting_notes(SIGNS, THEIRS)
    assert "signs tags (tag.gpgsign)" in note
    assert config_variables({}, THEIRS) == {}, "theirs are in the sandbox anyway"


@pytest.mark.parametrize(
    ("setting", "theirs"),
    [
        (("core.editor", "code"), {"GIT_EDITOR": "nano"}),
        (("sequence.editor", "code"), {"GIT_SEQUENCE_EDITOR": "nano"}),
        (("core.sshcommand", "corkscrew"), {"GIT_SSH_COMMAND": "ssh"}),
        (("core.gitproxy", "corkscrew"), {"GIT_PROXY_COMMAND": "x"}),
        (("diff.external", "difft"), {"GIT_EXTERNAL_DIFF": "diff"}),
        (("merge.Po.driver", "msgmerge"), {"KEY": "Merge.Po.Driver"}),
        (("merge.verifysignatures", "true"), {"KEY": "merge.verifySignatures"}),
        (("filter.lfs.required", "true"), {"KEY": "filter.lfs.process"}),
    ],
)
def test_what_the_operator_decides_has_no_note(setting: tuple[str, str], theirs: dict[str, str]) -> None:
    assert setting_notes([setting], {}) != ()
    key = theirs.get("KEY")
    variables = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": "x"} if key else theirs
    assert setting_notes([setting], variables) == ()


def test_no_variable_decides_about_the_format() -> None:
    """git takes that from the repository's configuration alone."""
    theirs = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": FORMAT[0], "GIT_CONFIG_VALUE_0": "1"}
    assert len(setting_notes([(FORMAT[0], "2")], theirs)) == 1


def test_only_a_commit_is_said_to_be_signed_by_amending() -> None:
    assert "--amend" in setting_notes([("tag.gpgsign", "true"), ("commit.gpgsign", "true")], {})[0]
    assert "--amend" not in setting_notes([("tag.gpgsign", "true")], {})[0]


@pytest.mark.parametrize("count", ["", "x", "-1", "3", "1000", "\u0663", "2 "])
def test_variables_that_git_would_not_take_are_not_counted(count: str) -> None:
    theirs = {**THEIRS, "GIT_CONFIG_COUNT": count}
    assert unsigned(SIGNS, theirs) == {"commit.gpgsign": "false", "tag.gpgsign": "false"}
    assert config_variables({"a.b": "c"}, theirs)["GIT_CONFIG_COUNT"] == "1"


@given(
    st.dictionaries(st.text(min_size=1), st.text(), max_size=4), st.lists(st.tuples(st.text(), st.text()), max_size=4)
)
def test_git_s_variables_name_both_configurations_in_their_order(
    ours: dict[str, str], theirs: list[tuple[str, str]]
) -> None:
    given_ = config_variables(dict(theirs), {})
    made = config_variables(ours, given_)
    assert given_by_variables(given_ | made) == [*dict(theirs).items(), *ours.items()]


@pytest.mark.parametrize(
    "url",
    ["https://h/x", "ssh://git@h/x", "git@h:x", "git://h/x", "git+ssh://h/x", "file:///x", "/x", "../x", "", "h:a::b"],
)
def test_an_address_that_git_reaches_itself_is_not_read(url: str) -> None:
    """It can have a password, and most repositories have such a one."""
    assert setting_notes([("remote.o.url", url)], {}) == ()
    assert not is_of_interest("remote.o.url", url)


@pytest.mark.parametrize(
    "settings",
    [
        [("remote.o.url", "foo::bar"), ("url.https://x/.pushinsteadof", "foo::")],  # fetch needs the helper
        [("remote.o.url", "gh:org/x"), ("url.foo::https://h/.insteadof", "gh:")],
        [("remote.o.vcs", "foo"), ("url.https://x/.insteadof", "foo")],
    ],
    ids=str,
)
def test_a_helper_that_the_rewritten_address_needs_is_named(settings: list[tuple[str, str]]) -> None:
    (note,) = setting_notes(settings, {})
    assert "git-remote-foo" in note


def test_of_an_address_only_the_transport_is_shown() -> None:
    (note,) = setting_notes([("remote.o.url", "hg::https://me:s3cret@h/x"), ("remote.p.url", "s3://s3cret@h/x")], {})
    assert "git-remote-hg (remote.o.url), git-remote-s3 (remote.p.url)" in note
    assert "s3cret" not in note


def test_a_hostile_configuration_makes_few_notes() -> None:
    notes = setting_notes([FORMAT, *((f"extensions.{'x' * 500}{number}", "y" * 500) for number in range(1000))], {})
    assert len(notes) == MOST
    assert max(map(len, notes)) < 300


@pytest.mark.parametrize(
    "command",
    [
        "sshpass -p s3cret ssh",
        "KEY=s3cret x",
        "K='s3 s3cret' x",
        "'p'\ts3cret",
        "p;s3cret",
        'K="s3 s3cret" x',
        "K=s3cret",
        "K=a's3cret' x",
        "'K=s3cret' x",
    ],
)
def test_of_a_command_only_the_program_is_shown(command: str) -> None:
    """Its arguments can be secrets."""
    (note,) = setting_notes([("core.sshcommand", command)], {})
    assert "s3cret" not in note


def test_the_settings_of_one_effect_are_one_note() -> None:
    many = [(f"filter.{'x' * 500}{number}.clean", f"{number}{'y' * 500}") for number in range(1000)]
    (note,) = setting_notes(many, {})
    assert note.count("filter.x") == 3
    assert "and 997 more: unless the image has it" in note
    assert len(note) < 600
    lfs = [("filter.lfs.clean", "git-lfs clean"), ("filter.lfs.smudge", "git-lfs smudge"), ("filter.x.clean", "nb")]
    (note,) = setting_notes(lfs, {})
    assert "runs git-lfs (filter.lfs.clean, filter.lfs.smudge), nb (filter.x.clean): unless" in note
    both = [("filter.lfs.clean", "git-lfs clean"), ("filter.lfs.required", "true"), ("diff.lfs.textconv", "cat")]
    (note,) = setting_notes(both, {})
    assert note.startswith("this repository requires the filter lfs")


def test_other_keys_are_not_read() -> None:
    keys = ("core.bare", "filter.lfs.other", "user.name", "extension.x", "core.fsmonitor", "diff.tool", "core.pager")
    assert not [key for key in keys if is_of_interest(key, "x")]
    assert not is_of_interest("core.repositoryformatversion", "0")
