"""The library's calls that prepare a machine: updates of agents, repairs, packages; and what is said of old ones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import podbot
from podbot.api.advice import STAMP, WEEK, tell_outdated
from podbot.api.preparing import fix, setup, update_agents
from podbot.diagnosis.repair_plan import RepairPlan
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import (
    EngineNotInstalled,
    ImageBuildFailed,
    ImageNotFound,
    InvalidValue,
    MachineNotReady,
    PathError,
    RepairFailed,
    RequestFailed,
)
from podbot.events import Event
from podbot.images.newest import QUESTION
from podbot.images.recipe import load_recipe
from podbot.testing import FakeEngine
from tests.driver import READY, FakeDriver
from tests.engine.podman.test_machine_checks import DEBIAN_13, VERSION_5, lacking
from tests.images.builder import Builder
from tests.session.plans import Place

RECIPE = load_recipe()
PINNED = {name: build.version for name, build in RECIPE.agents.items()}


@pytest.fixture
def builder(driver: FakeDriver) -> Builder:
    driver.engine = engine = FakeEngine(images=())
    engine.image_builder = made = Builder(engine)
    return made


def environ(place: Place) -> dict[str, str]:
    config = os.path.join(place.base, "config")
    return {"HOME": place.base, "PATH": os.environ["PATH"], "XDG_CONFIG_HOME": config, **place.environ}


def options(place: Place, **variables: str) -> podbot.LoadOptions:
    return podbot.LoadOptions(environ=environ(place) | variables)


def configured(place: Place) -> dict[str, str]:
    return dict(podbot.load_config(options(place)).agent.versions)


# --- updates -----------------------------------------------------------------------------------------


@pytest.fixture
def set_up(builder: Builder, place: Place) -> Builder:
    setup(options(place), agents=["claude", "codex"], environ=environ(place))
    return builder


@pytest.mark.parametrize(
    ("agents", "versions"),
    [
        ({}, {"claude": "9.1.0", "codex": "9.2.0"}),
        ({"codex": ""}, {"codex": "9.2.0"}),
        ({"codex": "0.1.0"}, {"codex": "0.1.0"}),
        ({"codex": "0.1.0", "claude": ""}, {"claude": "9.1.0", "codex": "0.1.0"}),
        ({"gemini": "0.3.0"}, {"gemini": "0.3.0"}),
    ],
)
def test_an_update_builds_and_is_remembered(
    set_up: Builder, place: Place, agents: dict[str, str], versions: dict[str, str]
) -> None:
    set_up.newest = {"claude": "9.1.0", "codex": "9.2.0", "gemini": "9.3.0"}
    result = update_agents(options(place), agents, environ=environ(place))
    assert result.built
    assert dict(result.versions) == {"claude": PINNED["claude"], "codex": PINNED["codex"], **versions}
    assert configured(place) == versions
    again = setup(options(place), environ=environ(place))
    assert (again.built, again.wrote_config, dict(again.versions)) == (False, False, dict(result.versions))
    earlier = update_agents(options(place), {"claude": "9.0.0"}, environ=environ(place))
    assert dict(earlier.versions) == {**result.versions, "claude": "9.0.0"}
    assert configured(place) == {**versions, "claude": "9.0.0"}


def test_the_newest_that_is_there_is_not_built_again(set_up: Builder, place: Place) -> None:
    set_up.newest = {"claude": PINNED["claude"]}
    before = len(set_up.built)
    result = update_agents(options(place), {"claude": ""}, environ=environ(place))
    assert (result.built, len(set_up.built), configured(place)) == (False, before, {"claude": PINNED["claude"]})


def test_a_build_that_fails_changes_no_version(set_up: Builder, place: Place) -> None:
    set_up.broken = True
    with pytest.raises(ImageBuildFailed):
        update_agents(options(place), {"claude": "9.0.0"}, environ=environ(place))
    assert configured(place) == {}


@pytest.mark.parametrize(
    ("agents", "variables", "said"),
    [
        ({"cloude": ""}, {}, "unknown agent 'cloude'"),
        ({"claude": "$(x)"}, {}, "is not a version"),
        ({"claude": "latest"}, {}, "is not a version"),
        ({"claude": "9.0.0"}, {"PODBOT_AGENT_VERSIONS": "claude=1.0.0"}, "variable PODBOT_AGENT_VERSIONS"),
    ],
)
def test_updates_that_are_refused(
    set_up: Builder, place: Place, agents: dict[str, str], variables: dict[str, str], said: str
) -> None:
    before = len(set_up.built)
    with pytest.raises(InvalidValue, match=re.escape(said)):
        update_agents(options(place, **variables), agents, environ=environ(place) | variables)
    assert len(set_up.built) == before


def written(place: Place, text: str) -> None:
    path = os.path.join(place.base, "config/podbot/config.toml")
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def test_an_update_keeps_what_another_podbot_has_written_meanwhile(set_up: Builder, place: Place) -> None:
    class Meanwhile(Builder):
        def build(self, *, tag: str, **rest: Any) -> None:
            if tag.startswith(QUESTION):
                written(place, '[agent.versions]\ncodex = "0.5.0"\n')
            super().build(tag=tag, **rest)

    set_up.engine.image_builder = Meanwhile(set_up.engine, newest={"claude": "9.1.0"})
    result = update_agents(options(place), {"claude": ""}, environ=environ(place))
    assert configured(place) == {"codex": "0.5.0", "claude": "9.1.0"}
    assert dict(result.versions) == configured(place)


def test_a_file_that_podbot_cannot_change_is_found_before_a_build(builder: Builder, place: Place) -> None:
    setup(options(place), environ=environ(place))
    before = len(builder.built)
    written(place, "agent = {}\n")
    with pytest.raises(PathError, match=r"set agent\.\w+ in"):
        update_agents(options(place), {"claude": "9.0.0"}, environ=environ(place))
    assert len(builder.built) == before


def test_set_up_is_for_all_sessions_whatever_a_project_says(builder: Builder, place: Place) -> None:
    os.makedirs(os.path.join(place.base, "config/podbot"))
    written(place, f'[project."{place.workspace}"]\nimage = "my/own:1"\n')
    overrides = {"workspace.host_path": place.workspace, "workspace.source": "host_mount"}
    there = podbot.LoadOptions(environ=environ(place), overrides=overrides)
    assert podbot.load_config(there).image == "my/own:1"
    result = setup(there, environ=environ(place))
    assert (result.built, result.wrote_config, result.other_image) == (True, True, "")
    assert podbot.load_config(options(place)).image == RECIPE.image


def test_an_update_needs_an_image(builder: Builder, place: Place) -> None:
    with pytest.raises(ImageNotFound, match="Build podbot's own image"):
        update_agents(options(place), {}, environ=environ(place))
    assert builder.built == []


# --- packages and repairs ----------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Makes a PATH with programs that report how they were called, and then run the given line."""
    made = tmp_path / "programs"
    made.mkdir()
    for tool in ("sh", "env"):
        (made / tool).symlink_to(f"/bin/{tool}")

    def program(name: str, line: str = ":") -> dict[str, str]:
        path = made / name
        path.write_text(f'#!/bin/sh\necho "{name} $@" >> {tmp_path}/asked\n{line}\n')
        path.chmod(0o755)
        return {"PATH": str(made)}

    return program


