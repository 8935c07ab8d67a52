"""Mistakes of a day's use, on a real engine: what podbot prints names the thing and a remedy, in podbot's words.

The mistakes that need no engine are in tests/cli/provoked.py.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from e2e.harness import PODBOT, World

# Words of Python, pydantic, Go, runc, crun, conmon and Podman's own command line.
FOREIGN = re.compile(
    r"Traceback|Errno|pydantic|validation error|OCI runtime|\brunc\b|\bcrun\b"
    r"|conmon|panic|goroutine|level=|Error:|exit status"
)
COMMAND = re.compile(r"`podbot ([a-z-]+)")


class Mistake(NamedTuple):
    """``words``: the command line, in which W, RUNS, KEPT and CONTAINER stand for what :func:`scene` makes; ``thing``
    and ``remedy``: parts of what podbot must print; ``variables``: of the environment.
    """

    words: str
    thing: str
    remedy: str
    variables: tuple[tuple[str, str], ...] = ()


IMAGELESS = (("PODBOT_IMAGE", "localhost/nosuch:1"),)
MISTAKES = (
    # sessions
    Mistake("exec nosuch true", "nosuch", "podbot ps"),
    Mistake("exec KEPT true", "KEPT", "podbot start"),
    Mistake("stop nosuch", "nosuch", "podbot ps"),
    Mistake("stop", "SESSION", "podbot ps"),
    Mistake("rm nosuch", "nosuch", "podbot ps"),
    Mistake("rm RUNS", "RUNS", "--force"),
    Mistake("start nosuch", "nosuch", "podbot ps"),
    Mistake("start RUNS", "RUNS", "podbot exec"),
    Mistake("restart nosuch", "nosuch", "podbot ps"),
    Mistake("logs nosuch", "nosuch", "podbot ps"),
    Mistake("attach nosuch", "attach", "podbot open"),
    Mistake("inspect nosuch", "nosuch", "podbot ps"),
    Mistake("net show nosuch", "nosuch", "podbot ps"),
    Mistake("stop CONTAINER", "CONTAINER", "engine's own tools"),
    Mistake("rm CONTAINER", "CONTAINER", "engine's own tools"),
    Mistake("logs CONTAINER", "CONTAINER", "engine's own tools"),
    Mistake("run custom W --name RUNS -- true", "RUNS", "--name"),
    Mistake("run custom W --name CONTAINER -- true", "CONTAINER", "--name"),
    # files
    Mistake("cp nosuch:/etc/os-release W", "nosuch", "podbot ps"),
    Mistake("cp RUNS:/nosuch W", "RUNS:/nosuch", "Check the path in the sandbox"),
    Mistake("cp W/nosuch RUNS:/tmp", "W/nosuch", "Check the path on this host"),
    Mistake("cp KEPT:/etc/os-release W", "KEPT", "podbot start"),
    Mistake("cp W W", "W", "NAME:PATH"),
    # workspaces
    Mistake("run custom W/nosuch -- true", "W/nosuch", "Check the path"),
    Mistake("run custom /etc -- true", "/etc", "Choose a project directory"),
    Mistake("run custom / -- true", "/ (argument PATH)", "Choose a project directory"),
    Mistake("run custom W --mount W/nosuch:/mnt -- true", "W/nosuch (flag --mount)", "Check the path"),
    Mistake("run custom W --mount W:/proc -- true", "/proc (flag --mount)", "Choose another target"),
    Mistake("run custom W --env-file W/nosuch -- true", "W/nosuch", "Check the path"),
    Mistake("run custom W --transcript W/nosuch/file -- true", "--transcript", "`podbot host` has it"),
    # images
    Mistake("run custom W -- true", "localhost/nosuch:1", "podbot setup", IMAGELESS),
    Mistake("image rm localhost/nosuch:1", "localhost/nosuch:1", "podbot image ls"),
    Mistake("image build --base localhost/nosuch:1", "localhost/nosuch:1 (flag --base)", "Check the name"),
    Mistake("image update nosuch", "nosuch", "Agents: claude"),
    # the sandbox
    Mistake("run custom W --memory 1k -- true", "sandbox.memory (flag --memory)", "Write 6m or more"),
    Mistake("exec -w /nosuch RUNS true", "/nosuch", "Name a directory"),
    Mistake("exec -u nosuch RUNS true", "user nosuch", "/etc/passwd"),
    # the engine
    Mistake("ps", "/nosuch.sock (variable CONTAINER_HOST)", "unset it", (("CONTAINER_HOST", "unix:///nosuch.sock"),)),
    Mistake(
        "ps",
        "nosuch.invalid:1 (variable CONTAINER_HOST)",
        "podbot doctor",
        (("CONTAINER_HOST", "tcp://nosuch.invalid:1"),),
    ),
    # the machine
    Mistake("ps", "/proc/nosuch", "Check the path", (("XDG_RUNTIME_DIR", "/proc/nosuch"),)),
    Mistake("--log-file /nosuch/file ps", "/nosuch/file", "Check the path"),
    Mistake("history rm nosuch", "nosuch", "podbot history ls"),
    Mistake("login custom", "custom", "Choose one of claude"),
    Mistake(
        "run --repo octo/hello claude -- --version",
        "http://127.0.0.1:1",
        "Check sandbox.network",
        (("PODBOT_GITHUB_SERVER_URL", "http://127.0.0.1:1"),),
    ),
)


class Scene(NamedTuple):
    """What is there while the mistakes are made, and the texts that stand for it."""

    world: World
    instead: dict[str, str]

    def made(self, text: str) -> str:
        return re.sub(r"\b(W|RUNS|KEPT|CONTAINER)\b(?!_)", lambda found: self.instead[found[0]], text)


@pytest.fixture(scope="module")
def scene(shared_world: World) -> Iterator[Scene]:
    """A session that runs, a kept one that is stopped, and a container of somebody else's."""
    world = shared_world
    work = world.workspace()
    names = {"RUNS": "provoked-runs", "KEPT": "provoked-kept", "CONTAINER": "provoked-container"}
    for name in ("RUNS", "KEPT"):
        world.podbot("run", "--keep", "--name", names[name], "custom", work, "--", "true", check=True)
    world.podbot("start", names["RUNS"], check=True)
    made = world.podman("create", "--name", names["CONTAINER"], world.image, "true")
    assert made.returncode == 0, made.stderr
    yield Scene(world, {"W": work, **names})
    world.podbot("rm", "--force", names["RUNS"], names["KEPT"], check=True)
    world.podman("rm", names["CONTAINER"])


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake.words} {dict(mistake.variables) or ''}")
def test_a_mistake_is_answered_in_podbots_words(mistake: Mistake, scene: Scene) -> None:
    variables = {name: scene.made(value) for name, value in mistake.variables}
    done = scene.world.podbot(*map(scene.made, shlex.split(mistake.words)), env=variables)
    assert done.returncode
    assert done.stdout == ""
    printed = done.stderr.splitlines()
    assert all(line.startswith("podbot: ") for line in printed), done.stderr
    assert not FOREIGN.search(done.stderr), done.stderr
    assert scene.made(mistake.thing) in printed[-1]
    assert mistake.remedy in printed[-1]
    for command in COMMAND.findall(done.stderr):
        helped = subprocess.run([*PODBOT, command, "--help"], env=scene.world.env, capture_output=True, check=False)
        assert helped.returncode == 0, f"{command} is no command"
    assert not os.listdir(scene.instead["W"])
