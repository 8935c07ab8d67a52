"""``podbot run --repo`` from the command line to a plan."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.events import Event
from podbot.testing import IMAGE, FakeEngine
from tests.session.plans import Place

BASE = "/work"  # workspace.base_dir

Capture = pytest.CaptureFixture[Any]
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
RUN = ["run", "--image", IMAGE, "--agent", "custom", "--dry-run", "--json"]


@pytest.fixture
def app(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An operator with an App."""
    monkeypatch.setenv("PODBOT_GITHUB_APP_ID", "1")
    monkeypatch.setenv("PODBOT_GITHUB_INSTALLATION_ID", "2")
    monkeypatch.setenv("PODBOT_GITHUB_PRIVATE_KEY_PATH", os.path.join(place.base, "app.pem"))
    return place


def test_every_flag_reaches_the_plan(app: Place, capfd: Capture) -> None:
    flags = ["--repo", "octo/shop", "--branch", "b", "--depth", "3", "--submodules"]
    assert main([*RUN, *flags, "--", "x"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown["clone"] == {
        "repo": "octo/shop",
        "branch": "b",
        "url": "https://github.com/octo/shop.git",
        "directory": f"{BASE}/shop",
        "depth": 3,
        "submodules": True,
    }
    assert (shown["keep"], shown["source"], shown["token"]["app_id"]) == ("when_unsaved", "github_clone", 1)


@pytest.mark.parametrize(("flag", "keep"), [("--keep", "always"), ("--rm", "never")])
def test_keep_and_rm(app: Place, capfd: Capture, flag: str, keep: str) -> None:
    assert main([*RUN, "--repo", "octo/shop", flag, "--", "x"]) == 0
    assert json.loads(capfd.readouterr().out)["keep"] == keep


def test_a_mount_in_the_file_is_overridden_by_repo(app: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODBOT_WORKSPACE_SOURCE", "host_mount")
    monkeypatch.setenv("PODBOT_WORKSPACE_HOST_PATH", app.workspace)
    assert main([*RUN, "--repo", "octo/shop", "--", "x"]) == 0
    assert json.loads(capfd.readouterr().out)["clone"]["repo"] == "octo/shop"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--repo", "octo/shop", "--workspace", "."], ". is named as the workspace, too"),
        (["--repo", "shop"], "'shop' is not owner/name"),
        (
            ["--repo", "octo/shop", "--github-access", "octo/b"],
            "--github-access is for a mounted workspace, and octo/shop is cloned",
        ),
        (
            ["--workspace", ".", "--github-access", "shop"],
            "repository (flag --github-access): 'shop' is not owner/name",
        ),
        (["--repo", "https://github.com/octo/shop.git"], "Write octo/shop."),
        (["--repo", "octo/shop", "--branch", "a..b"], "branch (flag --branch): 'a..b' cannot be the name of a branch"),
        (["--repo", "octo/shop", "--depth", "0"], "workspace.depth (flag --depth): 0 is out of range"),
        (
            ["--repo", "https://gitlab.com/a/b.git"],
            (
                "repository (flag --repo): https://gitlab.com/a/b.git is on gitlab.com, and podbot clones only from"
                " github.com (github.server_url). Clone it yourself, `git clone https://gitlab.com/a/b.git ./b`, and"
                " name its directory with `-w ./b` in place of the repository.\n"
            ),
        ),
        (
            ["--github-access", "https://gitlab.com/a/b", "--workspace", "."],
            (
                "https://gitlab.com/a/b is on gitlab.com, and podbot has tokens only for github.com"
                " (github.server_url). Write it as owner/name"
            ),
        ),
        (
            ["--branch", "b", "--workspace", "."],
            (
                "branch (flag --branch): it is only for a clone, and no repository is named. Leave it out: the agent"
                " works on the branch that . has. Or name a repository to clone (`--repo OWNER/NAME`) in place of the"
                " directory.\n"
            ),
        ),
        (
            ["--depth", "1", "--workspace", "."],
            (
                "workspace.depth (flag --depth): it is only for a clone, and no repository is named. Leave it out. Or"
                " name a repository to clone (`--repo OWNER/NAME`) in place of the directory.\n"
            ),
        ),
        (
            ["--no-submodules", "--workspace", "."],
            "workspace.submodules (flag --no-submodules): it is only for a clone",
        ),
    ],
)
def test_errors_are_reported(app: Place, capfd: Capture, flags: list[str], said: str) -> None:
    assert main([*RUN, *flags, "--", "x"]) == 2
    captured = capfd.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_without_an_app_a_repository_is_cloned_without_a_token(place: Place, capfd: Capture) -> None:
    assert main([*RUN, "--repo", "octo/shop", "--", "x"]) == 0
    assert json.loads(capfd.readouterr().out)["token"] is None


def test_the_source_of_the_token_is_chosen_by_a_flag(app: Place, capfd: Capture) -> None:
    assert main([*RUN, "--repo", "octo/shop", "--github-auth", "gh", "--", "x"]) == 0
    assert json.loads(capfd.readouterr().out)["token"]["auth"] == "gh"
    assert main([*RUN, "--repo", "octo/shop", "--github-auth", TOKEN, "--", "x"]) == 2
    assert TOKEN not in capfd.readouterr().err


def test_a_keys_directory_is_not_mounted(app: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    key = os.path.join(app.workspace, "keys", "app.pem")
    monkeypatch.setenv("PODBOT_GITHUB_PRIVATE_KEY_PATH", key)
    assert main([*RUN, "--workspace", app.workspace, "--", "x"]) == 2
    assert f"it contains {key}, the GitHub App's private key" in capfd.readouterr().err


@pytest.mark.parametrize(("verbose", "shown"), [(0, False), (1, True)])
def test_progress_is_shown_on_a_terminal_and_with_v(capfd: Capture, verbose: int, shown: bool) -> None:
    Reporter(Globals(verbose=verbose), progress=True)(Event("info", "clone.progress", "cloning: 5%"))
    assert ("cloning: 5%" in capfd.readouterr().err) is shown


def test_stop_reports_what_it_kept(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    from tests.session.clones import left_behind
    from tests.session.plans import SESSION
    from tests.session.real import real, shell

    engine.on("git", real)
    engine.on("sh", shell(engine))
    directory = left_behind(engine, place)
    with open(os.path.join(directory, "new"), "w", encoding="utf-8"):
        pass
    assert main(["stop", SESSION]) == 0
    captured = capfd.readouterr()
    assert captured.out == f"{SESSION}  (kept, stopped)\n"
    assert "1 untracked file (new)" in captured.err
