"""The shipped recipe, and the parts that a build on this machine adds to it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot import __version__
from podbot.agents.definition import Build
from podbot.errors import InvalidValue, PathError
from podbot.frozen import replace
from podbot.images.recipe import (
    INSTALL,
    INSTALL_PACKAGES,
    PASSED_ON,
    Recipe,
    agents_in,
    host_files,
    images_dir,
    load_recipe,
    packages_in,
)

RECIPE = load_recipe()


def test_the_shipped_recipe_is_whole() -> None:
    assert {"claude", "codex"} <= RECIPE.agents.keys()
    assert RECIPE.image == f"localhost/podbot-sandbox:{__version__}"
    assert int(RECIPE.node.split(".")[0]) >= 22
    assert {"git", "ripgrep", "podman", "ca-certificates"} <= set(RECIPE.packages)


def test_every_version_is_pinned_exactly() -> None:
    for agent in RECIPE.agents.values():
        specs = agent.specs
        assert specs[0] == f"{agent.package}@{agent.version}"
        assert all(re.fullmatch(r"\d+(\.\d+)+", spec.rpartition("@")[2]) for spec in specs)


def test_each_agent_includes_its_protocol_adapter() -> None:
    adapters = {name: agent.specs[1:] for name, agent in RECIPE.agents.items()}
    assert [spec.rpartition("@")[0] for spec in adapters["claude"]] == ["@agentclientprotocol/claude-agent-acp"]
    assert [spec.rpartition("@")[0] for spec in adapters["codex"]] == ["@agentclientprotocol/codex-acp"]
    assert (adapters["opencode"], adapters["gemini"]) == ((), ())


def steps(recipe: Recipe, names: Iterable[str]) -> list[str]:
    """The steps that install agents."""
    lines = recipe.containerfile(names).splitlines()
    return [line for line in lines if line.startswith("RUN") and INSTALL in line]


def test_build_arguments() -> None:
    assert RECIPE.build_args("base:1") == {"BASE": "base:1", "NODE_VERSION": RECIPE.node}


def test_each_agent_is_a_step_in_the_order_given() -> None:
    found = steps(RECIPE, ["codex", "claude"])
    assert len(found) == 2
    for line, name in zip(found, ("codex", "claude"), strict=True):
        build = RECIPE.agents[name]
        words = shlex.split(line)
        assert line.startswith("RUN --mount=type=bind,source=sandbox/host,target=/run/host : ")
        assert words[words.index(":") + 1] == f"{name} {build.version};"
        assert words[-len(build.specs) - 2 :] == [INSTALL, " ".join(build.remove), *build.specs]
    assert steps(RECIPE, []) == []


def test_the_number_of_agents_is_not_limited() -> None:
    builds = {f"agent{number}": Build(f"package{number}", "1.0", 1) for number in range(9)}
    assert len(steps(load_recipe(builds=builds), builds)) == 9


def test_another_version_changes_its_own_step_and_the_labels_alone() -> None:
    """The engine finds a step's layer again by the step's text and the steps before it."""
    before = RECIPE.containerfile(["claude", "codex", "gemini"]).splitlines()
    changed = RECIPE.changed({"CODEX_VERSION": "9.9"}, "flag").containerfile(["claude", "codex", "gemini"]).splitlines()
    differing = [new for old, new in zip(before, changed, strict=True) if old != new]
    assert [line.split()[0] for line in differing] == ["RUN", "LABEL"]
    assert "'codex 9.9'" in differing[0]


def test_another_agent_changes_nothing_before_its_own_step() -> None:
    before, after = (RECIPE.containerfile(names).splitlines() for names in (["gemini"], ["gemini", "claude"]))
    at = next(number for number, line in enumerate(after) if "'claude " in line)
    assert before[:at] == after[:at]
    assert before[at:-1] == after[at + 1 : -1]


def test_added_packages_are_one_step_after_the_agents_and_a_label() -> None:
    """So that adding one installs it alone: the agents' layers are found again."""
    with_them = replace(RECIPE, added=("gh", "libc++-dev"))
    before, after = (made.containerfile(["claude"]).splitlines() for made in (RECIPE, with_them))
    differing = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    (_, step), (_, label) = differing
    assert after.index(step) > next(number for number, line in enumerate(after) if "'claude " in line)
    assert step.startswith("RUN --mount=type=bind,source=sandbox/host,target=/run/host : 'packages gh, libc++-dev'; ")
    assert shlex.split(step)[-3:] == [INSTALL_PACKAGES, "gh", "libc++-dev"]
    assert 'io.podbot.packages="gh,libc++-dev"' in label
    assert packages_in(with_them.labels(["claude"])) == {"gh", "libc++-dev"}
    assert packages_in(RECIPE.labels(["claude"])) == set()


def test_the_image_has_the_variables_of_every_agent() -> None:
    lines = RECIPE.containerfile([]).splitlines()
    (line,) = [line for line in lines if line.startswith("ENV ") and "LANG" not in line]
    assert dict(word.split("=") for word in line.split()[1:]) == {
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_EXECUTABLE": "/usr/local/bin/claude",
        "CODEX_PATH": "/usr/local/bin/codex",
    }
    assert not [line for line in lines if line.startswith("# podbot: ")]


