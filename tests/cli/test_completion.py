"""The values that the shell's completion offers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.agents.registry import names
from podbot.cli import completion
from podbot.cli.commands import COMMANDS
from podbot.container_spec import Mount
from podbot.images.image_names import image_names, remember_images
from podbot.launch.resources.history import HistoryPlan, project_key
from podbot.management.history_list import history_root
from podbot.session.directory import session_directory
from podbot.session.kept_reports import keep_report
from podbot.session.resources.history import history_in_use

KINDS = (
    {argument.completes for command in COMMANDS for argument in command.arguments}
    | {option.completes for command in COMMANDS for option in command.options}
) - {""}


def test_names_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with session_directory(str(tmp_path / "podbot" / "podbot-a"), "e"):
        assert completion.complete_session("podbot-") == ["podbot-a"]
        assert completion.complete_session("x") == []


def test_sessions_with_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert completion.complete_report("") == []
    for session in ("shop-b", "shop-a", "shop-a", "api"):
        keep_report(os.environ, session, [])
    assert completion.complete_report("sh") == ["shop-a", "shop-b"]
    store = tmp_path / "podbot" / "reports"
    store.rename(tmp_path / "moved")
    store.touch()
    assert completion.complete_report("sh") == []


def test_agents_and_modes() -> None:
    assert completion.complete_agent("c") == [name for name in names() if name.startswith("c")]
    assert completion.complete_agent("cl") == ["claude"]
    assert completion.complete_run_mode("") == ["podbot"]
    assert completion.complete_host_mode("c") == ["codex_app_server"]


def test_projects_with_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert completion.complete_project("") == []
    for project in ("/home/ann/shop", "https://github.com/octo/hello"):
        key = project_key("host_mount", project)
        directory = os.path.join(history_root(os.environ), key)
        with history_in_use(HistoryPlan(key, directory, project, Mount(os.path.join(directory, "claude"), "/x"), ())):
            pass
    assert completion.complete_project("/") == ["/home/ann/shop"]
    assert completion.complete_project("octo") == ["octo/hello"]
    assert completion.complete_project("https") == ["https://github.com/octo/hello"]


def test_images_that_were_built_or_listed_and_the_configured_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PODBOT_IMAGE", "localhost/mine:1")
    monkeypatch.delenv("PODBOT_CACHE", raising=False)
    assert completion.complete_image("") == ["localhost/mine:1"]
    remember_images(os.environ, ["localhost/a", "localhost/b"], all_of_them=True)
    remember_images(os.environ, ["localhost/c"], all_of_them=False)
    assert completion.complete_image("localhost/") == ["localhost/mine:1", "localhost/c", "localhost/a", "localhost/b"]
    remember_images(os.environ, ["localhost/b"], all_of_them=True)
    assert completion.complete_image("localhost/") == ["localhost/mine:1", "localhost/b"]


def test_names_of_images_are_read_from_a_file_of_ours_only(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    remember_images(environ, ["a\x1b[2J", "localhost/a"], all_of_them=True)
    assert image_names(environ) == ("localhost/a",)
    (path,) = tmp_path.rglob("image-names")
    assert path.stat().st_mode & 0o777 == 0o600
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert image_names(environ) == ()


def test_profiles_and_shells() -> None:
    assert completion.complete_profile("") == ["hardened", "minimal", "privileged"]
    assert completion.complete_shell("f") == ["fish"]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_kind_in_the_table_has_values(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert isinstance(completion.values(name, ""), list)
