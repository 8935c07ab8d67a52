"""What the settings of Mercurial, Sapling and jj lead to. None of them is installed where this is tested."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guard.mercurial import is_led_elsewhere
from tests.guard.trees import Act, append, file, left_by, link, said, write


def in_place_of(path: str, target: str) -> Act:
    def act(work: Path) -> None:
        os.rename(work / path, work / f"{path}-before")
        link(path, target)(work)

    return act


CASES: dict[str, tuple[dict[str, str], str, Act]] = {
    "hooks in the settings": ({}, ".hg/hgrc", file(".hg/hgrc", "[hooks]\nupdate = x\n")),
    "an alias more": (
        {".hg/hgrc": "[ui]\n"},
        ".hg/hgrc",
        lambda work: append(work / ".hg" / "hgrc", "[alias]\nst = !x\n"),
    ),
    "a setting that is taken back": (
        {".hg/hgrc": "[ui]\n"},
        ".hg/hgrc",
        lambda work: append(work / ".hg" / "hgrc", "%unset x\n"),
    ),
    "a file that is included": ({".hg/hgrc": "%include ../team.rc\n"}, "team.rc", file("team.rc", "[hooks]\n")),
    "one that it includes": (
        {".hg/hgrc": "%include ../a/b.rc\n", "a/b.rc": "[x]\n%include  c.rc \n"},
        "a/c.rc",
        file("a/c.rc", "[extensions]\n"),
    ),
    "one by its whole path": ({".hg/hgrc": "%include {work}/team.rc\n"}, "team.rc", file("team.rc")),
    "a file of another repository": (
        {".hg/sharedpath": "../foo\n", ".hg/requires": "relshared\n"},
        "foo/hgrc",
        file("foo/hgrc", "[hooks]\n"),
    ),
    "one by its whole path, and what it includes": (
        {".hg/sharedpath": "{work}/foo", "foo/hgrc": "%include x"},
        "foo/x",
        file("foo/x", "[hooks]\n"),
    ),
    "one from where it is started": ({".hg/sharedpath": "foo\n"}, "foo/hgrc", file("foo/hgrc", "[hooks]\n")),
    "another repository": ({".hg/sharedpath": "../foo\n"}, ".hg/sharedpath", file(".hg/sharedpath", "../bar\n")),
    "a link to settings that include": (
        {"x": "%include ../team.rc\n", ".hg/a": ""},
        "team.rc",
        lambda work: [link(".hg/hgrc", "../x")(work), file("team.rc")(work)],
    ),
    "a nested repository": ({"lib/.hg/hgrc": "%include ../../team.rc\n"}, "team.rc", file("team.rc")),
    "a store that becomes a link": ({".hg/store/a": "", "b/c": ""}, ".hg/store", in_place_of(".hg/store", "../b")),
    "a log that becomes a link": ({".hg/x": ""}, ".hg/undo", link(".hg/undo", "../tools/hook.sh")),
    "Sapling's settings": ({".sl/config": "%include ../team.rc\n"}, "team.rc", file("team.rc")),
    "Sapling's other repository": ({".sl/sharedpath": "../foo\n"}, "foo/config", file("foo/config")),
    "jj's other repository": ({".jj/repo": "../foo"}, "foo/config.toml", file("foo/config.toml")),
    "jj's git directory": ({".jj/repo/store/git_target": "../../../.git"},
        ".jj/repo/store/git_target", file(".jj/repo/store/git_target", "/tmp/x")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_the_settings_lead_to_is_reported(name: str, work: Path) -> None:
    before, path, act = CASES[name]
    for place, text in before.items():
        write(work / place, text.format(work=work))
    left = left_by(work, act)
    assert (1, path) in said(left)
    assert left.gaps == ()


def test_ordinary_work_in_such_a_repository_is_not_reported(work: Path) -> None:
    write(work / ".hg" / "hgrc", "%include ../team.rc\n%include ~/x\n%include /etc/x\n%include\n")
    write(work / "team.rc", "%include team.rc\n%include ../.hg/hgrc\n")

    def act(work: Path) -> None:
        write(work / ".hg" / "store" / "00changelog.i")
        link(".hg/wlock", "host:1")(work)
        link(".hg/store/lock", "host:1")(work)
        link(".hg/cache/checklink", "checklink-target")(work)
        write(work / "src" / "app.py", "new\n")

    assert said(left_by(work, act)) == []


def test_more_than_are_followed_is_said(work: Path) -> None:
    for number in range(70):
        write(work / f"{number}.rc")
    write(work / ".hg" / "hgrc", "".join(f"%include ../{number}.rc\n" for number in range(70)))
    left = left_by(work, file("src/a"))
    assert left.gaps == ("more than 64 files that settings of Mercurial lead to",)


def test_settings_that_are_too_long_are_said(work: Path) -> None:
    write(work / ".hg" / "hgrc", "#\n" * (1 << 18))
    left = left_by(work, file("src/a"))
    assert left.gaps == (".hg/hgrc is too long for a search of what it includes",)


@given(st.lists(st.sampled_from([".hg", "a", "lock", "wlock", "store", ".jj"]), min_size=1, max_size=4))
def test_a_link_in_a_repository(parts: list[str]) -> None:
    inside = bool({".hg", ".jj"} & set(parts[:-1]))
    assert is_led_elsewhere("/".join(parts)) == (inside and parts[-1] not in ("lock", "wlock"))
