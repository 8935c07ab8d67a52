"""Images on the real engine: the content of podbot's, what it must not contain, how a build ends, and doctor's
report on others.

Builds use names of their own and a store that is already filled: all but three find most of their layers.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import uuid
from collections.abc import Iterator

import pytest

from e2e.harness import World, processes, small_disk, wait_for
from podbot.agents.registry import agent
from podbot.api.engines import driver_of, open_engine
from podbot.api.images import build_context
from podbot.config.load import load_config
from podbot.config.models import LoadOptions
from podbot.events import ignore
from podbot.images.newest import newest_versions
from podbot.images.recipe import load_recipe

RECIPE = load_recipe()
AGENTS = tuple(RECIPE.agents)


@pytest.fixture
def tag(world: World) -> Iterator[str]:
    """A name for the test's own image, which is removed together with the layers that a build left for the next one."""
    name = f"localhost/podbot-e2e-{uuid.uuid4().hex[:8]}:1"
    before = _nameless(world)
    yield name
    world.podman("rmi", "-f", name)
    if left := _nameless(world) - before:
        world.podman("rmi", *left)  # without force: images that another build uses stay


def _nameless(world: World) -> set[str]:
    return set(world.podman("images", "-q", "--filter", "dangling=true").stdout.split())


@contextlib.contextmanager
def idle(world: World, image: str) -> Iterator[str]:
    """A container without network, in which commands can be run.

    Not `podman run`: it waits until its monitor process is gone, which takes 20 s where the machine's init is slow to
    reap it.
    """
    started = world.podman("run", "-d", "--network", "none", image, "sleep", "infinity")
    assert started.returncode == 0, started.stderr
    name = started.stdout.strip()
    try:
        yield name
    finally:
        world.podman("rm", "-f", "-t", "0", name)


def inside(world: World, image: str, *words: str, user: str = "root") -> str:
    """The output of a command in a container without network."""
    with idle(world, image) as name:
        done = world.podman("exec", "--user", user, name, *words, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def derived(world: World, tag: str, script: str, *changes: str) -> None:
    """An image made from the suite's image by a shell script."""
    flags = [word for change in changes for word in ("--change", change)]
    with idle(world, world.image) as name:
        for words in (("exec", name, "sh", "-ec", script), ("commit", "-q", *flags, name, tag)):
            done = world.podman(*words)
            assert done.returncode == 0, done.stderr


def checks(world: World, image: str) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in json.loads(world.podbot("doctor", "--json", "--image", image).stdout)}


# --- what is in it --------------------------------------------------------------------------------


def test_a_second_build_finds_every_layer(world: World, tag: str) -> None:
    words = ("image", "build", "--agents", ",".join(AGENTS), "--tag", tag)
    world.podbot(*words, timeout=600, check=True)
    done = world.podbot("-v", *words, check=True)
    lines = [line.removeprefix("podbot: ") for line in done.stderr.splitlines()]
    steps = [line for line in lines if re.match(r"STEP \d+/\d+: (?!FROM)", line)]
    assert len(steps) == len([line for line in lines if line.startswith("--> Using cache")]) > 10
    assert "every layer existed already" in done.stdout


def test_ls_and_labels_list_the_content(world: World) -> None:
    listed = {image["image"]: image for image in json.loads(world.podbot("image", "ls", "--json", check=True).stdout)}
    found = listed[world.image]
    assert set(found["agents"]) == set(AGENTS)
    for name, version in found["agents"].items():
        assert re.search(rf"\b{re.escape(version)}\b", inside(world, world.image, name, "--version")), name
    row = next(line for line in world.podbot("image", "ls").stdout.splitlines() if line.startswith(world.image))
    assert all(f"{name} {version}" in row for name, version in found["agents"].items())


