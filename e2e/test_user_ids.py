"""Rootless Podman without user ids: missing parts are reported with their fix, and nothing is left behind.

The operator is an ordinary user in a namespace of the test's own, in which files of /etc and /usr/bin are replaced.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping

import pytest

from e2e.harness import PODBOT, ROOTLESS, World

UID = os.getuid() if ROOTLESS else 1  # any that has a name
RANGES = ("/etc/subuid", "/etc/subgid")
IMAGE = "localhost/podbot-sandbox:unseen"


@pytest.fixture
def user(own_world: World) -> Iterator[World]:
    """An operator with an empty store."""
    own_world.env.pop("CONTAINERS_STORAGE_CONF", None)
    own_world.env.pop("DBUS_SESSION_BUS_ADDRESS", None)
    if os.path.exists(own_world.storage_conf):
        os.unlink(own_world.storage_conf)
    yield own_world
    assert own_world.sessions() == []


def podbot(world: World, instead: Mapping[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    """podbot with each path of ``instead`` replaced by this text, not executable."""
    binds = []
    for number, (path, text) in enumerate(instead.items()):
        source = os.path.join(world.root, f"instead-{number}")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        binds.append(f"mount --bind {source} {path}")
    script = " && ".join([*binds, f'exec unshare --user --map-user={UID} --map-group={UID} -- "$@"'])
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *PODBOT, *args],
        env=world.env, cwd=world.root, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def checks(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, str]]:
    assert done.returncode == 1, (done.stdout, done.stderr)
    return {check["name"]: check for check in json.loads(done.stdout)}


def test_no_range_of_user_ids(user: World) -> None:
    instead = dict.fromkeys(RANGES, "")
    found = checks(podbot(user, instead, "doctor", "--json"))
    assert found["user-ids"]["status"] == "fail"
    assert "no range" in found["user-ids"]["found"]
    assert "usermod --add-subuids" in found["user-ids"]["fix"]
    assert found["engine"]["status"] == "ok"

    work = user.workspace()
    for words in (
        ("run", "--image", IMAGE, "--workspace", work, "--agent", "custom", "--", "true"),
        ("setup", "--yes", "--agents", ""),
        ("image", "build", "--agents", ""),
    ):
        done = podbot(user, instead, *words)
        assert (done.returncode, done.stdout) == (1, ""), (words, done.stderr)
        last = done.stderr.splitlines()[-1]
        assert "no range for you in /etc/subuid and /etc/subgid" in last, words
        assert "`sudo usermod --add-subuids" in last, words
    images = podbot(user, instead, "image", "ls", "--json")
    assert (images.returncode, json.loads(images.stdout)) == (0, [])
    assert os.listdir(work) == []


def test_no_newuidmap(user: World) -> None:
    instead = {**dict.fromkeys(RANGES, f"{UID}:100000:65536\n"), "/usr/bin/newuidmap": ""}
    found = checks(podbot(user, instead, "doctor", "--json"))
    assert (found["user-ids"]["status"], found["user-ids"]["found"]) == ("fail", "no newuidmap")
    assert "install" in found["user-ids"]["fix"]
    assert found["engine"]["status"] == "fail"
    done = podbot(user, instead, "run", "--workspace", user.workspace(), "--agent", "custom", "--", "true")
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert "newuidmap" in last
    assert "`podbot doctor` shows the cause" in last
    assert not user.service_pids()
