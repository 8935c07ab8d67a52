"""``podbot image`` from the command line down to an engine in memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from podbot.agents.registry import known
from podbot.cli import image as room
from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.port import ImageInfo
from podbot.errors import EngineStorageFull, ServiceStartFailed
from podbot.images import build_turn
from podbot.session.directory import session_directory
from podbot.testing import IMAGE, FakeEngine
from tests.driver import FakeDriver
from tests.provisioning.test_setup import BASE, RECIPE, Works, sandbox
from tests.session.plans import SESSION, Place, container, in_state, labels

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _globals_as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


@pytest.fixture
def works(driver: FakeDriver, engine: FakeEngine, place: Place) -> Iterator[Works]:
    made = Works({RECIPE.base: BASE})

    def image(ref: str) -> ImageInfo | None:
        return made.images.get(ref)

    driver.runs_on(PodmanFacts())
    engine.image_builder = made
    engine.image = image  # type: ignore[method-assign]
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield made
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("words", [["setup"], ["setup", "--yes"], ["setup", "--yes", "--force"]])
def test_setup_on_a_machine_that_is_not_ready(
    works: Works, driver: FakeDriver, capsys: Capture, words: list[str]
) -> None:
    """There is no question, build or write, because the session could not start, and this user has no sudo."""
    programs = {"podman": "/usr/lib/podman/podman", "runc": "/r", "newuidmap": "/n", "newgidmap": "/n", "pasta": "/p"}
    facts = PodmanFacts(uid=1000, programs={**programs, "slirp4netns": "/s"}, distribution=("debian",))
    driver.machine = lambda _environ: PodmanMachine(facts, "podman version 4.3.1")
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert "this machine is not ready for a session: init: no catatonit, tini or dumb-init" in err
    assert re.search(r"`sudo apt-get update -q && sudo apt-get install -y \S+ .*catatonit", err)
    assert "Go ahead" not in err
    assert (out, works.calls) == ("", [])


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({"podman": "/usr/lib/podman/podman", "runc": "/r"}, "not ready for a session: init: "),
        (
            {"podman": "/usr/lib/podman/podman", "runc": "/r", "catatonit": "/c"},
            "could not start a private engine service: odd",
        ),
    ],
)
def test_setup_where_the_service_does_not_start(
    works: Works, driver: FakeDriver, capsys: Capture, programs: dict[str, str], said: str
) -> None:
    """Without newuidmap, for example, no Podman of an ordinary user starts."""
    driver.failure = ServiceStartFailed(reason="odd", log="/l")
    driver.runs_on(PodmanFacts(programs=programs, cgroups="hybrid"))
    assert main(["setup", "--yes"]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "odd" in err  # the checks may have found something else
    assert works.calls == []


def test_build_reports_the_result(works: Works, capsys: Capture) -> None:
    assert main(["image", "build", "--agents", "codex, claude", "--tag", "my/own:1"]) == 0
    out, err = capsys.readouterr()
    claude, codex = RECIPE.agents["claude"].version, RECIPE.agents["codex"].version
    assert out.startswith(f"my/own:1 with claude {claude}, codex {codex} ")
    assert "building my/own:1" in err
    assert works.calls == [("build", "my/own:1")]
    assert works.built["no_cache"] is False


@pytest.mark.parametrize("words", [["image", "ls"], ["image", "build"], ["setup", "--yes"], ["doctor"]])
def test_any_command_removes_what_a_killed_hosted_session_left(
    works: Works, engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """Issue 10.16."""
    engine.start(engine.create(container(SESSION, marks=labels(mode="acp"))))
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
    main(words)
    assert engine.by_name == {}


def test_build_without_agents(works: Works, capsys: Capture) -> None:
    assert main(["image", "build", "--agents", "", "--no-cache"]) == 0
    assert "with no agent" in capsys.readouterr().out
    assert works.built["labels"]["io.podbot.agents"] == ""
    assert works.built["no_cache"] is True


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--agents", "gemin"], 2, f"Did you mean gemini? Agents: {', '.join(known())}"),
        (["--build-arg", "canary-secret"], 2, "an argument is written NAME=VALUE"),
        (["--build-arg", "NODE=1"], 2, "no build argument 'NODE'"),
        (["--base", "not/there:1"], 1, "not/there:1 (flag --base) is not on this engine"),
        (["--base", "b", "--from-debian"], 2, "--from-debian"),
        (["--tag", "A B"], 2, "is not the name of an image"),
    ],
)
def test_builds_that_are_impossible(works: Works, capsys: Capture, words: list[str], status: int, said: str) -> None:
    assert main(["image", "build", *words]) == status
    err = capsys.readouterr().err
    assert said in err
    assert "canary-secret" not in err
    assert works.calls == []


def test_a_full_disk_is_one_paragraph(works: Works, capsys: Capture) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise EngineStorageFull(operation="build it")

    works.build = full  # type: ignore[method-assign]
    assert main(["image", "build"]) == 1
    assert "no space left in the engine's storage" in capsys.readouterr().err


def test_json_lines_of_progress(works: Works, capsys: Capture) -> None:
    assert main(["image", "build", "--log-format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["kind"] for line in lines] == ["image.build"]


class Stderr(io.StringIO):
    """Knows when podbot has reported that it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = threading.Event()

    def write(self, text: str) -> int:
        if "waiting for it" in text:
            self.waiting.set()
        return super().write(text)