@pytest.mark.parametrize("user", ["root", "agent"])
def test_both_users_can_work(world: World, user: str) -> None:
    script = (
        "id -un; git --version; node --version; npm --version >/dev/null; python3 -c 'print(1)'; rg --version | head -1"
        "; for program in make jq nano; do command -v $program >/dev/null || exit 1; done"
        "; cd /work && touch made $HOME/made && echo written"
    )
    name, git, node, python, rg, written = inside(world, world.image, "sh", "-c", script, user=user).splitlines()
    assert (name, python, written) == (user, "1", "written")
    assert git.startswith("git version")
    assert int(node.removeprefix("v").split(".")[0]) >= 22
    assert rg.startswith("ripgrep")


# Sends a hello to each command in its arguments, all at once, and prints the first line of each answer.
HELLO = """
import subprocess, sys
hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\\n'
running = [subprocess.Popen(c.split(), stdin=-1, stdout=-1, stderr=-3) for c in sys.argv[1:]]
for child in running:
    child.stdin.write(hello)
    child.stdin.flush()
for child in running:
    print(child.stdout.readline().decode().strip(), flush=True)
    child.kill()
"""


def test_adapters_answer_and_contain_no_agent_of_their_own(world: World) -> None:
    commands = [" ".join(agent(name).commands["acp"]) for name in AGENTS if "acp" in agent(name).commands]
    answers = inside(world, world.image, "timeout", "60", "python3", "-c", HELLO, *commands).splitlines()
    assert [json.loads(answer)["result"]["protocolVersion"] for answer in answers] == [1] * len(commands)
    script = "find /usr/local/lib/node_modules -size +50M -type f -links 1 -o -size +50M -type f -links 2"
    large = inside(world, world.image, "sh", "-c", script)
    assert "@agentclientprotocol" not in large
    assert "codex" in large


def test_installing_left_no_state(world: World) -> None:
    script = "ls -A /root /home/agent /tmp /var/lib/apt/lists; find / -xdev -name '.npm' -o -xdev -name '_cacache'"
    left = {line for line in inside(world, world.image, "sh", "-c", script).split() if not line.endswith(":")}
    assert left <= {".bashrc", ".profile", ".bash_logout", "auxfiles", "lock", "partial"}, left


# --- what must not be in it -----------------------------------------------------------------------


def test_the_machines_settings_are_not_in_the_image(world: World, tag: str) -> None:
    canary = f"canary-{uuid.uuid4().hex}"
    bundle = os.path.join(world.root, "canary.crt")
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", bundle)
    with open(bundle, "a", encoding="utf-8") as file:
        file.write(f"\n# {canary}\n")
    no_proxy = ",".join(filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), f"{canary}.invalid"]))
    env = {"SSL_CERT_FILE": bundle, "NO_PROXY": no_proxy, "no_proxy": no_proxy}
    words = ("image", "build", "--no-cache", "--agents", "gemini", "--tag", tag)
    world.podbot(*words, env=env, timeout=600, check=True)
    shown = world.podman("inspect", tag).stdout + world.podman("history", "--no-trunc", tag).stdout
    assert "gemini" in shown
    assert canary not in shown
    name = world.podman("create", tag, "true").stdout.strip()
    try:
        found, total = _grep_files(world, name, canary.encode())
    finally:
        world.podman("rm", "-f", name)
    assert found == 0
    assert total > 100_000_000
    script = (
        "ls -A /run/host /root/.npmrc /etc/npmrc /usr/local/etc/npmrc /etc/pip.conf /root/.config/pip 2>/dev/null; env"
    )
    shown = inside(world, tag, "sh", "-c", script)
    assert not re.search(r"(?i)proxy|cert|npmrc|pip|ca\.crt", shown), shown