def asked(tmp_path: Path) -> list[str]:
    file = tmp_path / "asked"
    return file.read_text().splitlines() if file.exists() else []


BARE = PodmanFacts(distribution=("debian",), codename="trixie", programs={"git": "/g", "mmdebstrap": "/m"})


def test_set_up_begins_with_packages_where_there_is_no_engine(
    builder: Builder, driver: FakeDriver, place: Place, programs: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    path = programs("apt-get")
    plans: list[podbot.SetupPlan] = []
    driver.locate = lambda _config, _environ: None
    driver.failure = EngineNotInstalled(engine="Podman", install="Install it")

    def machine(_environ: object) -> PodmanMachine:
        if any("install" in line for line in asked(tmp_path)):
            return PodmanMachine(READY, "", look=lambda _path: None)
        return PodmanMachine(BARE, "", candidate=lambda: "5.4.2")

    def approve(plan: podbot.SetupPlan) -> None:
        plans.append(plan)
        driver.failure = None  # the engine comes with the packages

    driver.machine = machine
    given = environ(place) | path
    with pytest.raises(EngineNotInstalled):
        setup(options(place), environ=given)  # the library installs nothing by itself
    assert asked(tmp_path) == []
    result = setup(options(place), may_install=True, approve=approve, environ=given)
    assert [step.kind for step in plans[0].steps] == ["packages", "base", "build", "config"]
    assert len(plans) == 1, "one question"
    assert asked(tmp_path)[0] == "apt-get update -q"
    assert asked(tmp_path)[1].startswith("apt-get install -y --no-install-recommends podman ")
    assert (result.built, result.wrote_config) == (True, True)


def test_helpers_are_installed_before_the_engine_is_used(
    builder: Builder, driver: FakeDriver, place: Place, programs: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    path = programs("apt-get")
    facts = replace(DEBIAN_13, uid=0)
    driver.locate = lambda _config, _environ: None

    def machine(_environ: object) -> PodmanMachine:
        done = any("install" in line for line in asked(tmp_path))
        there = facts.programs if done else {n: p for n, p in facts.programs.items() if n != "catatonit"}
        return PodmanMachine(replace(facts, programs=there), VERSION_5, look=lambda _path: None)

    driver.machine = machine
    builder.engine.images, builder.engine.version = [RECIPE.base], "5.4.2"
    builder.engine.image_labels = {"io.podbot.recipe": RECIPE.base_digest}
    result = setup(options(place), may_install=True, environ=environ(place) | path)
    assert asked(tmp_path) == ["apt-get update -q", "apt-get install -y --no-install-recommends catatonit"]
    assert result.built


def test_packages_that_are_declined_are_not_installed(
    builder: Builder, driver: FakeDriver, place: Place, programs: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    def no(_plan: podbot.SetupPlan) -> None:
        raise KeyError("no")

    driver.locate = lambda _config, _environ: None
    driver.failure = EngineNotInstalled(engine="Podman", install="Install it")
    driver.machine = lambda _environ: PodmanMachine(BARE, "", candidate=lambda: "5.4.2")
    with pytest.raises(KeyError):
        setup(options(place), may_install=True, approve=no, environ=environ(place) | programs("apt-get"))
    assert (asked(tmp_path), builder.built) == ([], [])


def test_repairs_run_after_approval_and_end_with_the_image(
    builder: Builder, driver: FakeDriver, place: Place, programs: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    programs("apt-get")
    path = programs("modprobe")
    facts = replace(DEBIAN_13, uid=0, programs=lacking("mmdebstrap"), dev_fuse=False)
    driver.locate = lambda _config, _environ: None
    driver.machine = lambda _environ: PodmanMachine(facts, VERSION_5, look=lambda _path: None)
    plans: list[RepairPlan] = []
    asks = options(place, PODBOT_SANDBOX_MOUNT_DEV_FUSE="true")
    given = environ(place) | path
    builder.engine.images, builder.engine.version = [RECIPE.base], "5.4.2"
    builder.engine.image_labels = {"io.podbot.recipe": RECIPE.base_digest}
    _, checks = fix(asks, approve=plans.append, environ=given)
    assert asked(tmp_path) == [
        "apt-get update -q",
        "apt-get install -y --no-install-recommends mmdebstrap",
        "modprobe fuse",
    ]
    assert (plans[0].setup, len(builder.built)) == (True, 1)
    assert {check.name: check.status for check in checks}["image"] == "ok"
    programs("modprobe", "exit 3")
    with pytest.raises(RepairFailed, match="modprobe fuse"):
        fix(asks, environ=given)
    quiet = replace(DEBIAN_13, uid=0)
    driver.machine = lambda _environ: PodmanMachine(quiet, VERSION_5, look=lambda _path: None)
    plan, checks = fix(asks, approve=plans.append, environ=given)
    assert (plan.empty, len(plans)) == (True, 1)


def test_repairs_of_a_user_who_cannot_become_root(
    builder: Builder, driver: FakeDriver, place: Place, programs: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    facts = replace(DEBIAN_13, dev_net_tun=False)
    driver.machine = lambda _environ: PodmanMachine(facts, VERSION_5, look=lambda _path: None)
    with pytest.raises(MachineNotReady, match="`sudo modprobe tun && sudo chmod 0666 /dev/net/tun`"):
        fix(options(place), environ=environ(place) | programs("modprobe"))
    assert (asked(tmp_path), builder.built) == ([], [])


# --- what is old -------------------------------------------------------------------------------------


def test_what_is_old_is_told_once_a_week(set_up: Builder, place: Place) -> None:
    engine, events = set_up.engine, list[Event]()
    engine.image_labels = {**engine.image_labels, "io.podbot.version": "0.0.1"}
    given = environ(place)
    for _ in range(2):
        tell_outdated(engine, RECIPE.image, "claude", given, events.append)
    assert [(event.level, event.kind) for event in events] == [("notice", "image.outdated")]
    (stamp,) = Path(place.base).rglob(STAMP)
    old = time.time() - WEEK - 60
    os.utime(stamp, (old, old))
    tell_outdated(engine, RECIPE.image, "claude", given, events.append)
    assert len(events) == 2
    before = len(engine.calls)
    tell_outdated(engine, RECIPE.image, "claude", given, events.append)
    assert len(engine.calls) == before, "the engine is not asked"


def test_a_state_directory_that_podbot_does_not_use_is_not_told(set_up: Builder, place: Place, tmp_path: Path) -> None:
    """A session has ended by then; its status must not be lost."""
    (tmp_path / "elsewhere/podbot").mkdir(parents=True)
    (tmp_path / "state").mkdir()
    (tmp_path / "state/podbot").symlink_to(tmp_path / "elsewhere/podbot")
    given = environ(place) | {"XDG_STATE_HOME": str(tmp_path / "state")}
    tell_outdated(set_up.engine, RECIPE.image, "claude", given, lambda _event: None)
    assert list((tmp_path / "elsewhere/podbot").iterdir()) == []


def test_a_failure_to_look_is_not_told(set_up: Builder, place: Place) -> None:
    events = list[Event]()
    set_up.engine.fail("image", RequestFailed(operation="x", status=500, reason="y"))
    tell_outdated(set_up.engine, RECIPE.image, "claude", environ(place), events.append)
    os.makedirs(os.path.join(place.base, ".local"), exist_ok=True)
    tell_outdated(set_up.engine, "localhost/none:1", "claude", environ(place), events.append)
    assert events == []
