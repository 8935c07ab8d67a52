"""Every key of git is in one of the two lists, and the values that act are found."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guard.gitconfig import parse
from podbot.guard.gitkeys import KEYS, TABLES, addresses, notable, programs, rule_of
from podbot.guard.gitordinary import OF_OTHERS, ORDINARY
from tests.guard.trees import ENV

words = st.text("abcxyz0-", min_size=1, max_size=8)
middles = st.text(max_size=20)


def keys(text: str) -> tuple[list[str], list[str]]:
    """The keys that act, and those that are in no list."""
    acting, unknown = notable(parse(text.encode()).entries)
    return list(acting), list(unknown)


def installed() -> list[str]:
    """The keys in git's own documentation, with a name in place of ``<name>``."""
    shown = subprocess.run(["git", "help", "--config"], env=ENV, capture_output=True, text=True, check=True).stdout
    lines = [re.sub("<[^>]*>", "x", line.lower()) for line in shown.splitlines()]
    return sorted({line for line in lines if "." in line and " " not in line})


def test_every_key_that_the_installed_git_documents_is_in_a_list() -> None:
    found = installed()
    assert len(found) > 500
    # `http.<url>.*` stands for keys that are listed one by one, and so does `sendemail.<identity>.<key>`
    one_by_one = [name for name in found if not name.endswith((".*", "sendemail.x.x"))]
    assert notable((name, "x") for name in one_by_one)[1] == {}
    assert {name.partition(".")[0] for name in found} <= set(ORDINARY)


def test_a_word_is_once_in_the_list_of_its_section() -> None:
    assert set(ORDINARY).isdisjoint(OF_OTHERS)
    for section, names in (*ORDINARY.items(), *OF_OTHERS.items()):
        assert section == section.lower()
        assert sorted(set(names.split())) == sorted(names.split())
        assert names == names.lower()
    assert all(name == name.lower() for names in KEYS.values() for name in names)


@given(st.sampled_from(sorted(ORDINARY)), words)
def test_a_key_that_a_newer_git_has_is_unknown_unless_others_write_there(section: str, name: str) -> None:
    key = f"{section}.{name}-of-2030"
    acting, unknown = notable([(key, "x")])
    anything = "*" in ORDINARY[section].split() or "*" in KEYS.get(section, {})
    assert list(unknown) == ([] if anything else [key])
    assert list(acting) == ([key] if "*" in KEYS.get(section, {}) else [])


@given(st.from_regex(r"[a-z]{2,9}x[0-9]", fullmatch=True), words)
def test_a_key_of_a_program_that_podbot_does_not_know_is_unknown(section: str, name: str) -> None:
    """They were ordinary, and an attacker found a dozen programs that run what their keys name."""
    entries = [(f"{section}.{name}", "x"), (f"{section}.a.{name}", "x")]
    assert notable(entries) == ({}, {key: ["x"] for key, _ in entries})


@given(middles, st.sampled_from(["filter.*.clean", "http.*.proxy", "sendemail.*.tocmd", "mergetool.*.layout"]))
def test_a_subsection_may_have_any_name(middle: str, key: str) -> None:
    section, _, name = key.split(".")
    assert list(notable([(f"{section}.{middle}.{name}", "x")])[0]) == [f"{section}.{middle}.{name}"]


@given(middles, words, st.text(max_size=5))
def test_other_programs_have_keys_of_their_own_for_each_branch(middle: str, name: str, value: str) -> None:
    assert notable([(f"{section}.{middle}.{name}-base", value) for section in ("branch", "user")]) == ({}, {})


@given(middles, words, st.sampled_from(["remote", "submodule"]))
def test_of_a_remote_and_a_submodule_they_are_known_one_by_one(middle: str, name: str, section: str) -> None:
    key = f"{section}.{middle}.{name}-command"
    acting, unknown = notable([(key, "x")])
    assert list({**acting, **unknown}) == [key]


@given(st.lists(st.tuples(st.text(max_size=12), st.none() | st.text(max_size=5))))
def test_any_entries_can_be_looked_at(entries: list[tuple[str, str | None]]) -> None:
    acting, unknown = notable(entries)
    assert set(acting).isdisjoint(unknown)
    assert set(acting) | set(unknown) <= {key for key, _ in entries}


def test_a_missing_value_is_shown_as_true_and_only_values_that_act_are() -> None:
    assert notable([("core.fsmonitor", "./a"), ("core.fsmonitor", None), ("core.new", None)]) == (
        {"core.fsmonitor": ["./a"]},
        {"core.new": ["true"]},
    )


