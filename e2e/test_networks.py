"""Which network a session is on. Nothing is sent: the engine is asked."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tomli_w

import podbot
from e2e.harness import ROOTLESS, World, processes, wait_for
from podbot.engine.port import Engine
from podbot.launch.types import ContainerSpec, Security

LABELS = {"io.podbot.managed": "true", "io.podbot.session": ""}
DEFAULT = {"PODBOT_SANDBOX_NETWORK": "default"}


@pytest.fixture
def engine(world: World) -> Iterator[Engine]:
    environ = {**os.environ, **world.env}
    with podbot.open_engine(podbot.load_config(podbot.LoadOptions(environ=environ)), environ=environ) as found:
        yield found


def networks(world: World, *containers: str) -> list[dict[str, Any]]:
    """The networks of each container, with their options."""
    inspected = json.loads(world.podman("inspect", *containers).stdout)
    names = [name for found in inspected for name in found["NetworkSettings"].get("Networks") or ()]
    return list(json.loads(world.podman("network", "inspect", *names).stdout)) if names else []


def listed(world: World, session: str) -> str:
    return world.podman("network", "ls", "--noheading", "--filter", f"label=io.podbot.session={session}").stdout


def rootful(world: World, engine: Engine, name: str) -> str:
    """A container on the engine's default network, not started; on a rootless engine that may need a device."""
    spec = ContainerSpec(name, world.image, "test", {"io.podbot.managed": "true"}, (), Security(), network="default")
    return engine.create(spec)


def test_a_container_is_moved_once_and_its_network_goes_when_it_is_unused(world: World, engine: Engine) -> None:
    """What podbot does for a session, by the engine's own functions: on a rootless engine nothing is there to do."""
    name, labels = f"e2e-{os.urandom(4).hex()}", {"io.podbot.session": "e2e-moved"}
    container = rootful(world, engine, name)
    try:
        assert engine.isolate(container, f"{name}-net", labels) is None
        found = networks(world, name)
        if ROOTLESS:
            assert found == []
        else:
            ((network, options, made),) = [(net["name"], net["options"], net["labels"]) for net in found]
            assert (network, options, made) == (f"{name}-net", {"isolate": "true"}, labels)
        engine.remove_network(f"{name}-net", labels)
        assert networks(world, name) == found
    finally:
        engine.remove(container)
        engine.remove_network(f"{name}-net", {"io.podbot.session": "another"})
    assert bool(listed(world, "e2e-moved")) is not ROOTLESS
    engine.remove_network(f"{name}-net", labels)
    assert listed(world, "e2e-moved") == ""


if not ROOTLESS:  # a rootless one's needs /dev/net/tun, which not every machine has: see e2e/vm/inside/test_network.py

    @pytest.fixture
    def open_world(world: World) -> Iterator[World]:
        """A world whose sessions are on the engine's default network."""
        world.env.update(DEFAULT)
        yield world
        del world.env["PODBOT_SANDBOX_NETWORK"]

    def test_sessions_do_not_share_a_network(open_world: World) -> None:
        """They reached each other's ports over the default bridge (issue 12.5)."""
        with open_world.session() as one, open_world.session() as other:
            found = networks(open_world, one, other)
            assert [network["name"] for network in found] == [f"{one}-net", f"{other}-net"]
            assert all(network["options"]["isolate"] == "true" for network in found)
            assert len({network["subnets"][0]["subnet"] for network in found}) == 2
            assert len({network["network_interface"] for network in found}) == 2
            assert listed(open_world, one)
        assert (listed(open_world, one), listed(open_world, other)) == ("", "")

    def test_a_kept_session_keeps_its_network_and_stop_removes_it(open_world: World) -> None:
        name = f"e2e-{os.urandom(4).hex()}"
        done = open_world.agent("true", flags=("--name", name, "--keep"), check=True)
        assert f"kept the sandbox {name}" in done.stderr
        try:
            assert [network["name"] for network in networks(open_world, name)] == [f"{name}-net"]
            assert open_world.podman("start", name).returncode == 0
            assert [network["name"] for network in networks(open_world, name)] == [f"{name}-net"]
        finally:
            open_world.podbot("stop", "--time", "0", "--rm", name, check=True)
        assert listed(open_world, name) == ""

    def test_a_killed_podbot_s_network_goes_with_its_container(open_world: World) -> None:
        run, _ = open_world.start_agent("sleep 600", "--name", "e2e-killed")
        run.kill()
        run.communicate(timeout=60)
        assert listed(open_world, "e2e-killed")
        open_world.podman("rm", "--force", "--time", "0", "e2e-killed")
        open_world.podbot("ps", check=True)
        assert listed(open_world, "e2e-killed") == ""

    def test_no_engines_configuration_opens_the_host_s_loopback(own_world: World) -> None:
        """slirp4netns, which rootless engines use, and root's can."""
        own_world.podbot("ps", check=True)  # makes the configuration that works here
        settings: dict[str, dict[str, object]] = {}
        if fitted := own_world.podman_env().get("CONTAINERS_CONF"):
            with open(fitted, "rb") as file:
                settings = tomllib.load(file)
        settings.setdefault("containers", {})["netns"] = "slirp4netns"
        settings.setdefault("engine", {})["network_cmd_options"] = ["allow_host_loopback=true"]
        conf = os.path.join(own_world.root, "open.conf")
        with open(conf, "wb") as written:
            tomli_w.dump(settings, written)
        for pid in own_world.service_pids():
            os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not own_world.service_pids(), what="the service to end")
        own_world.env.update({**DEFAULT, "CONTAINERS_CONF": conf})
        with contextlib.ExitStack() as stack:
            name = stack.enter_context(own_world.session())
            (path,) = json.loads(own_world.podman("inspect", "--format", "json", name).stdout)
            sandbox = path["NetworkSettings"]["SandboxKey"]
            (command,) = [found for _, found in processes() if "slirp4netns" in found and sandbox in found]
            assert "--disable-host-loopback" in command
