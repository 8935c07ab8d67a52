"""Random SIGKILLs of whatever keeps a session going: afterwards nothing of it is left, and the workspace is whole."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness import World, nothing_found, wait_for
from e2e.host.pipe import config_file
from e2e.kill_kinds import NETWORKS
from e2e.kills import (
    Target,
    files_named_after_sessions,
    kill,
    make_template,
    marked,
    mounted,
    opened,
    until,
)
from e2e.kills_run import CLEAN, RandomKills
from e2e.patience import patient
from podbot.session.flags import is_live

KILLS = int(os.environ.get("PODBOT_E2E_KILLS", "12"))  # 300 for a release
# The limit is 10 s. In the gate other suites use the two cores as well, and only what stays is a failure there.
LIMIT = CLEAN if "PODBOT_E2E_KILLS" in os.environ else 2 * CLEAN


def test_random_kills_leave_nothing(own_world: World) -> None:
    seed = int(os.environ.get("PODBOT_E2E_KILL_SEED", "0")) or random.randrange(1, 10**9)
    sys.stderr.write(f"PODBOT_E2E_KILL_SEED={seed}\n")
    temporary = Path(own_world.root, "tmp")
    temporary.mkdir()
    own_world.env["TMPDIR"] = str(temporary)
    with config_file(own_world) as config:
        kills = RandomKills(own_world, config, seed=seed, wanted=KILLS, limit=LIMIT)
        kills.run()
    sys.stderr.write(f"{kills.table()}\n")
    assert not kills.problems(), "\n".join(kills.problems())
    left = own_world.podman("volume", "ls", "-q").stdout.split()
    left += own_world.podman("ps", "--all", "--external", "--quiet").stdout.split()
    left += [str(path) for path in temporary.rglob("*") if not is_configuration_of_an_image(path)]
    left += [path for path in files_named_after_sessions(own_world) if not path.endswith(".log")]
    assert not left, left
    mounts = [line for line in mounted(own_world) if not line.endswith("/store/overlay")]
    assert not mounts, mounts
    # The next command finds nothing to report or to remove.
    listed = own_world.podbot("ps", "-a", "--json", check=True)
    assert (listed.stdout, listed.stderr) == ("[]\n", "")


@pytest.mark.parametrize("network", NETWORKS)
def test_all_of_a_running_session_is_seen(own_world: World, template: str, network: str) -> None:
    """Otherwise the tests here would find nothing because they do not see it."""
    with session(own_world, template, network=network) as made:
        kinds = ["process", "container", "directory"]
        kinds += {"none": [], "filtered": ["gateway"]}.get(network, ["network", "network namespace"])
        seen = made.left()
        for kind in kinds:
            assert [line for line in seen if line.startswith(f"{kind} ")], (kind, seen)
        # A bridge, and the sandbox's end on this side.
        interfaces = [line for line in seen if line.startswith("network interface ")]
        assert len(interfaces) == (2 if network == "default" else 0), seen
        assert kill(made.owner.pid)
        gone(made)


@pytest.fixture
def template(own_world: World) -> str:
    """A git workspace to copy."""
    path = os.path.join(own_world.root, "template")
    make_template(path)
    return path


def is_configuration_of_an_image(path: Path) -> bool:
    """Whether Podman was killed while it read that. It writes it to a temporary file, of a few kilobytes, first."""
    return path.name.isdigit() and path.read_bytes()[:1] in (b"", b"{")


@contextlib.contextmanager
def session(world: World, template: str, kind: str = "run", network: str = "") -> Iterator[Target]:
    """One whose agent runs."""
    with (
        config_file(world) as config,
        opened(lambda: Target(world, kind, template, config, random.Random(1), network)) as made,
    ):
        wait_for(lambda: made.up, what="the agent", child=made.owner)
        yield made


def gone(made: Target) -> None:
    """Nothing is left of it within the limit."""
    assert until(lambda: not made.left(), patient(LIMIT)) is not None, made.left()


def image(world: World, name: str, *lines: str) -> str:
    """An image on top of the sandbox's own."""
    place = os.path.join(world.root, name)
    os.mkdir(place)
    with open(os.path.join(place, "Containerfile"), "w", encoding="utf-8") as file:
        file.write("\n".join((f"FROM {world.image}", *lines)))
    ref = f"localhost/e2e-kills-{name}"
    done = world.podman("build", "--network", "none", "-q", "-t", ref, place, timeout=300)
    assert done.returncode == 0, done.stderr
    return ref


@pytest.mark.parametrize("user", ["0", "1000"])
def test_a_command_ends_with_its_killed_exec(own_world: World, template: str, user: str) -> None:
    """Also a child that changed its session and one that ignores TERM; the sandbox and its agent stay."""
    if user != "0":
        own_world.env["PODBOT_IMAGE"] = image(own_world, "user", f"USER {user}")
        subprocess.run(["chmod", "-R", "a+rwX", template], check=True)  # the agent makes a file and commits
    with session(own_world, template) as made:
        for moment in (0.0, 0.1, 0.3, 0.6, None):
            made.exec_begun()
            if moment is None:
                wait_for(lambda: len(marked(made.marks[2:])) == 2, what="the command", child=made.exec_client)
            else:
                time.sleep(moment)
            assert kill(made.victim("exec"))
            assert until(lambda: not marked(made.marks[2:]), patient(LIMIT)) is not None, moment
        stubborn = f"trap '' TERM; setsid sh -c \"trap '' TERM; {made.marks[2]}\" & {made.marks[3]}"
        made.exec_begun(line=stubborn)
        wait_for(lambda: len(marked(made.marks[2:])) == 2, what="the command", child=made.exec_client)
        assert kill(made.victim("exec"))
        assert until(lambda: not marked(made.marks[2:]), patient(LIMIT)) is not None
        assert len(marked(made.marks[:2])) == 2
        assert kill(made.owner.pid)
        gone(made)


