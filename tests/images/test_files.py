"""The shipped image files: what they refer to exists, and what must not be in them is not."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from podbot.flows.recipe import images_dir, load_recipe

IMAGES = Path(images_dir())
CONTAINERFILE = (IMAGES / "sandbox/Containerfile").read_text()


def test_every_copied_file_exists() -> None:
    sources = re.findall(r"^COPY (?:--\S+ )*(\S+) \S+$", CONTAINERFILE, re.MULTILINE)
    assert sources
    assert [name for name in sources if not (IMAGES / name).is_file()] == []


def test_every_argument_has_a_value_from_the_recipe() -> None:
    names = set(re.findall(r"^ARG (\w+)", CONTAINERFILE, re.MULTILINE))
    recipe = load_recipe()
    assert names == recipe.build_args("b", recipe.agents).keys()


def test_each_network_step_has_the_hosts_settings_and_none_copies_them() -> None:
    steps = re.findall(r"^(?:RUN|COPY|ADD) (?:.*\\\n)*.*$", CONTAINERFILE, re.MULTILINE)
    for step in steps:
        if any(word in step for word in ("apt-get", "pip install", "npm install")):
            assert "--mount=type=bind,source=sandbox/host,target=/run/host . /run/host/env" in step
        if step.startswith(("COPY", "ADD")):
            assert "sandbox/host" not in step


def test_packages_are_sorted_and_once() -> None:
    packages = load_recipe().packages
    assert list(packages) == sorted(set(packages))


def test_inner_containers_conf_is_toml() -> None:
    conf = tomllib.loads((IMAGES / "sandbox/containers.conf").read_text())
    assert conf["containers"]["cgroups"] == "disabled"
    assert conf["containers"]["volumes"] == ["/proc:/proc"]


@pytest.mark.parametrize(
    ("prompt", "status", "answer"),
    [
        ("Username for 'https://host': ", 0, "x-access-token\n"),
        ("Password for 'https://x-access-token@host': ", 0, "s3cret"),
        ("Are you sure you want to continue connecting (yes/no)? ", 1, ""),
    ],
)
def test_askpass_answers_git_and_nobody_else(tmp_path: Path, prompt: str, status: int, answer: str) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    script = (IMAGES / "sandbox/podbot-askpass").read_text().replace("/run/secrets/ghapp_token", str(token))
    done = subprocess.run(["/bin/sh", "-c", script, "askpass", prompt], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, answer)


def test_askpass_without_a_token_fails() -> None:
    script = str(IMAGES / "sandbox/podbot-askpass")
    done = subprocess.run(["/bin/sh", script, "Password for x"], capture_output=True, check=False)
    assert done.returncode != 0
    assert done.stdout == b""
