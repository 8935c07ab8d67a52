"""``[project."PATH"]``: which table applies to which workspace, and what it may set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config import AppConfig, LoadOptions, Origin, load_config
from podbot.config.layers import Place
from podbot.config.models import ProjectChoice
from podbot.config.projects import project_tables
from podbot.errors import InvalidValue, PodbotError, UnknownKey

FLAGS = {"workspace.host_path": "--workspace", "workspace.source": "--workspace"}


class User:
    """A home with a configuration file, and directories to work on."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {"HOME": str(home)}
        self.file = home / ".config" / "podbot" / "config.toml"
        self.file.parent.mkdir(parents=True)

    def make(self, name: str) -> Path:
        path = self.home / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def load(self, text: str, workspace: object = None, **overrides: Any) -> AppConfig:
        self.file.write_text(text)
        values: dict[str, Any] = {} if workspace is None else {"workspace.host_path": str(workspace)}
        values |= {"workspace.source": "host_mount"} if values else {}
        return load_config(LoadOptions(overrides=values | overrides, flags=FLAGS, environ=self.environ))


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(Path(os.path.realpath(tmp_path)))


SHOP = """
image = "all"
[sandbox]
memory = "1g"
pids = 100
[project."~/src/shop"]
image = "shop"
sandbox.memory = "4g"
workspace.read_only = true
[project."~/src/shop".agent]
kind = "codex"
"""


def test_a_table_applies_to_its_directory_and_below_it(user: User) -> None:
    user.make("src/shop/web")
    for workspace in ("src/shop", "src/shop/web"):
        config = user.load(SHOP, user.home / workspace)
        found = (config.image, config.sandbox.memory, config.sandbox.pids, config.agent.kind)
        assert found == ("shop", "4g", 100, "codex")
        assert config.workspace.read_only
        assert config.project == ProjectChoice(str(user.home / workspace), "~/src/shop")


@pytest.mark.parametrize("workspace", ["src", "src/shop2", "src/sho", ""])
def test_it_applies_to_no_other_directory(user: User, workspace: str) -> None:
    user.make("src/shop2")
    config = user.load(SHOP, user.home / workspace)
    assert (config.image, config.sandbox.memory, config.agent.kind) == ("all", "1g", "claude")
    assert config.project == ProjectChoice(str(user.home / workspace))


def test_without_a_workspace_on_this_host_no_table_applies(user: User) -> None:
    user.make("src/shop")
    assert user.load(SHOP).project is None
    cloning = user.load(SHOP, user.home / "src/shop", **{"workspace.source": "github_clone"})
    assert (cloning.project, cloning.image) == (None, "all")
    assert user.load('image = "all"', user.home / "src/shop").project is None


def test_the_origin_names_the_project(user: User) -> None:
    config = user.load(SHOP, user.make("src/shop"))
    assert str(config.origin("sandbox.memory")) == f"config file {user.file}, project ~/src/shop"
    assert config.origin("sandbox.pids") == Origin("file", str(user.file))


def test_flags_and_variables_override_a_project(user: User) -> None:
    user.environ["PODBOT_AGENT_KIND"] = "gemini"
    config = user.load(SHOP, user.make("src/shop"), image="typed")
    assert (config.image, config.agent.kind, config.sandbox.memory) == ("typed", "gemini", "4g")


def test_the_nearest_directory_wins_alone(user: User) -> None:
    text = """
[project."/"]
image = "root"
[project."~/src"]
image = "src"
sandbox.pids = 50
[project."~/src/shop"]
sandbox.cpus = 1
"""
    config = user.load(text, user.make("src/shop"))
    assert (config.image, config.sandbox.pids, config.sandbox.cpus) == (None, 2048, 1.0)
    assert user.load(text, user.make("src/other")).image == "src"
    assert user.load(text, user.make("else")).image == "root"


def test_a_list_of_a_project_replaces_the_whole_list(user: User) -> None:
    text = '[agent]\nenv_allowlist = ["A"]\n[project."~/p"]\nagent.env_allowlist = ["B"]\n'
    assert user.load(text, user.make("p")).agent.env_allowlist == ("B",)


def test_a_workspace_is_matched_by_its_real_path(user: User) -> None:
    user.make("src/shop")
    (user.home / "link").symlink_to(user.home / "src")
    assert user.load(SHOP, user.home / "link" / "shop").image == "shop"


