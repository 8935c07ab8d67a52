"""The library's calls for images, set-up and doctor, on an engine in memory: typed values, nothing printed."""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

import podbot
from podbot.diagnosis import disk_checks
from podbot.engine.podman import driver
from podbot.engine.podman.machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import InvalidValue, MachineNotReady, NoImageBuilder, ServiceStartFailed
from podbot.events import Event
from podbot.images.recipe import CONTAINERFILE, load_recipe
from podbot.testing import FakeEngine
from tests.session.plans import Place

RECIPE = load_recipe()
READY = PodmanFacts(distribution=("fedora",))  # no podman program: what the engine needs is not on this machine


@dataclass
class Builder:
    """Makes images of the names that it is asked for, with the labels of the Containerfile."""

    engine: FakeEngine
    calls: list[tuple[str, str]] = field(default_factory=list)

    def build(self, *, context: bytes, tag: str, on_line: Callable[[str], None], **_: Any) -> None:
        self.calls.append(("build", tag))
        on_line("STEP 1/2: FROM base")
        with tarfile.open(fileobj=io.BytesIO(context)) as tar:
            text = (tar.extractfile(CONTAINERFILE) or io.BytesIO()).read().decode()
        self.engine.image_labels = dict(re.findall(r'(\S+)="([^"]*)"', text.rpartition("LABEL ")[2]))
        self.engine.images = [tag]

    def import_rootfs(self, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None:
        raise AssertionError((archive, tag, changes))

    def pull(self, *, reference: str, on_line: Callable[[str], None]) -> None:
        self.calls.append(("pull", reference))
        on_line("Trying to pull")

    def remove(self, *, image: str) -> bool:
        raise AssertionError(image)


@pytest.fixture
def place(tmp_path: os.PathLike[str]) -> Place:
    return Place(os.fspath(tmp_path))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    made = FakeEngine(images=())
    made.image_builder = Builder(made)
    monkeypatch.setattr(driver, "connect", lambda _config, _environ, _emit: made)
    monkeypatch.setattr(driver, "machine", lambda _environ: PodmanMachine(READY, ""))
    monkeypatch.setattr(disk_checks, "look_at_disks", lambda _host, _environ: {})
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


def test_a_plan_that_is_not_approved_is_not_carried_out(engine: FakeEngine, place: Place) -> None:
    def no(_plan: podbot.SetupPlan) -> None:
        raise KeyError("no")

    with pytest.raises(KeyError):
        podbot.setup(options(place), approve=no, environ=environ(place))
    assert engine.image_builder == Builder(engine)
    assert podbot.load_config(options(place)).image is None


def test_setup_leaves_another_image_alone_and_says_which(engine: FakeEngine, place: Place) -> None:
    result = podbot.setup(options(place, image="my/own:1"), environ=environ(place))
    assert (result.other_image, result.other_origin, result.wrote_config) == ("my/own:1", "override", False)


def test_setup_where_the_service_does_not_start_tells_the_cause(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(*_: object) -> None:
        raise ServiceStartFailed(reason="odd", log="/l")

    facts = PodmanFacts(programs={"podman": "/usr/bin/podman", "runc": "/r"}, distribution=("debian",))
    monkeypatch.setattr(driver, "connect", failed)
    with pytest.raises(ServiceStartFailed):  # nothing is known that is wrong with the machine
        podbot.setup(options(place), environ=environ(place))
    monkeypatch.setattr(driver, "machine", lambda _environ: PodmanMachine(facts, ""))
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


def test_what_cannot_be_built_is_refused_before_anything(engine: FakeEngine, place: Place) -> None:
    with pytest.raises(InvalidValue, match="agents"):
        podbot.build_image(
            podbot.load_config(options(place)), podbot.BuildRequest(agents=["nosuch"]), environ=environ(place)
        )
    assert engine.image_builder == Builder(engine)


def test_an_engine_that_makes_no_images(engine: FakeEngine, place: Place) -> None:
    engine.image_builder = None
    with pytest.raises(NoImageBuilder) as caught:
        podbot.build_image(podbot.load_config(options(place)), podbot.BuildRequest(), environ=environ(place))
    assert caught.value.message == "podbot cannot build images with FakeEngine"
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
    assert caught.value.hint.startswith("Engines: podman")
    assert engine.calls == []
