"""``scripts/link`` in a home, ``scripts/engine-packages`` in a clone, and ``make run``, each of the test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "link"
PACKAGES = SCRIPT.parent / "engine-packages"
PODBOT = SCRIPT.parents[1] / ".venv" / "bin" / "podbot"


def link(home: Path, *words: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(home), "PATH": path}
    return subprocess.run([SCRIPT, *words], env=environ, capture_output=True, text=True, check=False)


def test_a_new_user_gets_the_directory_and_is_told_what_the_shell_lacks(tmp_path: Path) -> None:
    """Issue 16.1: ~/.local/bin does not exist on a fresh Debian, and so is not on the PATH."""
    done = link(tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".local/bin/podbot").readlink() == PODBOT
    assert 'export PATH="$HOME/.local/bin:$PATH"' in done.stdout
    again = link(tmp_path, path=f"/usr/bin:/bin:{tmp_path}/.local/bin")
    assert (again.returncode, "export" in again.stdout) == (0, False)


def test_another_podbot_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / ".local/bin/podbot"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert link(tmp_path).returncode == 1
    assert mine.read_text() == "mine"


def test_the_link_of_another_installation_is_left_alone(tmp_path: Path) -> None:
    """uv tool and pipx make links there."""
    place = tmp_path / ".local/bin/podbot"
    place.parent.mkdir(parents=True)
    place.symlink_to("/bin/true")
    done = link(tmp_path)
    assert (done.returncode, str(place.readlink())) == (1, "/bin/true")
    assert "is a link to /bin/true; it is left alone" in done.stderr
    place.unlink()
    place.symlink_to(tmp_path / "removed")
    assert link(tmp_path).returncode == 0
    assert place.readlink() == PODBOT


def packages(root: Path, python: str, *rows: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """``scripts/engine-packages`` of a clone whose Python is a script, with an apt-get that notes its words."""
    for name, text in ((".venv/bin/python", python), ("bin/apt-get", f'echo "$@" > {root}/asked')):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"#!/bin/sh\ncat >/dev/null\n{text}\n")
        (root / name).chmod(0o755)
    (root / "bin/sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (root / "bin/sudo").chmod(0o755)
    (root / "scripts").mkdir(exist_ok=True)
    script = shutil.copy(PACKAGES, root / "scripts")
    environ = {"PATH": path or f"{root}/bin:/usr/bin:/bin"}
    return subprocess.run(
        [script, *rows], env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_the_tests_packages_are_installed_or_it_fails(tmp_path: Path) -> None:
    failed = packages(tmp_path, "echo install podman >&2; exit 1", "some-package:no-such-program")
    assert (failed.returncode, failed.stderr) == (1, "install podman\n")
    assert not (tmp_path / "asked").exists()
    assert packages(tmp_path, "exit 0", "coreutils:sh").returncode == 0
    assert not (tmp_path / "asked").exists()
    assert packages(tmp_path, "exit 0", "coreutils:sh", "some-package:no-such-program").returncode == 0
    assert (tmp_path / "asked").read_text() == "install -y -qq --no-install-recommends some-package\n"


def test_without_a_list_the_programs_of_all_end_to_end_tests_are_installed(tmp_path: Path) -> None:
    """Root prepares the machine for a user who may not install: what was in another script's list was missing then."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat", "dirname", "env", "id"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    assert packages(tmp_path, "exit 0", path=f"{tmp_path}/bin").returncode == 0
    asked = (tmp_path / "asked").read_text().split("--no-install-recommends ")[1]
    assert asked.split() == ["systemd", "openssh-client", "zsh", "fish"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), True),
        (("scripts/e2e-suite",), True),
        (("scripts/e2e-suite", "--ignore=e2e/test_matrix.py"), True),
        (("scripts/e2e-suite", "-q", "e2e/test_run.py", "e2e/test_podman_suite.py"), True),
        ((".venv/bin/pytest", "e2e"), True),
        (("scripts/e2e-suite", "-q", "e2e/test_run.py"), False),
        (("scripts/smoke", "inside"), False),
        ((".venv/bin/python", "-m", "e2e.bench"), False),
    ],
)
def test_only_who_runs_the_suites_of_others_installs_their_programs(
    tmp_path: Path, words: tuple[str, ...], asked: bool
) -> None:
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(PACKAGES.parent / "suite-packages", tmp_path / "scripts")
    (tmp_path / "scripts/engine-packages").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "scripts/engine-packages").chmod(0o755)
    done = subprocess.run([script, *words], capture_output=True, text=True, check=True)
    assert done.stdout == ("bats:bats socat:socat\n" if asked else "")


def test_make_run_says_how_to_get_podbot_on_the_path_only_where_it_is_not(tmp_path: Path) -> None:
    assert "`make link`" in link(tmp_path, "--check").stderr
    assert not os.path.exists(tmp_path / ".local")
    link(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there/podbot").symlink_to("/bin/true")
    assert link(tmp_path, "--check", path=f"/usr/bin:/bin:{tmp_path}/there").stderr == ""


@pytest.mark.parametrize(("words", "told"), [((), True), (("WORKSPACE=.",), True), (("WORKSPACE=/srv/shop",), False)])
def test_make_run_says_when_it_opens_podbots_own_clone(tmp_path: Path, words: tuple[str, ...], told: bool) -> None:
    podbot = tmp_path / "podbot"
    podbot.write_text('#!/bin/sh\necho "$@"\n')
    podbot.chmod(0o755)
    made = ["make", "--no-print-directory", "-C", str(SCRIPT.parents[1]), "-o", ".venv/.runs", f"BIN={tmp_path}"]
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([*made, "run", *words], env=environ, capture_output=True, text=True, check=True)
    assert ("podbot's own clone" in done.stderr, "make run WORKSPACE=~/src/shop" in done.stderr) == (told, told)
    workspace = "/srv/shop" if words == ("WORKSPACE=/srv/shop",) else "."
    assert done.stdout.splitlines() == ["setup --yes claude", f"run --workspace {workspace} --agent claude --"]
