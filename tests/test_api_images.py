"""The library's calls for images, set-up and doctor, on an engine in memory: typed values, nothing printed."""

from __future__ import annotations

import os

import pytest

import podbot
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import InvalidValue, MachineNotReady, NoImageBuilder, ServiceStartFailed
from podbot.events import Event
from podbot.images.recipe import load_recipe
from podbot.machine import Disk
from podbot.testing import FakeEngine
from tests.driver import READY, FakeDriver
from tests.images.builder import Builder
from tests.session.plans import Place

RECIPE = load_recipe()


@pytest.fixture
def engine(driver: FakeDriver) -> FakeEngine:
    driver.engine = made = FakeEngine(images=())
    made.image_builder = Builder(made)
    return made


def environ(place: Place) -> dict[str, str]:
    config = os.path.join(place.base, "config")
    return {"HOME": place.base, "PATH": os.environ["PATH"], "XDG_CONFIG_HOME": config, **place.environ}


def options(place: Place, **overrides: object) -> podbot.LoadOptions:
    return podbot.LoadOptions(environ=environ(place), overrides=overrides)


def test_setup_builds_once_and_writes_the_image_into_the_configuration(
    engine: FakeEngine, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    plans: list[podbot.SetupPlan] = []
    first = podbot.setup(options(place), agents=["codex"], approve=plans.append, environ=environ(place))
    assert (first.image, first.agents, first.built, first.wrote_config) == (RECIPE.image, ("codex",), True, True)
    assert [step.kind for step in plans[0].steps] == ["pull", "build", "config"]
    assert podbot.load_config(options(place)).image == RECIPE.image
    again = podbot.setup(options(place), agents=["codex"], approve=plans.append, environ=environ(place))
    assert (again.built, again.wrote_config, len(plans)) == (False, False, 1), "nothing was to be approved"
    assert engine.image_builder == Builder(engine, [("pull", "debian:bookworm-slim"), ("build", RECIPE.image)])
    assert capfd.readouterr() == ("", "")


def test_setup_builds_nothing_on_a_machine_without_room(engine: FakeEngine, driver: FakeDriver, place: Place) -> None:
    driver.machine = lambda _environ: PodmanMachine(READY, "", look=lambda path: Disk(path, 1, 1))
    with pytest.raises(MachineNotReady, match="disk"):
        podbot.setup(options(place), environ=environ(place))
    assert engine.image_builder == Builder(engine)


def test_a_plan_that_is_not_approved_is_not_executed(engine: FakeEngine, place: Place) -> None:
    def no(_plan: podbot.SetupPlan) -> None:
        raise KeyError("no")

    with pytest.raises(KeyError):
        podbot.setup(options(place), approve=no, environ=environ(place))
    assert engine.image_builder == Builder(engine)
    assert podbot.load_config(options(place)).image is None


def test_setup_does_not_change_another_image_and_reports_it(engine: FakeEngine, place: Place) -> None:
    result = podbot.setup(options(place, image="my/own:1"), environ=environ(place))
    assert (result.other_image, result.other_origin, result.wrote_config) == ("my/own:1", "override", False)


def test_setup_reports_why_the_service_does_not_start(driver: FakeDriver, place: Place) -> None:
    facts = PodmanFacts(programs={"podman": "/usr/bin/podman", "runc": "/r"}, distribution=("debian",))
    driver.failure = ServiceStartFailed(reason="odd", log="/l")
    with pytest.raises(ServiceStartFailed):  # nothing is known that is wrong with the machine
        podbot.setup(options(place), environ=environ(place))
    driver.runs_on(facts)
    with pytest.raises(MachineNotReady, match=r"no catatonit.*Podman did not start: odd"):
        podbot.setup(options(place), environ=environ(place))


def test_an_image_is_built_and_listed(engine: FakeEngine, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    config, events = podbot.load_config(options(place)), list[Event]()
    request = podbot.BuildRequest(agents=["claude", "codex"], tag="my/own:1")
    result = podbot.build_image(config, request, environ=environ(place), emit=events.append)
    versions = {name: RECIPE.agents[name].version for name in ("claude", "codex")}
    assert (result.image, dict(result.agents)) == ("my/own:1", versions)
    (listed,) = podbot.list_images(config, environ=environ(place))
    assert (listed.image, dict(listed.agents), listed.size) == ("my/own:1", versions, result.size)
    assert "image.build" in {event.kind for event in events}
    assert capfd.readouterr() == ("", "")


def test_an_impossible_build_is_refused_before_anything(engine: FakeEngine, place: Place) -> None:
    with pytest.raises(InvalidValue, match="agents"):
        podbot.build_image(
            podbot.load_config(options(place)), podbot.BuildRequest(agents=["nosuch"]), environ=environ(place)
        )
    assert engine.image_builder == Builder(engine)


def test_an_engine_that_makes_no_images(engine: FakeEngine, place: Place) -> None:
    engine.image_builder = None
    with pytest.raises(NoImageBuilder) as caught:
        podbot.build_image(podbot.load_config(options(place)), podbot.BuildRequest(), environ=environ(place))
    assert caught.value.message == "podbot cannot build or remove images with FakeEngine"
    with pytest.raises(NoImageBuilder):
        podbot.setup(options(place), environ=environ(place))
    assert podbot.list_images(podbot.load_config(options(place)), environ=environ(place)) == []


def test_doctor(engine: FakeEngine, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    checks = podbot.doctor(options(place, image="my/own:1"), environ=environ(place))
    found = {check.name: check for check in checks}
    assert checks[0].name == "config"
    assert found["engine"].found.startswith("FakeEngine 4.3.1 at ")
    assert (found["image"].status, found["podman"].status) == ("fail", "fail")
    assert "my/own:1" in found["image"].found
    assert engine.calls[-1][0] == "image"
    assert capfd.readouterr() == ("", "")


def test_an_unknown_engine_is_a_check_and_an_error(engine: FakeEngine, place: Place) -> None:
    mistaken = options(place, engine="dokcer")
    checks = {check.name: check for check in podbot.doctor(mistaken, environ=environ(place))}
    assert (checks["engine"].status, "podman" not in checks) == ("fail", True)
    with pytest.raises(InvalidValue) as caught:
        podbot.ps(podbot.load_config(mistaken), environ=environ(place))
    assert (caught.value.field, caught.value.origin) == ("engine", "override")
    assert caught.value.hint == "Write podman, the default."
    assert engine.calls == []
