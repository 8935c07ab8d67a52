"""The name by which messages tell the operator to type podbot."""

from __future__ import annotations

from pathlib import Path

from podbot.cli.own_name import own_name


def program(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "podbot"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_podbot_that_the_path_finds_is_called_by_its_name(tmp_path: Path) -> None:
    there = program(tmp_path / "bin")
    assert own_name(str(there), {"PATH": str(there.parent)}) == "podbot"


def test_a_link_on_the_path_counts_as_this_podbot(tmp_path: Path) -> None:
    there = program(tmp_path / "my clone" / ".venv" / "bin")
    link = tmp_path / "bin" / "podbot"
    link.parent.mkdir()
    link.symlink_to(there)
    assert own_name(str(there), {"PATH": str(link.parent)}) == "podbot"


def test_after_make_run_on_a_fresh_account_the_whole_path_is_said(tmp_path: Path) -> None:
    there = program(tmp_path / "my clone" / ".venv" / "bin")
    assert own_name(str(there), {"PATH": str(tmp_path)}) == f"'{there}'"


def test_another_podbot_on_the_path_is_not_meant(tmp_path: Path) -> None:
    other, this = program(tmp_path / "other"), program(tmp_path / "this")
    assert own_name(str(this), {"PATH": str(other.parent)}) == str(this)


def test_a_program_that_uses_podbot_is_not_named() -> None:
    assert own_name("/usr/bin/pytest", {"PATH": "/nowhere"}) == "podbot"
