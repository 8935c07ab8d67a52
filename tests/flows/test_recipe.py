"""The recipe that is shipped, and what a build on this machine adds to it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot import __version__
from podbot.errors import InvalidValue, PathError
from podbot.flows import recipe as room
from podbot.flows.recipe import PASSED_ON, host_files, images_dir, load_recipe

RECIPE = load_recipe()


def test_the_shipped_recipe_is_whole() -> None:
    assert {"claude", "codex"} <= RECIPE.agents.keys()
    assert RECIPE.image == f"localhost/podbot-sandbox:{__version__}"
    assert int(RECIPE.node.split(".")[0]) >= 22
    assert {"git", "ripgrep", "podman", "ca-certificates"} <= set(RECIPE.packages)


def test_every_version_is_pinned_exactly() -> None:
    for agent in RECIPE.agents.values():
        assert agent.spec == f"{agent.package}@{agent.version}"
        assert agent.version.replace(".", "").isdigit()


def test_build_arguments_leave_out_what_was_not_chosen() -> None:
    args = RECIPE.build_args("base:1", ["codex"])
    assert args["CODEX"] == RECIPE.agents["codex"].spec
    assert (args["CLAUDE"], args["BASE"], args["NODE_VERSION"]) == ("", "base:1", RECIPE.node)


def test_labels_tell_agents_and_recipe() -> None:
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
    with pytest.raises(InvalidValue, match=r"'cloude'.*Agents: claude, codex"):
        RECIPE.check_agents(["cloude"], "flag --agents")


def test_the_digest_follows_the_files(tmp_path: Path) -> None:
    copy = tmp_path / "images"
    shutil.copytree(images_dir(), copy)
    assert load_recipe(str(copy)).digest == RECIPE.digest
    with (copy / "sandbox/Containerfile").open("a") as file:
        file.write("# changed\n")
    changed = load_recipe(str(copy))
    assert changed.digest != RECIPE.digest
    assert changed.base_digest == RECIPE.base_digest


def test_an_installation_without_images_is_named(tmp_path: Path) -> None:
    with pytest.raises(PathError, match="image recipe"):
        load_recipe(str(tmp_path))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_proxy_value_survives_the_shell(value: str) -> None:
    text = host_files({"HTTPS_PROXY": value}, RECIPE.directory)["sandbox/host/env"].decode()
    words = shlex.split(text, comments=True)
    assert (f"HTTPS_PROXY={value}" in words) == bool(value.strip())


def test_the_environments_secrets_stay_out_of_the_build() -> None:
    environ = {"ANTHROPIC_API_KEY": "canary", "NPM_TOKEN": "canary", "PIP_INDEX_URL": "https://mirror/simple"}
    files = host_files(environ, RECIPE.directory)
    assert not any(b"canary" in data for name, data in files.items() if name.endswith("env"))
    assert b"export PIP_INDEX_URL=https://mirror/simple\n" in files["sandbox/host/env"]
    assert not any("TOKEN" in name or "KEY" in name for name in PASSED_ON)


def test_the_ca_bundle_is_the_machines_and_the_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "system.crt").write_text("SYSTEM")
    (tmp_path / "extra.crt").write_text("EXTRA")
    monkeypatch.setattr(room, "CA_BUNDLES", (str(tmp_path / "none"), str(tmp_path / "system.crt")))
    environ = {"NODE_EXTRA_CA_CERTS": str(tmp_path / "extra.crt"), "PIP_CERT": str(tmp_path / "system.crt")}
    files = host_files(environ, RECIPE.directory)
    assert files["sandbox/host/ca.crt"] == b"SYSTEM\nEXTRA"
    assert b"NODE_EXTRA_CA_CERTS=/run/host/ca.crt" in files["sandbox/host/env"]


def test_without_a_bundle_nothing_points_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CA_BUNDLES", ())
    files = host_files({}, RECIPE.directory)
    assert list(files) == ["sandbox/host/env"]
    assert b"ca.crt" not in files["sandbox/host/env"]
