"""Where an agent's login is, and reading the files of which it is judged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.agents.login_state import LARGEST
from podbot.agents.registry import families
from podbot.credentials.login_reading import login_to_copy, place_of, read_login_files
from podbot.errors import InvalidValue


@pytest.mark.parametrize(("kind", "variable"), [("claude", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")])
def test_the_agent_s_own_variable_names_the_directory(kind: str, variable: str, tmp_path: Path) -> None:
    family, home = families()[kind], str(tmp_path / "home")
    assert place_of(family, home, {}) == f"{home}/.{kind}"
    assert place_of(family, home, {variable: ""}) == f"{home}/.{kind}"
    assert place_of(family, home, {variable: "/data/x/"}) == "/data/x"


@pytest.mark.parametrize("given", [".claude", "~/.claude", "/", "HOME", "HOME/.."])
def test_a_directory_that_depends_on_the_working_directory_or_holds_the_home_is_refused(
    given: str, tmp_path: Path
) -> None:
    environ = {"CLAUDE_CONFIG_DIR": given.replace("HOME", str(tmp_path))}
    with pytest.raises(InvalidValue) as caught:
        place_of(families()["claude"], str(tmp_path), environ)
    assert caught.value.field == "CLAUDE_CONFIG_DIR"


def test_a_file_that_cannot_be_read_has_a_reason(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "outside").write_text("{}")
    (top / "there").write_text("{}")
    (top / "inner").symlink_to("there")
    (top / "out").symlink_to("../outside")
    (top / "loop").symlink_to("loop")
    (top / "directory").mkdir()
    os.mkfifo(top / "fifo")
    with open(top / "large", "wb") as file:
        file.truncate(1 << 40)
    names = ("there", "inner", "out", "loop", "directory", "fifo", "large", "missing")
    found = read_login_files(str(top), names)
    assert "missing" not in found
    assert (found["there"], found["inner"]) == (b"{}", b"{}")
    assert found["out"] == f"it is a link out of {top}, which is not copied"
    assert all(isinstance(found[name], str) for name in ("loop", "directory", "fifo"))
    assert len(found["large"]) == LARGEST + 1


def test_a_sandbox_gets_the_login_as_it_is_or_without_what_renews_it() -> None:
    codex = b'{"auth_mode": "chatgpt", "tokens": {"access_token": "a", "refresh_token": "c4n4ry"}, "more": 1}'
    assert login_to_copy("codex", codex, renewable=True) == (codex, True)
    content, alone = login_to_copy("codex", codex, renewable=False)
    assert alone
    assert isinstance(content, bytes)
    assert b"c4n4ry" not in content


def test_a_file_in_which_podbot_finds_no_login_is_copied_only_with_what_renews_it() -> None:
    other = b'{"auth_mode": "of-another-kind", "agent_identity": "c4n4ry"}'
    assert login_to_copy("codex", other, renewable=True) == (other, False)
    content, alone = login_to_copy("codex", other, renewable=False)
    assert (content, alone) == ("creds.copy_refresh_tokens is false, and it contains no login", False)
    assert login_to_copy("codex", "Permission denied", renewable=True) == ("Permission denied", False)