def main_after_another_build(words: list[str], act: Callable[[], None] = lambda: None) -> tuple[int, str]:
    """The exit code and stderr of a build that waits for another one, which calls ``act`` before its end."""
    building, stderr = threading.Event(), Stderr()

    def other() -> None:
        with build_turn.build_turn(os.environ, FakeEngine().endpoint):
            building.set()
            assert stderr.waiting.wait(60)
            act()

    thread = threading.Thread(target=other)
    thread.start()
    assert building.wait(60)
    with contextlib.redirect_stderr(stderr):
        code = main(words)
    thread.join()
    return code, stderr.getvalue()


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        (["setup", "--yes"], []),
        (["image", "build", "--no-cache"], [("build", RECIPE.image), ("remove", "id-sandbox")]),
    ],
)
def test_an_image_that_another_podbot_built_meanwhile_is_used(
    works: Works, words: list[str], calls: list[tuple[str, str]]
) -> None:
    """The plan is made again after the wait: the image is not built twice, and the replaced one is the other
    podbot's.
    """

    def build() -> None:
        works.images[RECIPE.image] = sandbox("claude")

    assert main_after_another_build(words, build)[0] == 0
    assert works.calls == calls


def test_a_build_waits_for_another(works: Works) -> None:
    code, err = main_after_another_build(["image", "build"])
    assert code == 0
    assert err.splitlines()[0] == "podbot: another podbot is building on this engine; waiting for it"


def test_ls(engine: FakeEngine, place: Place, capsys: Capture) -> None:
    engine.image_labels = {"io.podbot.image": "sandbox", "io.podbot.agents": "claude=2.1,gemini=0.6"}
    assert main(["image", "ls"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["IMAGE", "AGENTS", "SIZE", "AGE"]
    assert row.split()[:7] == [IMAGE, "claude", "2.1,", "gemini", "0.6", "1", "MB"]
    assert main(["image", "ls", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["image"], found["agents"]) == (IMAGE, {"claude": "2.1", "gemini": "0.6"})
    assert main(["image", "ls", "-q"]) == 0
    assert capsys.readouterr().out == f"{IMAGE}\n"
    assert main(["image", "ls", "--quiet", "--json"]) == 2
    assert "only one of --json and --quiet can be given" in capsys.readouterr().err


def test_ls_without_images(engine: FakeEngine, place: Place, capsys: Capture) -> None:
    assert main(["image", "ls"]) == 0
    assert capsys.readouterr() == ("", "podbot: this engine has no image of podbot's; `podbot setup` builds one\n")
    assert main(["image", "ls", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["image", "ls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "seconds"), (59, "seconds"), (60, "1 minute"), (7300, "2 hours"), (90000, "1 day")]
)
def test_ages(seconds: float, words: str) -> None:
    assert room.age(seconds) == words