def test_a_home_that_is_a_link_is_followed(tmp_path: Path) -> None:
    User(tmp_path / "real").make("src/shop")
    (tmp_path / "home").symlink_to(tmp_path / "real")
    file = tmp_path / "real" / ".config" / "podbot" / "config.toml"
    file.write_text(SHOP)
    values = {"workspace.host_path": str(tmp_path / "home/src/shop"), "workspace.source": "host_mount"}
    config = load_config(LoadOptions(overrides=values, environ={"HOME": str(tmp_path / "home")}))
    assert config.image == "shop"


def test_a_link_in_a_tables_path_chooses_nothing_and_is_reported(user: User) -> None:
    """An agent that works in ~/src could make it, and give another project these settings."""
    other = user.make("src/other")
    (user.home / "src/shop").symlink_to(other)
    config = user.load(SHOP, other)
    assert config.image == "all"
    assert config.project == ProjectChoice(str(other), "", ("~/src/shop", str(other)))


def test_a_nearer_table_is_not_disturbed_by_a_link_above(user: User) -> None:
    shop = user.make("src/shop")
    (user.home / "all").symlink_to(user.home / "src")
    text = '[project."~/all"]\nimage = "a"\n[project."~/src/shop"]\nimage = "s"\n'
    config = user.load(text, shop)
    assert (config.image, config.project) == ("s", ProjectChoice(str(shop), "~/src/shop"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("project = 1", "expected tables, not a number"),
        ('[project]\n"~/a" = 1', "expected a table, not a number"),
        ('[project."src"]', "not an absolute path"),
        ('[project.""]', "not an absolute path"),
        ('[project."~ada/src"]', "not an absolute path"),
        ('[project."~/src/../.."]', "contains '..'"),
        ('[project."/a\\u0000"]', "NUL"),
        ('[project."~/a"]\n[project."~/a/"]', 'project."~/a"] is for the same directory'),
        ('[project."~/a"]\nengine_socket = "unix:///s"', "before the workspace is known"),
        ('[project."~/a".github]\napp_id = 1', "same for all sessions"),
        ('[project."~/a".workspace]\nallowed_roots = ["/"]', "decides which workspace"),
        ('[project."~/a"]\nworkspace.source = "none"', "decides which workspace"),
        ('[project."~/a"]\nagent.install = ["codex"]', "images are built for all sessions"),
        ('[project."~/a"]\nsandbox.packages = ["gh"]', "images are built for all sessions"),
        ('[project."~/a"]\nsandbox.memory = "lots"', "not an amount of memory"),
        ('[project."~/a"]\nsandbox = 1', "expected a table"),
    ],
)
def test_an_invalid_table_is_refused_whatever_the_workspace_is(user: User, text: str, said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        user.load(text)
    assert said in str(caught.value)
    assert f"config file {user.file}" in caught.value.origin


@pytest.mark.parametrize(
    ("text", "key", "suggestion"),
    [
        ('[project."~/a"]\nsandbox.memry = "1g"', 'project."~/a".sandbox.memry', "sandbox.memory"),
        ('[project."~/a".sandbx]\nmemory = "1g"', 'project."~/a".sandbx', "sandbox"),
        ('[projekt."~/a"]', "projekt", "project"),
        ('[project."~/a".project."~/b"]', 'project."~/a".project', ""),
    ],
)
def test_an_unknown_key_is_named_with_its_table(user: User, text: str, key: str, suggestion: str) -> None:
    with pytest.raises(UnknownKey) as caught:
        user.load(text)
    assert caught.value.key == key
    assert not suggestion or caught.value.suggestion == suggestion


@given(
    st.dictionaries(st.text(max_size=12), st.none() | st.integers() | st.dictionaries(st.text(max_size=5), st.text()))
)
def test_any_table_is_read_or_refused(value: dict[str, Any]) -> None:
    try:
        tables = project_tables(value, Place(Origin("file", "/c.toml"), b""), {"HOME": "/home/ann"})
    except PodbotError:
        return
    assert all(os.path.isabs(table.path) and os.path.normpath(table.path) == table.path for table in tables)
    assert len({table.path for table in tables}) == len(value)
