"""``podbot image`` from the command line down to an engine in memory."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.agents.registry import known
from podbot.api import images as calls
from podbot.cli import image as room
from podbot.cli.globals import Globals
from podbot.cli.main import main
from podbot.diagnosis import disk_checks
from podbot.engine.podman import driver
from podbot.engine.podman.machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.words import WORDS
from podbot.errors import EngineStorageFull, ServiceStartFailed
from podbot.images import base_image, build_turn
from podbot.images.image_build import BuildContext
from podbot.session.sessions import session_directory
from podbot.testing import IMAGE, FakeEngine
from tests.provisioning.test_setup import BASE, RECIPE, Works, sandbox
from tests.session.plans import SESSION, Place, container, in_state, labels

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _globals_as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch, engine: FakeEngine, place: Place) -> Works:
    made = Works({RECIPE.base: BASE})

    def build_context(_engine: Any, _machine: Any, environ: Any, emit: Any) -> BuildContext:
        return BuildContext(RECIPE, PodmanFacts(), environ, made.images.get, made, WORDS, emit)

    monkeypatch.setattr(calls, "build_context", build_context)
    monkeypatch.setattr(room, "end_on_signals", lambda: None)
    monkeypatch.setattr(base_image, "apt_targets", lambda: "")
    monkeypatch.setattr(disk_checks, "look_at_disks", lambda _host, _environ: {})
    return made


@pytest.mark.parametrize("words", [["setup"], ["setup", "--yes"], ["setup", "--yes", "--force"]])
def test_setup_on_a_machine_that_is_not_ready(
    works: Works, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: list[str]
) -> None:
    """Nothing is asked, built or written: the session that it is for could not start."""
    facts = PodmanFacts(programs={"podman": "/usr/lib/podman/podman", "runc": "/r"}, distribution=("debian",))

    monkeypatch.setattr(driver, "machine", lambda _environ: PodmanMachine(facts, ""))
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert "this machine is not ready for a session: init: no catatonit, tini or dumb-init." in err
    assert "install -y catatonit" in err
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
def test_setup_where_not_even_the_service_starts(
    works: Works, monkeypatch: pytest.MonkeyPatch, capsys: Capture, programs: dict[str, str], said: str
) -> None:
    """Without newuidmap, for example, no Podman of an ordinary user starts."""

    def failed(*_: Any) -> None:
        raise ServiceStartFailed(reason="odd", log="/l")

    monkeypatch.setattr(driver, "connect", failed)
    there = PodmanMachine(PodmanFacts(programs=programs, cgroups="hybrid"), "")
    monkeypatch.setattr(driver, "machine", lambda _environ: there)
    assert main(["setup", "--yes"]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "odd" in err  # the checks may have found something else
    assert works.calls == []


def test_build_says_what_was_built(works: Works, capsys: Capture) -> None:
    assert main(["image", "build", "--agents", "codex, claude", "--tag", "my/own:1"]) == 0
    out, err = capsys.readouterr()
    claude, codex = RECIPE.agents["claude"].version, RECIPE.agents["codex"].version
    assert out.startswith(f"my/own:1 with claude {claude}, codex {codex} ")
    assert "building my/own:1" in err
    assert works.calls == [("build", "my/own:1")]
    assert works.built["no_cache"] is False


@pytest.mark.parametrize("words", [["image", "ls"], ["image", "build"], ["setup", "--yes"], ["doctor"]])
def test_what_a_killed_hosted_session_left_is_removed_by_any_command(
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
def test_what_cannot_be_built(works: Works, capsys: Capture, words: list[str], status: int, said: str) -> None:
    assert main(["image", "build", *words]) == status
    err = capsys.readouterr().err
    assert said in err
    assert "canary-secret" not in err
    assert works.calls == []


def test_a_full_disk_is_one_paragraph(works: Works, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise EngineStorageFull(operation="build it")

    monkeypatch.setattr(works, "build", full)
    assert main(["image", "build"]) == 1
    assert "no space left in the engine's storage" in capsys.readouterr().err


def test_json_lines_of_progress(works: Works, capsys: Capture) -> None:
    assert main(["image", "build", "--log-format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["kind"] for line in lines] == ["image.build"]


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        (["setup", "--yes"], []),
        (["image", "build", "--no-cache"], [("build", RECIPE.image), ("remove", "id-sandbox")]),
    ],
)
def test_what_another_podbot_built_meanwhile_is_seen(
    works: Works, monkeypatch: pytest.MonkeyPatch, words: list[str], calls: list[tuple[str, str]]
) -> None:
    """Planned anew after the wait: the image is not built twice, and the one that is replaced is the other's."""

    @contextlib.contextmanager
    def waited(_environ: Any, endpoint: str, _emit: Any) -> Iterator[None]:
        assert endpoint == FakeEngine().endpoint
        works.images[RECIPE.image] = sandbox("claude")
        yield

    monkeypatch.setattr(build_turn, "build_turn", waited)
    assert main(words) == 0
    assert works.calls == calls


def test_a_build_waits_for_another(works: Works, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    building, waiting = threading.Event(), threading.Event()
    flock = fcntl.flock

    def watched(lock: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX:  # without LOCK_NB: the second build has found the first one
            waiting.set()
        flock(lock, operation)

    monkeypatch.setattr(fcntl, "flock", watched)

    def other() -> None:
        with build_turn.build_turn(os.environ, FakeEngine().endpoint):
            building.set()
            waiting.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert building.wait(60)
    assert main(["image", "build"]) == 0
    thread.join()
    assert capsys.readouterr().err.splitlines()[0] == (
        "podbot: another podbot builds on this engine; waiting for its end"
    )


def test_ls(engine: FakeEngine, place: Place, capsys: Capture) -> None:
    engine.image_labels = {"io.podbot.image": "sandbox", "io.podbot.agents": "claude=2.1,gemini=0.6"}
    assert main(["image", "ls"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["IMAGE", "AGENTS", "SIZE", "AGE"]
    assert row.split()[:7] == [IMAGE, "claude", "2.1,", "gemini", "0.6", "1", "MB"]
    assert main(["image", "ls", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["image"], found["agents"]) == (IMAGE, {"claude": "2.1", "gemini": "0.6"})


def test_ls_of_nothing(engine: FakeEngine, place: Place, capsys: Capture) -> None:
    assert main(["image", "ls"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["image", "ls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "seconds"), (59, "seconds"), (60, "1 minute"), (7300, "2 hours"), (90000, "1 day")]
)
def test_ages(seconds: float, words: str) -> None:
    assert room.age(seconds) == words