def _grep_files(world: World, container: str, needle: bytes) -> tuple[int, int]:
    """(occurrences, bytes) in a container's whole file system."""
    found, total, tail = 0, 0, b""
    words = ["podman", "export", container]
    with subprocess.Popen(words, env=world.podman_env(), stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        while chunk := child.stdout.read(1 << 20):
            found += (tail + chunk).count(needle)
            tail = chunk[-len(needle) + 1 :]
            total += len(chunk)
    assert child.returncode == 0
    return found, total


def test_settings_by_argument_reach_the_steps(world: World, tag: str) -> None:
    words = ("--build-arg", "PIP_INDEX_URL=http://127.0.0.1:9/simple", "--no-cache", "--agents", "", "--tag", tag)
    done = world.podbot("image", "build", *words, timeout=300)
    assert done.returncode == 1
    assert "Node" in done.stderr
    assert "Traceback" not in done.stderr
    assert world.podman("image", "exists", tag).returncode == 1


# --- how a build ends -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_does_not_change_the_name(world: World, tag: str, number: signal.Signals) -> None:
    world.podman("tag", world.image, tag)
    before = world.podman("image", "inspect", "--format", "{{.Id}}", tag).stdout
    containers = _build_containers(world)
    log = os.path.join(world.root, "build.log")
    with open(log, "wb") as file:
        child = world.start("image", "build", "--no-cache", "--agents", "gemini", "--tag", tag, stderr=file)
    wait_for(lambda: ": Node" in _text(log), what="the Node step", child=child)
    child.send_signal(number)
    child.communicate(timeout=30)
    assert child.returncode != 0
    assert world.podman("image", "inspect", "--format", "{{.Id}}", tag).stdout == before
    wait_for(lambda: not _installing(), what="the step to end")
    wait_for(lambda: _build_containers(world) <= containers, what="the engine to sweep up", seconds=60)
    assert "Traceback" not in _text(log)


def _build_containers(world: World) -> set[str]:
    """The working containers of a build, one for each step."""
    return set(world.podman("ps", "-a", "-q", "--external", "--filter", "status=unknown").stdout.split())


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _installing() -> list[str]:
    return [command for _, command in processes(own=True) if "/tmp/node/bin/pip install" in command]


def test_a_full_disk(own_world: World) -> None:
    store = os.path.join(own_world.root, "store")
    saved = os.path.join(own_world.root, "base.tar")
    subprocess.run(["podman", "save", "-q", "-o", saved, RECIPE.base], check=True)  # from the operator's store
    with open(own_world.storage_conf, "w", encoding="utf-8") as file:
        file.write(f'[storage]\ndriver = "overlay"\ngraphroot = "{store}/graph"\nrunroot = "{store}/run"\n')
    with small_disk(own_world, store, "290m"):
        assert own_world.podman("load", "-q", "-i", saved).returncode == 0
        done = own_world.podbot("image", "build", "--agents", "", timeout=300)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith("podbot: no space left in the engine's storage: cannot build ")
        assert "podman image prune" in last
        assert own_world.podman("image", "exists", RECIPE.image).returncode == 1
        assert json.loads(own_world.podbot("image", "ls", "--json", check=True).stdout) == []
        assert not own_world.podman("ps", "-a", "-q", "--external").stdout


# --- images of others -----------------------------------------------------------------------------


def test_rm_refuses_an_image_that_a_session_uses_and_removes_it_afterwards(world: World, tag: str) -> None:
    derived(world, tag, "true")
    with world.session(flags=("--image", tag)) as name:
        used = world.podbot("image", "rm", tag)
        assert (used.returncode, f"{tag} was not removed: {name} uses it" in used.stderr) == (1, True), used.stderr
    assert world.podbot("image", "rm", tag, check=True).stdout == f"{tag}\n"
    missing = world.podbot("image", "rm", tag)
    assert (missing.returncode, "it is not on this engine" in missing.stderr) == (1, True)
    assert world.podman("image", "exists", tag).returncode == 1
    assert world.podman("image", "exists", world.image).returncode == 0, "it shares layers, and stays"


def test_rm_all_lists_replaced_images_and_asks(world: World, tag: str) -> None:
    """Other tests build on this engine, so nothing is removed here but the images of this test."""
    other = f"localhost/podbot-sandbox:0.0.{uuid.uuid4().int % 10**9}"
    derived(world, tag, "true")
    try:
        derived(world, other, "true")
        replaced = world.podman("image", "inspect", "--format", "{{.Id}}", other).stdout.strip()
        derived(world, other, "echo > /new")
        asked = world.podbot("image", "rm", "--all")
        assert (asked.returncode, "add --yes" in asked.stderr) == (2, True), asked.stderr
        assert f"  - {replaced[:12]} (" in asked.stderr
        assert f"  - {other} (" in asked.stderr
        assert world.image not in asked.stderr, "what the configuration names, and this podbot builds, stays"
        assert tag not in asked.stderr, "a name that podbot does not give is the operator's"
        assert world.podbot("image", "rm", replaced[:12], other, check=True).stdout == f"{replaced[:12]}\n{other}\n"
        assert [world.podman("image", "exists", image).returncode for image in (replaced, other)] == [1, 1]
    finally:
        world.podman("rmi", "-f", other)


def test_an_agent_that_is_not_in_the_image(world: World, tag: str) -> None:
    derived(world, tag, "true", "LABEL io.podbot.agents=claude=1")
    done = world.podbot("--image", tag, "run", "--workspace", world.workspace(), "--agent", "gemini")
    assert (done.returncode, done.stdout) == (1, "")
    assert "was built without gemini. `podbot setup gemini --yes`" in done.stderr
    assert world.agent("true", flags=("--image", tag)).returncode == 0


def test_npm_says_which_versions_are_the_newest(world: World) -> None:
    """Asked in a build's step, with the machine's proxies; nothing of the question is left on the engine."""
    before = world.podman("images", "-a", "-q").stdout
    config = load_config(LoadOptions(environ=world.env))
    with open_engine(config, environ=world.env) as engine:
        context = build_context(engine, driver_of(config).machine(world.env), world.env, ignore)
        packages = {name: build.package for name, build in RECIPE.agents.items()}
        found = newest_versions(context, world.image, packages)
    assert found.keys() == packages.keys()
    assert all(re.match(r"[0-9]+\.[0-9]+", version) for version in found.values()), found
    assert world.podman("images", "-a", "-q").stdout == before


def test_a_version_that_is_there_is_remembered_without_a_build(own_world: World) -> None:
    version = RECIPE.agents["claude"].version
    done = own_world.podbot("image", "update", f"claude={version}", check=True)
    assert "nothing was built" in done.stdout
    assert f'versions = {{ claude = "{version}" }}' in own_world.podbot("config", "show", check=True).stdout


def test_doctor_reports_no_problem_with_podbots_own_image(world: World) -> None:
    found = checks(world, world.image)
    names = ("start", "shell", "git", "agent", "node", "python3", "inner-podman", "ca-certificates")
    assert {name: found[name]["status"] for name in names} == dict.fromkeys(names, "ok")
    assert "other-agents" not in found


def test_doctor_lists_what_an_image_lacks(world: World, tag: str) -> None:
    script = (
        "rm /usr/bin/git /usr/local/bin/claude /usr/bin/python3 /usr/bin/fuse-overlayfs /usr/local/bin/node;"
        " rm -r /etc/ssl/certs; cd /usr/local/bin; printf '#!/bin/sh\\necho v18.20.4\\n' > node; chmod 755 node"
    )
    derived(world, tag, script)
    found = checks(world, tag)
    wanted = {
        "git": "fail", "agent": "fail", "node": "fail", "ca-certificates": "fail", "python3": "warn",
        "inner-podman": "warn",
    }  # fmt: skip
    assert {name: found[name]["status"] for name in wanted} == wanted
    assert found["node"]["found"].startswith("v18.20.4")
    assert world.podbot("doctor", "--image", tag).returncode == 1


def test_doctor_on_an_image_in_which_nothing_runs(world: World, tag: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    path = os.path.join(world.root, "empty.tar")
    with open(path, "wb") as file:
        file.write(buffer.getvalue())
    assert world.podman("import", path, tag).returncode == 0
    found = checks(world, tag)
    assert found["start"]["status"] == "fail"
    assert "sleep" in found["start"]["found"] + found["start"]["meaning"]
    assert "podbot-doctor-" not in world.podman("ps", "-a").stdout


def test_doctor_on_an_image_that_does_not_exist(world: World) -> None:
    found = checks(world, "localhost/no-such-image:1")
    fix = "build localhost/no-such-image:1 again, or choose another image"
    assert (found["image"]["status"], found["image"]["fix"]) == ("fail", fix)
