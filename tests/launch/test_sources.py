from __future__ import annotations

import dataclasses
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import MountRefused
from podbot.launch.mounts import plan_mounts
from podbot.launch.types import HostFacts, LaunchRequest, LinkFacts, PathFacts
from tests.launch.build import config, directory, facts, typed


def refused(host: HostFacts, request: LaunchRequest | None = None) -> MountRefused:
    with pytest.raises(MountRefused) as caught:
        plan_mounts(config(), request or typed(), host)
    return caught.value


def mounted(host: HostFacts, request: LaunchRequest | None = None) -> str:
    return plan_mounts(config(), request or typed(), host).workspace.source


# --- dot-directories of homes, and system directories that may hold projects ---

CLOSED = [
    *(f"{home}/{name}" for home in ("/home/ann", "/root", "/home/bob", "/var/home/bob", "/Users/bob") for name in (
        ".config/nvim", ".vim", ".vim/plugin", ".oh-my-zsh", ".cargo/registry", ".m2", ".local/lib", ".local/share/x",
        ".cache/worktrees/a", ".dotfiles", ".x", "..x", ".bashrc.d",
    )),
    "/opt", "/opt/shop", "/var/log", "/var/log/app", "/var/lib/jenkins/workspace/shop", "/var/cache/x",
]  # fmt: skip


def named(*roots: str) -> dict[str, Any]:
    return {"allowed_roots": tuple(directory(root) for root in roots)}


@pytest.mark.parametrize("path", CLOSED)
def test_paths_that_are_refused_until_named(path: str) -> None:
    """Issue 12.7: a list of known names allowed most of them."""
    parents = [str(parent) for parent in PurePosixPath(path).parents]
    holding = [root for root in parents if root in ("/", "/home", "/home/ann", "/root", "/var")]
    for roots in ((), ("/home/ann/src",), holding):
        error = refused(facts(workspace=directory(path), **named(*roots)))
        assert error.reason.startswith(("it is a", "it is inside", "it contains"))
    if path not in ("/home/ann/.m2", "/root/.m2", "/home/bob/.m2", "/var/home/bob/.m2", "/Users/bob/.m2"):
        assert error.hint.endswith(f'workspace.allowed_roots = ["{path}"].')
        assert mounted(facts(workspace=directory(path), **named("/home/ann/src", path))) == path


def test_an_entry_in_a_refused_path_names_what_it_contains() -> None:
    for root in ("/home/ann/.cache/worktrees", "/home/ann/.cache"):
        assert mounted(facts(workspace=directory("/home/ann/.cache/worktrees/a"), **named(root)))
    assert mounted(facts(workspace=directory("/opt/shop/x"), **named("/opt")), LaunchRequest()) == "/opt/shop/x"
    refused(facts(workspace=directory("/home/ann/.cache/w"), **named("/home/ann/.cache/worktrees", "/home/ann")))


@pytest.mark.parametrize(
    "path", ["/home/ann/bin", "/home/ann/bin/x", "/root/bin", "/home/eve/bin", "/var/home/eve/bin"]
)
def test_a_home_s_own_programs_are_refused_until_named(path: str) -> None:
    """What is written there runs in place of any program, from the next login on."""
    assert "directory of programs" in refused(facts(workspace=directory(path)), typed()).reason
    assert mounted(facts(workspace=directory(path), **named(path))) == path


@pytest.mark.parametrize("path", ["/home/ann/src/bin", "/home/ann/binary", "/srv/bin"])
def test_other_directories_of_that_name_are_projects(path: str) -> None:
    assert mounted(facts(workspace=directory(path)), typed()) == path


def test_a_typed_path_names_nothing() -> None:
    """A command line is typed, or completed, without much thought; the configuration is not."""
    assert "dot-directory" in refused(facts(workspace=directory("/home/ann/.vim")), typed()).reason


def test_an_entry_that_is_not_a_directory_names_nothing() -> None:
    root = PathFacts("/home/ann/.vim", "/home/ann/.vim", "other")
    refused(facts(workspace=directory("/home/ann/.vim"), allowed_roots=(root,)))


@pytest.mark.parametrize("path", ["/home/ann/.ssh", "/home/ann/.config", "/home/ann/.cargo/bin", "/home/ann/.local"])
def test_credentials_are_refused_even_when_named(path: str) -> None:
    assert "credentials" in refused(facts(workspace=directory(path), **named(path))).reason


def test_a_home_elsewhere_has_dot_directories_too() -> None:
    path = "/data/people/eve/.vim"
    assert mounted(facts(workspace=directory(path))) == path
    refused(facts(workspace=directory(path), homes=("/data/people/eve",)))
    refused(facts(workspace=directory("/data/people/eve"), homes=("/data/people/eve",)))


def test_the_target_of_a_dot_link_is_refused_until_named() -> None:
    host: dict[str, Any] = {"named_only": ("/home/ann/dotfiles/vimrc",)}
    error = refused(facts(workspace=directory("/home/ann/dotfiles"), **host))
    assert "contains /home/ann/dotfiles/vimrc" in error.reason
    refused(facts(workspace=directory("/home/ann/dotfiles"), **host, **named("/home/ann")))
    assert mounted(facts(workspace=directory("/home/ann/dotfiles"), **host, **named("/home/ann/dotfiles")))


