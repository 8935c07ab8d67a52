"""What README says about installing (uv, pipx) on a fresh account, and a machine without Podman."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.harness import World
from e2e.patience import patient

ROOT = Path(__file__).parents[1]
FIRST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone as a user has it, beside an environment with uv and pipx."""
    place = tmp_path_factory.mktemp("install")
    _run("git", "clone", "-q", str(ROOT), str(place / "podbot"))
    _run(sys.executable, "-m", "venv", str(place / "tools"))
    _run(str(place / "tools" / "bin" / "pip"), "-q", "install", "uv", "pipx")
    return place / "podbot"


def _run(*words: str, typed: str = "", env: Mapping[str, str] | None = None) -> str:
    """The output of a command, which must succeed. It has no terminal, also none that the suite was started from."""
    done = subprocess.run(
        words,
        env=env,
        input=typed,
        capture_output=True,
        text=True,
        timeout=patient(300),
        start_new_session=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _readme_lines(tool: str) -> list[str]:
    """What README has a user of uv or pipx type to install podbot and run it; pipx's words are in the comments."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if "uv tool install" in block)
    lines = []
    for line in block.splitlines():
        command, _, comment = line.partition("#")
        other = re.match(r" or: ([^;]+)", comment)
        lines.append(other[1] if other and tool == "pipx" else command.strip())
    return lines


@pytest.mark.parametrize("tool", ["uv", "pipx"])
def test_what_the_readme_says_leads_from_a_new_account_to_an_agent(tool: str, clone: Path, own_world: World) -> None:
    """`~/.local/bin` is not on the PATH of a new account, so `podbot run` was "command not found" there."""
    install, find, enter, run = _readme_lines(tool)
    assert install.startswith(f"{tool} ")
    home = Path(own_world.env["HOME"])
    shutil.copytree("/etc/skel", home, dirs_exist_ok=True)
    (home / "src" / "shop").mkdir(parents=True)
    account = {**own_world.env, "PATH": FIRST_PATH, "SHELL": "/bin/bash"}
    tools = clone.parent / "tools" / "bin"  # in the first terminal only: it must not lend podbot a Python afterwards
    _run("bash", "-l", typed=f"set -e; PATH=$PATH:{tools}; cd {clone}\n{install}\n{find}\n", env=account)
    for kind in ("-l", "-i"):  # the new terminal: a login over ssh, and a window of a desktop
        done = _run("bash", kind, "-c", f"{enter} && command -v podbot && {run} custom . -- pwd", env=account)
        assert done.split() == [str(home / ".local" / "bin" / "podbot"), str(home / "src" / "shop")]


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