@pytest.mark.parametrize("others", [("monitor",), ("service",), ("monitor", "service")])
def test_the_engine_is_killed_with_podbot(own_world: World, template: str, others: tuple[str, ...]) -> None:
    with session(own_world, template) as made:
        pids = [made.victim(name) for name in (*others, "owner")]
        assert all(pids)
        for pid in pids:
            assert kill(pid)
        gone(made)


@pytest.mark.parametrize("kind", ["run", "host", "library"])
def test_a_sandbox_whose_monitor_was_killed_leaves_nothing_at_its_end(
    own_world: World, template: str, kind: str
) -> None:
    """Podman then leaves the runtime's record of it, and its control groups."""
    with session(own_world, template, kind) as made:
        made.left()
        assert kill(made.victim("monitor"))
        wait_for(lambda: not made.victim("monitor"), what="the monitor's end")
        assert kill(made.owner.pid, signal.SIGTERM)
        gone(made)


def test_the_engines_service_is_killed_during_a_start(own_world: World, template: str) -> None:
    """The container's monitor and a process of the OCI runtime would stay, although the container is gone."""
    for _ in range(10):
        with (
            config_file(own_world) as config,
            opened(lambda: Target(own_world, "run", template, config, random.Random(1))) as made,
        ):
            seen = until(lambda m=made: [line for line in m.processes() if "conmon" in line], patient(LIMIT), 0.001)  # type: ignore[misc]
            assert seen is not None
            assert kill(made.victim("service"))
            wait_for(lambda m=made: m.owner.poll() is not None or m.up, what="podbot's end")  # type: ignore[misc]
            late = made.owner.poll() is None  # on a busy machine its agent may run by then
            if late:
                kill(made.owner.pid)
            gone(made)
        if not late:
            return
    raise AssertionError("each start was over before the service was killed")


def test_a_sandbox_whose_guest_was_stopped_ends_with_its_podbot(own_world: World, template: str) -> None:
    """As an agent that is root inside can do."""
    with session(own_world, template) as made:
        assert kill(made.victim("guest"), signal.SIGSTOP)
        assert kill(made.owner.pid)
        gone(made)


@pytest.fixture
def bare(own_world: World) -> str:
    """An image without python3, so its sandboxes have no guest."""
    return image(own_world, "bare", "RUN rm -f /usr/bin/python3* /usr/local/bin/python3*")


def test_a_sandbox_without_a_guest_ends_with_its_podbot(own_world: World, template: str, bare: str) -> None:
    own_world.env["PODBOT_IMAGE"] = bare
    with session(own_world, template) as made:
        assert kill(made.owner.pid)
        gone(made)


def test_a_command_of_the_engine_ends_with_its_killed_exec(own_world: World, template: str, bare: str) -> None:
    """Also one that ignores TERM, and one whose podbot is killed during the start; the sandbox and its agent stay.

    A child in another session is not seen: only the guest sees those.
    """
    own_world.env["PODBOT_IMAGE"] = bare
    with session(own_world, template) as made:
        for moment in (0.05, 0.2, 0.35, 0.5, None):
            made.exec_begun(line=f"trap '' TERM; {made.marks[2]} & {made.marks[3]}")
            if moment is None:
                wait_for(lambda: len(marked(made.marks[2:])) == 2, what="the command", child=made.exec_client)
            else:
                time.sleep(moment)
            assert kill(made.victim("exec"))
            assert until(lambda: nothing_found(own_world.exec_watchers), patient(LIMIT)) is not None, moment
            assert not marked(made.marks[2:]), moment
        assert len(marked(made.marks[:2])) == 2
        # Of one that ends by itself, nothing is left either.
        made.exec_begun(line="exit 3")
        assert made.exec_client is not None
        assert made.exec_client.wait(timeout=60) == 3
        assert not own_world.exec_watchers()
        assert kill(made.owner.pid)
        gone(made)


def test_what_the_guard_found_is_reported_by_the_next_command(own_world: World, template: str) -> None:
    with session(own_world, template) as made:
        with open(os.path.join(made.workspace, ".envrc"), "w", encoding="utf-8") as file:
            file.write("echo\n")
        assert kill(made.owner.pid)
        assert until(lambda: not own_world.container(made.name), patient(LIMIT)) is not None
        path = os.path.join(own_world.runtime, made.name)
        wait_for(lambda: not [name for name in os.listdir(path) if name.startswith("guard")], what="the comparison")
        wait_for(lambda: not is_live(path), what="the helper")
        assert ".envrc" in own_world.podbot("ps", check=True).stderr
        assert not own_world.sessions()
        assert ".envrc" not in own_world.podbot("ps", check=True).stderr
