"""The shipped image files: their references exist, and forbidden content is absent."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from podbot.images.recipe import images_dir, load_recipe

IMAGES = Path(images_dir())
RECIPE = load_recipe()
CONTAINERFILE = RECIPE.containerfile(RECIPE.agents)
SCRIPTS = ("sandbox/install-packages", "sandbox/install-node", "sandbox/install-agent")


def test_every_copied_file_exists() -> None:
    lines = re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", CONTAINERFILE, re.MULTILINE)
    sources = [name for line in lines for name in line.split()]
    assert sources
    assert [name for name in sources if not (IMAGES / name).is_file()] == []


def test_every_argument_has_a_value_from_the_recipe() -> None:
    names = set(re.findall(r"^ARG (\w+)", CONTAINERFILE, re.MULTILINE))
    assert names == RECIPE.build_args("b").keys()


def test_each_network_step_has_the_hosts_settings_and_none_copies_them() -> None:
    steps = re.findall(r"^(?:RUN|COPY|ADD) (?:.*\\\n)*.*$", CONTAINERFILE, re.MULTILINE)
    words = ("podbot/install-packages ", "podbot/install-node ", "podbot/install-agent ")
    reaching = [step for step in steps if step.startswith("RUN") and any(word in step for word in words)]
    assert len(reaching) == 2 + len(RECIPE.agents)
    for step in steps:
        if step in reaching:
            assert "--mount=type=bind,source=sandbox/host,target=/run/host " in step
        if step.startswith(("COPY", "ADD")):
            assert "sandbox/host" not in step
    for name in SCRIPTS:
        assert "\n. /run/host/env\n" in (IMAGES / name).read_text()
    assert "apt-get" not in CONTAINERFILE


def test_frequently_changed_files_come_after_slow_steps() -> None:
    node, agent, last = map(CONTAINERFILE.index, ("install-node", "'claude ", "containers.conf"))
    assert node < agent < last


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_posix_shell(name: str) -> None:
    assert subprocess.run(["sh", "-n", str(IMAGES / name)], check=False).returncode == 0


def test_the_elf_trimmer_keeps_a_program_running(tmp_path: Path) -> None:
    script = (IMAGES / "sandbox/install-node").read_text().split("<<'PYTHON'\n")[1].split("\nPYTHON\n")[0]
    program = tmp_path / "program"
    shutil.copy(os.path.realpath(shutil.which("env") or "/usr/bin/env"), program)
    before = program.stat().st_size
    subprocess.run([sys.executable, "-c", script, str(program)], check=True)
    assert program.stat().st_size < before
    done = subprocess.run([str(program), "echo", "runs"], capture_output=True, text=True, check=True)
    assert done.stdout == "runs\n"


def test_the_ordinary_users_ids_exist_under_a_rootless_engine_too() -> None:
    match = re.search(r"echo agent:(\d+):(\d+) ", CONTAINERFILE)
    assert match
    first, count = int(match[1]), int(match[2])
    assert first > 1000
    assert first + count <= 65534


def test_packages_are_sorted_and_once() -> None:
    packages = load_recipe().packages
    assert list(packages) == sorted(set(packages))


def test_the_inner_store_uses_fuse_overlayfs() -> None:
    """Without the file Podman 4.3.1 ignores STORAGE_DRIVER, with which podbot reports that /dev/fuse is missing."""
    storage = tomllib.loads((IMAGES / "sandbox/storage.conf").read_text())["storage"]
    assert storage["driver"] == "overlay"
    assert storage["options"]["overlay"]["mount_program"] == "/usr/bin/fuse-overlayfs"
    assert re.search(r"(?m)^COPY .*sandbox/storage\.conf .*/etc/containers/$", CONTAINERFILE)


def test_inner_containers_conf_is_toml() -> None:
    conf = tomllib.loads((IMAGES / "sandbox/containers.conf").read_text())
    assert conf["containers"]["cgroups"] == "disabled"
    assert conf["containers"]["volumes"] == ["/proc:/proc"]