ORDINARY_CONFIGURATION = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tfsmonitor = true
\tuntrackedcache = true
\tsparseCheckout = true
\tautocrlf = input
[remote "origin"]
\turl = git@github.com:octo/hello.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
\tpromisor = true
\tpartialclonefilter = blob:none
\tgh-resolved = base
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
\tgh-merge-base = main
\tvscode-merge-base = origin/main
\tgithub-pr-owner-number = "octo#hello#1"
[branch "fork"]
\tremote = https://github.com/ada/hello.git
[branch "topic.stgit"]
\tstackformatversion = 5
[user]
\tname = Ada
\tsigningKey = 0123
[submodule "lib"]
\tactive = true
\turl = https://example.org/lib.git
\tgitdir = .git/modules/lib
[submodule]
\talternateLocation = superproject
[pager]
\tlog = false
[extensions]
\tworktreeConfig = true
\tpartialClone = origin
[maintenance]
\tauto = false
\tstrategy = incremental
[maintenance "gc"]
\tenabled = false
[gui]
\twmstate = normal
\tgeometry = 1x1+1+1 1 1
[filter "lfs"]
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge -- %f
\tprocess = git-lfs filter-process
\trequired = true
[lfs]
\trepositoryformatversion = 0
[annex]
\tuuid = 0123
\tversion = 10
[gitflow "branch"]
\tdevelop = develop
[gitflow "branch.feature/x"]
\tbase = develop
[push]
\tdefault = current
[status]
\tshowUntrackedFiles = all
[lfs "https://example.org/lfs"]
\taccess = basic
[delta]
\tnavigate = true
[color "status"]
\tadded = green
[diff]
\ttool = vimdiff
[merge]
\ttool = meld
\tconflictStyle = zdiff3
[commit]
\ttemplate = .gitmessage
\tgpgsign = false
[blame]
\tignoreRevsFile = .git-blame-ignore-revs
[clean]
\trequireForce
"""


def test_ordinary_configuration_has_no_finding() -> None:
    assert parse(ORDINARY_CONFIGURATION.encode()).whole
    assert keys(ORDINARY_CONFIGURATION) == ([], [])


@pytest.mark.parametrize(
    "line",
    [
        "[core]fsmonitor=./x", "[core]hooksPath=.h", "[core]sshCommand=x", "[core]pager=x", "[core]editor=x",
        "[core]askPass=x", "[core]gitProxy=x", "[core]worktree=/", "[core]attributesFile=x",
        "[core]alternateRefsCommand=x", "[include]path=x", '[includeIf "gitdir:/"]path=x', '[filter "a.b"]clean=x',
        '[filter "x"]smudge=x', '[filter "x"]process=x', "[diff]external=x", '[diff "x"]textconv=x',
        '[diff "x"]command=x', '[merge "x"]driver=x', "[alias]st=!x", "[alias]st=difftool --extcmd=x",
        "[alias]lg=log --oneline", '[alias "a b"]command=!x',
        "[pager]status=x", "[credential]helper=x", '[credential "https://a.b"]helper=x', "[gpg]program=x",
        '[gpg "ssh"]program=x', "[sequence]editor=x", "[interactive]diffFilter=x", '[remote "o"]url=ext::sh',
        '[remote "o"]uploadpack=x', '[remote "o"]vcs=x', '[url "ext::x"]insteadOf=https:',
        '[submodule "x"]update=!x', "[protocol]allow=always", '[protocol "ext"]allow=always',
        '[http "https://a"]proxy=x', "[http]sslVerify=false", '[hook "a"]command=x', '[mergetool "x"]cmd=x',
        '[difftool "x"]cmd=x', '[trailer "x"]command=x', '[lfs "customtransfer.x"]path=x', "[filter.x]clean=x",
        # what the review found, and what git's lists have besides
        '[mergetool "vimdiff"]layout=x', '[sendemail "w"]toCmd=x', '[sendemail "w"]smtpServer=/x',
        '[sendemail "w"]ccCmd=x',
        "[sendemail]identity=w", '[sendemail "w"]headerCmd=x', "[format]signatureFile=~/.ssh/id",
        "[commit]template=../../x", "[commit]template=:(optional)/x", "[http]sslCAPath=x",
        '[branch "m"]pushRemote=ext::x', '[branch "m"]mergeOptions=-F /x', "[svn]authorsprog=x",
        "[svn]configDir=x", "[rebase]instructionFormat=%s%nexec x", "[merge]tool=../../x", "[diff]guitool=../x",
        "[format]outputDirectory=/x", "[format]suffix=/../x", "[fetch]bundleURI=x", '[fetch "fsck"]badTree=ignore',
        "[fsck]badTree=ignore", "[transfer]fsckObjects=0k", "[core]protectNTFS=false", "[clean]requireForce=no",
        "[core]sharedRepository=0666", "[extensions]refStorage=files:///x", '[submodule "x"]gitdir=/x',
        '[submodule "x"]gitdir=.git/modules/../x', '[credential "https://a"]useHttpPath=false',
        "[attr]tree=HEAD", "[imap]tunnel=x", "[git-p4]port=rsh:x", "[gitflow.path]hooks=x",
        '[hook "a"]event=pre-push', "[gui]diffopts=--output=x", "[instaweb]modulePath=x", "[push]pushOption=x",
        "[sideband]allowControlCharacters=true", "[gpg.ssh]revocationFile=x", '[lfs "extension.x"]clean=x',
    ],
)  # fmt: skip
def test_a_key_that_acts(line: str) -> None:
    acting, unknown = keys(line)
    assert (len(acting), unknown) == (1, [])


HIDING = [
    "[core]ignoreStat", "[core]trustctime=false", "[core]checkStat=minimal", "[core]fileMode=0", "[core]symlinks=no",
    "[core]ignoreCase=true", "[core]bigFileThreshold=1", "[core]excludesFile=.x", "[core]useReplaceRefs=true",
    "[status]showUntrackedFiles=no", "[status]showUntrackedFiles=false", "[diff]ignoreSubmodules=all",
    "[diff]ignoreSubmodules=dirty", '[submodule "a.b"]ignore=all', "[sparse]expectFilesOutsideOfPatterns=1",
    '[diff "python"]binary', "[diff]relative=true",
]  # fmt: skip
PUSHING = [
    '[remote "o"]mirror=true', '[remote "o"]push=+refs/heads/*:refs/heads/*', '[remote "a.b"]pushurl=https://x',
    "[remote]pushDefault=x", '[branch "m"]pushRemote=x', "[push]default=matching", "[push]default=upstream",
    "[push]recurseSubmodules=on-demand", "[submodule]recurse=true", "[push]followTags", "[lfs]url=https://x",
    '[remote "o"]lfsurl=https://x', '[remote "o"]fetch=+refs/heads/*:refs/heads/*',
    '[remote "o"]fetch=+refs/x/*:refs/replace/*',
]  # fmt: skip


@pytest.mark.parametrize(("rule", "lines"), [("git.hides", HIDING), ("git.push", PUSHING)])
def test_a_key_that_hides_changes_and_one_that_leads_a_push_elsewhere(rule: str, lines: list[str]) -> None:
    for line in lines:
        acting, unknown = keys(line)
        assert [rule_of(key) for key in acting] == [rule], line
        assert unknown == []


@pytest.mark.parametrize(
    "line",
    ["[core]fileMode=true", "[core]trustctime", "[diff]ignoreSubmodules=none", "[push]default=simple",
     "[status]showUntrackedFiles=normal", '[remote "o"]fetch=+refs/heads/*:refs/remotes/o/*', '[remote "o"]fetch=^x',
     '[remote "o"]fetch=+refs/pull/*/head:refs/remotes/o/pr/*', "[push]recurseSubmodules=check"],
)  # fmt: skip
def test_other_values_of_them(line: str) -> None:
    assert keys(line) == ([], [])


@pytest.mark.parametrize(
    "line",
    ["[secrets]providers=x", "[annex]post-update-command=x", "[annex]pre-commit-command=x", "[annex]new-hook=x",
     "[annex]secure-erase-command=x", '[remote "o"]annex-rsync-transport=x', '[remote "o"]annex-externaltype=x',
     '[remote "o"]annex-start-command=x', '[remote "o"]cinnabar-x=1', "[tig]command=x", '[tig "bind"]generic=x',
     '[delta "a"]pager=x', "[hub]protocol=x", "[stgit]pager=x", '[gitflow "path"]hooks=x', "[git-town]x=1",
     '[lfs "customtransfer.x"]path=x', "[branchless]x=1", "[machete]x=1", "[gh]x=1", "[jj]x=1", "[a.b]c=x"],
)  # fmt: skip
def test_a_key_of_another_program(line: str) -> None:
    """Known to act, or not known: either is a finding."""
    acting, unknown = keys(line)
    assert len([*acting, *unknown]) == 1


def test_no_pattern_has_two_rules() -> None:
    """The later one would replace the earlier one."""
    tables = [table for tables in TABLES for table in tables.values()]
    patterns = [f"{section}.{name}" for table in tables for section, names in table.items() for name in names.split()]
    assert len(patterns) == len(set(patterns))


def test_addresses_are_those_of_remotes_branches_and_submodules() -> None:
    text = '[remote "a.b"]url=x\nurl=y\nfetch=z\n[branch "m"]remote=o\nmerge=m\n[submodule "s"]url=u\n[remote]url=1\n'
    assert addresses(parse(text.encode()).entries) == {
        "remote.a.b.url": ["x", "y"],
        "branch.m.remote": ["o"],
        "submodule.s.url": ["u"],
    }


@pytest.mark.parametrize("line", ["[core]x=1", '[mergetool "x"]x=1', '[sendemail "a"]x=1', "[extensions]x=1", "[log]x"])
def test_an_unknown_key_of_git(line: str) -> None:
    acting, unknown = keys(line)
    assert (acting, len(unknown)) == ([], 1)


def test_scripts_of_the_workspace_in_commands() -> None:
    assert programs(["./run.sh a", "sh tools/x.py; rm"]) == ["./run.sh", "a", "sh", "tools/x.py", "rm"]
    assert programs(["/usr/bin/x -a ~/y $HOME/z ../out"]) == ["/usr/bin/x", "~/y", "../out"]
