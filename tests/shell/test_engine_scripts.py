"""The scripts for a sandbox without a guest, on this machine's shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from podbot.shell.engine_scripts import started


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture(params=["sh", "bash"])
def shell(request: pytest.FixtureRequest) -> str:
    """An image's may be any."""
    program = shutil.which(str(request.param))
    if program is None:
        pytest.skip(f"no {request.param}")
    return program


def run(shell: str, cwd: Path, within: Path, *argv: str, **env: str) -> tuple[int, bytes]:
    _, *command = started("W", str(cwd), argv or ("pwd", "-P"), keep=(), discard=False, tty=False, within=str(within))
    done = subprocess.run([shell, *command], env={"PATH": os.environ["PATH"], **env}, capture_output=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", ["below", "newlines\n\n", " *?[a]'\"$(x)\\", ".", "-n"])
def test_directories_below_the_root(shell: str, place: Path, name: str) -> None:
    for root in (place / "root", place / "newline\n"):
        (root / name).mkdir(parents=True)
        code, out = run(shell, root / name, root)
        assert (code, out[5:]) == (0, os.fsencode(os.path.normpath(root / name)) + b"\n")


@pytest.mark.parametrize("outside", ["root\n", "root\n\n", "root2", "other", "."])
def test_links_out_of_the_root_are_refused(shell: str, place: Path, outside: str) -> None:
    (place / outside).mkdir(exist_ok=True)
    (place / "root").mkdir()
    (place / "root/link").symlink_to(place / outside)
    assert run(shell, place / "root/link", place / "root") == (125, b"W!")


def test_a_root_with_a_newline_does_not_contain_its_sibling_without_one(shell: str, place: Path) -> None:
    (place / "root").mkdir()
    (place / "root\n").mkdir()
    (place / "root\n/link").symlink_to(place / "root")
    assert run(shell, place / "root\n/link", place / "root\n") == (125, b"W!")


def test_a_root_that_is_a_link(shell: str, place: Path) -> None:
    (place / "all").symlink_to("/")
    assert run(shell, place / "all", place / "all")[0] == 0
    assert run(shell, place / "all/usr", place / "all")[0] == 0
    assert run(shell, Path("/usr"), Path("/"))[0] == 0
    (place / "root").mkdir()
    assert run(shell, Path(f"{place}/all{place}/root"), place / "root")[0] == 0
    assert run(shell, Path(f"{place}/all{place}"), place / "root")[0] == 125
    (place / "some").symlink_to("root")
    assert run(shell, place / "root", place / "some")[0] == 0


def test_a_root_that_is_not_there_contains_nothing(shell: str, place: Path) -> None:
    assert run(shell, place, place / "gone") == (125, b"W!")
    assert run(shell, Path("/"), place / "gone") == (125, b"W!")


def test_a_command_s_variables_have_no_reserved_names(shell: str, place: Path) -> None:
    code, out = run(shell, place, place, "/bin/sh", "-c", 'echo "$here $root"', here="a", root="b")
    assert (code, out[5:]) == (0, b"a b\n")