def test_other_versions_by_argument() -> None:
    changed = RECIPE.changed({"NODE_VERSION": "22.1.0", "GEMINI_VERSION": "0.60.0"}, "flag --build-arg")
    assert (changed.node, changed.agents["gemini"].version) == ("22.1.0", "0.60.0")
    assert changed.agents["claude"] == RECIPE.agents["claude"]
    assert changed.agents_label(["gemini"]) == "gemini=0.60.0"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("NODE_VERSIONS", "22", "Did you mean NODE_VERSION?"),
        ("BASE", "x", "no build argument 'BASE'"),
        ("NODE_VERSION", "22; reboot", "is not a version"),
        ("NODE_VERSION", "", "is not a version"),
        ("CLAUDE_VERSION", "1.0 evil@2", "is not a version"),
    ],
)
def test_arguments_that_the_image_does_not_have(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(words)):
        RECIPE.changed({name: value}, "flag --build-arg")


@given(st.text())
def test_any_label_is_read(label: str) -> None:
    assert all(agents_in(label))


def test_a_label_is_read_back() -> None:
    label = RECIPE.agents_label(["codex", "claude"])
    assert list(agents_in(label).items()) == [(n, RECIPE.agents[n].version) for n in ("codex", "claude")]
    assert agents_in("") == {}


def test_labels_contain_agents_and_recipe() -> None:
    labels = RECIPE.labels(("claude", "codex"))
    claude, codex = RECIPE.agents["claude"].version, RECIPE.agents["codex"].version
    assert labels == {
        "io.podbot.image": "sandbox",
        "io.podbot.version": __version__,
        "io.podbot.agents": f"claude={claude},codex={codex}",
        "io.podbot.recipe": RECIPE.digest,
    }


def test_agents_are_checked_and_ordered() -> None:
    assert RECIPE.check_agents(["codex", "claude", "codex"], "flag") == ("claude", "codex")
    with pytest.raises(InvalidValue, match=r"'cloude'.*Did you mean claude\? Agents: claude, codex"):
        RECIPE.check_agents(["cloude"], "flag --agents")


def test_the_digest_follows_the_files(tmp_path: Path) -> None:
    copy = tmp_path / "images"
    shutil.copytree(images_dir(), copy)
    assert load_recipe(str(copy)).digest == RECIPE.digest
    with (copy / "sandbox/Containerfile").open("a") as file:
        file.write("# changed\n")
    assert load_recipe(str(copy), {}).digest != RECIPE.digest
    changed = load_recipe(str(copy))
    assert changed.digest != RECIPE.digest
    assert changed.base_digest == RECIPE.base_digest
    with (copy / "base/leave-out.txt").open("a") as file:
        file.write("/usr/share/more/*\n")
    assert load_recipe(str(copy)).base_digest != RECIPE.base_digest


def test_an_installation_without_images_is_named(tmp_path: Path) -> None:
    with pytest.raises(PathError, match="image recipe"):
        load_recipe(str(tmp_path))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_proxy_value_survives_the_shell(value: str) -> None:
    text = host_files({"HTTPS_PROXY": value}, RECIPE.directory)["sandbox/host/env"].decode()
    words = shlex.split(text, comments=True)
    assert (f"HTTPS_PROXY={value}" in words) == bool(value.strip())


def test_the_environments_secrets_are_not_in_the_build() -> None:
    environ = {"ANTHROPIC_API_KEY": "canary", "NPM_TOKEN": "canary", "PIP_INDEX_URL": "https://mirror/simple"}
    files = host_files(environ, RECIPE.directory)
    assert not any(b"canary" in data for name, data in files.items() if name.endswith("env"))
    assert b"export PIP_INDEX_URL=https://mirror/simple\n" in files["sandbox/host/env"]
    assert not any("TOKEN" in name or "KEY" in name for name in PASSED_ON)


def test_the_ca_bundle_is_the_machines_and_the_operators(tmp_path: Path) -> None:
    (tmp_path / "system.crt").write_text("SYSTEM")
    (tmp_path / "extra.crt").write_text("EXTRA")
    bundles = (str(tmp_path / "none"), str(tmp_path / "system.crt"))
    environ = {"NODE_EXTRA_CA_CERTS": str(tmp_path / "extra.crt"), "PIP_CERT": str(tmp_path / "system.crt")}
    files = host_files(environ, RECIPE.directory, bundles)
    assert files["sandbox/host/ca.crt"] == b"SYSTEM\nEXTRA"
    assert b"NODE_EXTRA_CA_CERTS=/run/host/ca.crt" in files["sandbox/host/env"]


def test_without_a_bundle_nothing_points_at_one() -> None:
    files = host_files({}, RECIPE.directory, ())
    assert list(files) == ["sandbox/host/env"]
    assert b"ca.crt" not in files["sandbox/host/env"]