NAMES = st.sampled_from([".vim", ".cache", ".ssh", ".config", "src", "a", "opt", "var", "log", "nvim"])
BELOW = st.lists(NAMES, max_size=3).map("/".join)
HOMES = st.sampled_from(["/home/ann", "/root", "/home/bob", "/var/home/eve", "/Users/eve", ""])
SPOTS = st.tuples(HOMES, BELOW).map(lambda parts: str(PurePosixPath("/", parts[0], parts[1])))


@given(SPOTS, st.lists(SPOTS, max_size=3), st.booleans())
def test_no_dot_directory_of_a_home_is_mounted_without_an_entry_in_it(
    path: str, roots: list[str], trusted: bool
) -> None:
    host = facts(workspace=directory(path), **named(*roots))
    try:
        found = mounted(host, LaunchRequest(trusted_workspace=trusted))
    except MountRefused:
        return
    parts = PurePosixPath(found).parts
    at = 3 if parts[1:2] in (("home",), ("Users",)) else 4 if parts[1:3] == ("var", "home") else 2
    in_a_home = parts[1:2] in (("home",), ("Users",), ("root",)) or parts[1:3] == ("var", "home")  # /var/.x is in none
    if in_a_home and len(parts) > at and parts[at].startswith("."):
        dot = PurePosixPath(*parts[: at + 1])
        assert any(
            PurePosixPath(root).is_relative_to(dot) and PurePosixPath(found).is_relative_to(root) for root in roots
        )


# --- links on the way ---

MONO, SECRET = "/home/ann/src/mono", "/home/ann/src/secretproj"


def through(*links: LinkFacts, end: str = SECRET, given: str = "mono/api") -> HostFacts:
    return facts(workspace=PathFacts(given, end, "directory", links=links))


def test_a_link_left_by_an_agent_does_not_select_the_workspace() -> None:
    """Issue 12.7: `mono/api -> ../secretproj`, then `podbot run -w mono/api`."""
    host = through(LinkFacts(f"{MONO}/api", SECRET, MONO))
    error = refused(host)
    assert error.path == f"{SECRET}, from mono/api"
    assert error.reason == f"the link {MONO}/api leads out of {MONO}, to {SECRET}"
    assert error.hint.endswith(f"write {SECRET}, or set follow_links.")
    assert mounted(host, typed(follow_links=True)) == SECRET
    assert mounted(through(given=SECRET)) == SECRET


def test_a_link_within_its_repository_is_followed() -> None:
    assert mounted(through(LinkFacts(f"{MONO}/a/api", f"{MONO}/b", MONO), end=f"{MONO}/b"))
    assert mounted(through(LinkFacts(f"{MONO}/api", f"{MONO}/b"), end=f"{MONO}/b/c"))


def test_a_link_outside_any_repository_may_only_lead_below_its_own_directory() -> None:
    host = through(LinkFacts(f"{MONO}/a/api", f"{MONO}/b"), end=f"{MONO}/b")
    assert f"leads out of {MONO}/a, to" in refused(host).reason


@pytest.mark.parametrize("path", ["/home/ann/shop", "/home", "/data", "/var/x", "/usr/local/x"])
def test_a_link_that_no_agent_can_have_written_is_followed(path: str) -> None:
    assert mounted(through(LinkFacts(path, "/mnt/disk/shop"), end="/mnt/disk/shop")) == "/mnt/disk/shop"


def test_a_home_that_is_a_repository_allows_nothing_more() -> None:
    """An agent can remove its own repository's .git, and the next one above is the home's."""
    assert "leads out of" in refused(through(LinkFacts(f"{MONO}/api", SECRET, "/home/ann"))).reason


def test_an_allowed_root_does_not_allow_following_a_link() -> None:
    link = LinkFacts(f"{MONO}/api", SECRET, MONO)
    host = dataclasses.replace(through(link), **named("/home/ann/src"))
    assert "leads out of" in refused(host, LaunchRequest()).reason


def test_a_link_cannot_select_an_extra_mount_either() -> None:
    found = PathFacts(f"{MONO}/ref", SECRET, "directory", links=(LinkFacts(f"{MONO}/ref", SECRET, MONO),))
    made = config({"sandbox.extra_mounts": (f"{MONO}/ref:/ref:ro",)})
    with pytest.raises(MountRefused) as caught:
        plan_mounts(made, typed(follow_links=True), facts(extra_mounts=(found,), **named("/home/ann/src")))
    assert caught.value.hint.endswith(f"write {SECRET}.")


def test_a_misleading_name_is_made_visible() -> None:
    error = refused(through(LinkFacts(f"{MONO}/a\x1b[2Jb", SECRET, MONO)))
    assert str(error).isprintable()


PLACES = st.lists(st.sampled_from(["srv", "data", "a", "b", "c"]), min_size=1, max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
LINKS = st.builds(LinkFacts, PLACES, PLACES, PLACES | st.none())


@given(PLACES, st.lists(LINKS, max_size=3), st.booleans())
def test_nothing_is_mounted_outside_what_a_links_author_already_had(
    end: str, links: list[LinkFacts], follow: bool
) -> None:
    host = facts(workspace=PathFacts("x", end, "directory", links=tuple(links)))
    outside = [
        link
        for link in links
        if link.path.count("/") > 1
        and not PurePosixPath(end).is_relative_to(link.repository or PurePosixPath(link.path).parent)
    ]
    if follow or not outside:
        assert mounted(host, typed(follow_links=follow)) == end
    else:
        assert outside[0].path in refused(host).reason
