from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.launch.types import LinkFacts
from podbot.session.host_paths import kind_of, links_on, links_to_cwd, may_be_in, other_homes, walked, with_protected
from tests.launch.build import directory, facts

NAMES = st.sampled_from("abc")


def test_links_in_a_circle_are_no_question_of_rights(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert kind_of(str(tmp_path / "a")) == "circle"
    assert kind_of(str(tmp_path / "a" / "c")) == "circle"
    assert kind_of(str(tmp_path / "c")) == "missing"


TEXTS = st.tuples(
    st.sampled_from(["", "{root}/"]), st.lists(NAMES | st.sampled_from(["..", "."]), min_size=1, max_size=4)
)
TREES = st.dictionaries(st.tuples(NAMES, NAMES), TEXTS.map(lambda text: text[0] + "/".join(text[1])), max_size=5)


@given(TREES, st.lists(NAMES | st.just(".."), max_size=6))
def test_resolution_ends_where_the_kernels_does_and_misses_no_link(
    tree: dict[tuple[str, str], str], way: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = os.path.realpath(made)
        for name in "abc":
            os.mkdir(os.path.join(root, name))
        for (above, name), text in tree.items():
            os.symlink(text.replace("{root}", root), os.path.join(root, above, name))
        path = "/".join([root, *way])
        end, links = walked(path)
        try:
            os.stat(path)
        except OSError:
            return  # nothing is mounted there: what realpath makes of it does not matter
        assert end == os.path.realpath(path)
        for link in links:
            assert os.path.islink(link.path)
            assert os.path.realpath(os.path.dirname(link.path)) == os.path.dirname(link.path)
            assert link.leads_to == os.path.realpath(link.path)
        assert links or os.path.normpath(path) == end


@given(TREES, st.lists(NAMES, max_size=4), st.sampled_from(["", "a", "b/c"]))
@example({("a", "a"): "a"}, ["a", "a"], "")  # a circle
@example({("a", "b"): "c/../b"}, ["a", "b"], "")  # a circle for realpath; the kernel finds no directory a/c
def test_a_pwd_that_names_the_working_directory_shows_every_link_to_it(
    tree: dict[tuple[str, str], str], way: list[str], elsewhere: str
) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = os.path.realpath(made)
        for name in "abc":
            os.mkdir(os.path.join(root, name))
        for (above, name), text in tree.items():
            os.symlink(text.replace("{root}", root), os.path.join(root, above, name))
        pwd = "/".join([root, *way])
        if not os.path.isdir(pwd):
            return  # it cannot be a working directory
        cwd = os.path.realpath(pwd)
        found = links_to_cwd({"PWD": pwd}, cwd)
        assert found == links_on(pwd)
        assert bool(found) == (pwd != cwd)
        other = os.path.join(root, elsewhere)
        if os.path.realpath(other) != cwd:
            assert links_to_cwd({"PWD": other}, cwd) == ()
        for no_name in ({}, {"PWD": ""}, {"PWD": "/".join(way)}, {"PWD": pwd + "\0"}):
            assert links_to_cwd(no_name, cwd) == ()


def test_the_repository_around_a_link_is_the_nearest(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "mono" / "lib" / "x").mkdir(parents=True)
    (root / "mono" / ".git").mkdir()
    (root / "other").mkdir()
    (root / "mono" / "lib" / "x" / "api").symlink_to("../../../other")
    link = root / "mono" / "lib" / "x" / "api"
    assert links_on(str(link)) == (LinkFacts(str(link), str(root / "other"), str(root / "mono")),)
    (root / "mono" / "lib" / ".git").write_text("gitdir: ../elsewhere")
    assert links_on(str(link))[0].repository == str(root / "mono" / "lib")


def test_a_loop_of_links_is_detected(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert len(links_on(str(tmp_path / "a"))) == 64


def test_settings_that_a_home_has_elsewhere(tmp_path: Path) -> None:
    home = Path(os.path.realpath(tmp_path)) / "ann"
    (home / "dotfiles" / "nvim").mkdir(parents=True)
    (home / ".config").mkdir()
    (home / "dotfiles" / "bashrc").touch()
    (home / ".bashrc").symlink_to("dotfiles/bashrc")
    (home / "dotfiles" / "programs").mkdir()
    (home / "bin").symlink_to("dotfiles/programs")
    (home / ".config" / "nvim").symlink_to("../dotfiles/nvim")
    (home / "plain").symlink_to("/srv")
    (home / ".everything").symlink_to("/")
    (home / ".me").symlink_to(home)
    found = with_protected(facts(home=str(home), workspace=directory(str(home / "dotfiles"))))
    inside = [place for place in found.named_only if place.startswith(str(home))]
    assert inside == [str(home / "dotfiles" / name) for name in ("bashrc", "nvim", "programs")]
    assert not {"/", "/srv", str(home)} & set(found.named_only)
    assert dataclasses.replace(found, named_only=(), protected=()).home == str(home)


@pytest.mark.parametrize(
    ("made", "there"),
    [
        ("", False),
        (".claude/", False),
        (".claude/settings.json", True),
        (".claude ->", True),
        (".claude/settings.json ->", True),
    ],
)
def test_settings_in_a_workspace(tmp_path: Path, made: str, there: bool) -> None:
    """A link has another target inside than outside, so the host cannot tell whether the target exists."""
    path = tmp_path / made.removesuffix(" ->").rstrip("/")
    if made:
        path.parent.mkdir(exist_ok=True)
        if made.endswith("->"):
            path.symlink_to("/nowhere/on/this/host")
        elif made.endswith("/"):
            path.mkdir()
        else:
            path.touch()
    assert may_be_in(str(tmp_path), ".claude/settings.json") == there


def test_homes_of_people_are_known_wherever_they_are(tmp_path: Path) -> None:
    passwd = tmp_path / "passwd"
    passwd.write_text(
        "root:x:0:0:root:/root:/bin/sh\nann:x:1001:1001::/data/people/ann:/bin/sh\nbroken\n+::::::\n"
        "nobody:x:65534:65534::/nonexistent:/bin/false\nsvc:x:999:999::/srv:/bin/false\nx:x:1002:1:::\n"
    )
    assert other_homes(4242, str(passwd)) == ("/data/people/ann",)
    assert other_homes(999, str(passwd)) == ("/data/people/ann", "/srv")
    assert other_homes(4242, str(tmp_path / "none")) == ()
