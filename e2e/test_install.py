"""What README says about installing (uv, pipx) on a fresh account, and a machine without Podman."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.harness import World
from e2e.patience import patient


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone as a user has it, beside an environment with uv and pipx."""
    place = tmp_path_factory.mktemp("install")
    _run("git", "clone", "-q", str(Path(__file__).parents[1]), str(place / "podbot"))
    _run(sys.executable, "-m", "venv", str(place / "tools"))
    _run(str(place / "tools" / "bin" / "pip"), "-q", "install", "uv", "pipx")
    return place / "podbot"


def _run(*words: str, cwd: Path | None = None, **variables: str) -> None:
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patient(300),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("line", ["uv tool install .", "pipx install ."])
def test_the_line_of_the_readme_installs_a_podbot_that_runs_an_agent(
    line: str, clone: Path, world: World, tmp_path: Path
) -> None:
    readme = (clone / "README.md").read_text(encoding="utf-8")
    assert f"\n{line} " in readme or f"or: {line}\n" in readme
    program, *words = line.split()
    _run(str(clone.parent / "tools" / "bin" / program), *words, cwd=clone, HOME=str(tmp_path))
    installed = tmp_path / ".local" / "bin" / "podbot"
    done = subprocess.run(
        [installed, "run", "custom", world.workspace(), "--", "echo", "inside"],
        env=world.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "inside\n"), done.stderr


def test_without_podman_the_error_says_how_to_install_it(tmp_path: Path) -> None:
    podbot = os.path.join(os.path.dirname(sys.executable), "podbot")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "LANG": "C.UTF-8"}
    (tmp_path / "shop").mkdir()
    (tmp_path / "none").touch()
    (tmp_path / "none").chmod(0)
    hidden = f'mount --bind {tmp_path}/none "$(command -v podman)" && exec "$@"'
    for words in (["ps"], ["run", "custom", str(tmp_path / "shop"), "--image", "localhost/mine:1", "--", "true"]):
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", hidden, "sh", podbot, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patient(60),
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert done.stderr.startswith("podbot: Podman is not installed"), done.stderr
        assert "apt-get install -y" in done.stderr
        assert "socket" not in done.stderr.replace("--engine-socket", "")
