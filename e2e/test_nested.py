"""Containers inside a session: run, build and the API in the default profile, without access to the host's engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from e2e.harness import INNER, MAKE_INNER, ROOTLESS, World

FUSE = os.access("/dev/fuse", os.R_OK | os.W_OK)


class Inside:
    """A session, and shell scripts that run in it."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    def run(self, script: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return self.world.podbot("exec", self.name, "--", "bash", "-c", script, timeout=timeout)

    def out(self, script: str) -> str:
        done = self.run(script)
        assert done.returncode == 0, f"{script}\n{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def inside(shared_world: World) -> Iterator[Inside]:
    """A session of the default profile with the inner image; network none is the world's setting."""
    with shared_world.session() as name:
        session = Inside(shared_world, name)
        session.out(MAKE_INNER)
        yield session


def test_the_profile_is_the_default_one(inside: Inside) -> None:
    """Everything below works without an added capability and without new privileges."""
    found = inside.world.inspect(inside.name)
    assert "no-new-privileges" in found["HostConfig"]["SecurityOpt"]
    assert found["HostConfig"]["CapAdd"] in ([], None)
    assert found["HostConfig"]["Privileged"] is False
    assert found["HostConfig"]["NetworkMode"] == "none"


def test_run(inside: Inside) -> None:
    assert inside.out(f"podman run --rm {INNER} sh -c 'echo from within'") == "from within\n"
    assert inside.run(f"podman run --rm {INNER} sh -c 'exit 7'").returncode == 7
    assert inside.out(f"podman run --rm --network none {INNER} && podman ps -aq") == ""


def test_a_container_in_the_background(inside: Inside) -> None:
    script = f"""set -e
    podman run -d --name back {INNER} sh -c 'while :; do :; done' >/dev/null
    podman exec back sh -c 'echo in the same'
    podman rm -f -t 0 back >/dev/null; podman ps -aq"""
    assert inside.out(script) == "in the same\n"


def test_build(inside: Inside) -> None:
    script = f"""set -e
    mkdir /tmp/build; cd /tmp/build; echo copied > file
    printf '%s\\n' 'FROM {INNER}' 'COPY file /file' 'RUN echo built > /made' 'CMD cat /file /made' > Containerfile
    podman build -q -t localhost/built . >/dev/null
    podman run --rm localhost/built"""
    assert inside.out(script) == "copied\nbuilt\n"


def test_a_volume_of_the_workspace(inside: Inside) -> None:
    script = f"podman run --rm -v /workspace:/w {INNER} sh -c 'echo from the inner one > /w/inner'"
    inside.out(script)
    path = os.path.join(inside.out("cd /workspace && pwd -P").strip(), "inner")
    with open(path, encoding="utf-8") as file:
        assert file.read() == "from the inner one\n"
    assert (os.stat(path).st_uid, os.stat(path).st_gid) == (os.getuid(), os.getgid())


API = """
import http.client, json, socket, subprocess, time
service = subprocess.Popen(["podman", "system", "service", "--time", "0", "unix:///tmp/inner.sock"])
class Engine(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("/tmp/inner.sock")
def ask(method, path, body=None):
    engine = Engine("engine")
    engine.request(method, "/v4.0.0/libpod" + path, body and json.dumps(body), {"Content-Type": "application/json"})
    return engine.getresponse().read()
for _ in range(1000):
    try:
        ask("GET", "/_ping")
        break
    except OSError:
        time.sleep(0.1)
try:
    made = json.loads(ask("POST", "/containers/create", {"image": "IMAGE", "command": ["sh", "-c", "exit 9"]}))["Id"]
    ask("POST", f"/containers/{made}/start")
    code = int(ask("POST", f"/containers/{made}/wait"))
    ask("DELETE", f"/containers/{made}?force=true")
    images = json.loads(ask("GET", "/images/json"))
    print(json.dumps([code, [name for image in images for name in image["RepoTags"] or []]]))
finally:
    service.terminate()
    service.wait()
"""


def test_the_api_socket(inside: Inside) -> None:
    code, images = json.loads(inside.out(f"python3 -c {shlex.quote(API.replace('IMAGE', INNER))}"))
    assert code == 9
    assert f"{INNER}:latest" in images


@pytest.mark.parametrize("asked", [False, True])
def test_the_inner_engine_uses_vfs_or_the_fuse_device_that_was_asked_for(world: World, asked: bool) -> None:
    driver = "overlay" if asked and FUSE else "vfs"
    script = f"""{MAKE_INNER} >/dev/null
    podman run --rm {INNER} sh -c 'echo works'
    podman info -f '{{{{.Store.GraphDriverName}}}}'
    mkdir /tmp/empty
    printf 'FROM {INNER}\\nRUN echo x > /x\\n' | podman build -q -f - /tmp/empty >/dev/null
    echo built"""
    done = world.podbot(
        "run", "--workspace", world.workspace(), "--agent", "custom", "--", "bash", "-c", script,
        env={"PODBOT_SANDBOX_MOUNT_DEV_FUSE": "true"} if asked else {},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"works\n{driver}\nbuilt\n"), done.stderr
    assert ("/dev/fuse" in done.stderr) == (asked and not FUSE)  # a device that is missing is reported


# --- the host's engine is out of reach -------------------------------------------------------


def test_no_socket_of_the_host_is_inside(inside: Inside) -> None:
    """The only socket file is the guest's, at which it answers podbot. In the network namespace the only socket with a
    name is podbot's end of the guest's connection, with which the sandbox ends; the kernel lists it there.
    """
    sockets = inside.out("find / -type s -not -path '/proc/*' 2>/dev/null || true")
    assert sockets.split() == ["/run/podbot/guest/channel"]
    named = inside.out("awk 'NR > 1 && NF > 7 { print $6, $8 }' /proc/net/unix")
    assert re.fullmatch(r"03 /proc/self/fd/[0-9]+/channel\n", named), named  # 03: connected, so it accepts nothing
    variables = inside.out("env; cat /proc/1/environ | tr '\\0' '\\n'")
    assert "DOCKER_HOST" not in variables
    assert "CONTAINER_HOST" not in variables


def test_the_inner_engine_knows_nothing_of_the_hosts(inside: Inside) -> None:
    """Neither this session's own container nor the image that it runs."""
    assert inside.name not in inside.out("podman ps -a --format '{{.Names}} {{.ID}} {{.Image}}'")
    assert "podbot" not in inside.out("podman images --format '{{.Repository}}'")
    assert inside.run(f"podman inspect {inside.name}").returncode != 0


def test_no_mount_leads_to_the_hosts_store(inside: Inside) -> None:
    """Except for the root's own overlay, no mount comes from the host's directories of images and layers."""
    store = inside.world.podman("info", "--format", "{{.Store.GraphRoot}}").stdout.strip()
    lines = [line.split() for line in inside.out("cat /proc/self/mountinfo").splitlines()]
    sources = {line[4]: line[3] for line in lines}  # mount point -> path within its file system
    assert not [point for point, source in sources.items() if source.startswith(store)]
    workspace = inside.out("cd /workspace && pwd -P").strip()
    assert workspace.startswith(inside.world.root)
    assert sources[workspace].endswith(workspace)
    # The root's mount options name directories only as text: they do not exist inside.
    (root,) = [line for line in lines if line[4] == "/"]
    named = [part for option in root[-1].split(",") for part in option.partition("=")[2].split(":") if "/" in part]
    for path in named:
        assert inside.run(f"test -e {shlex.quote(path)}").returncode == 1, path


def test_an_inner_mount_of_the_root_is_the_sandboxes_own(inside: Inside) -> None:
    """A canary file of the host is in no directory that an inner container can mount."""
    name, text = f"canary-{uuid.uuid4().hex}", uuid.uuid4().hex
    path = os.path.join(inside.world.root, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    inside.out("touch /of-the-sandbox")
    for flags in ("", "--privileged"):
        script = (
            f"podman run --rm {flags} -v /:/host {INNER} sh -c 'test -e /host/of-the-sandbox; echo $?; cat /host{path}'"
        )
        done = inside.run(script)
        assert done.stdout == "0\n"
        assert "No such file" in done.stderr
    assert inside.run(f"find / -xdev -name {name}").stdout == ""
    assert inside.run(f"grep -rsl {text} /tmp /run /var/lib/containers /home /root /mnt").stdout == ""


ESCAPES = {
    "a block device": "mknod /tmp/disk b $(cat /sys/class/block/*/dev | head -1 | tr : ' ')",
    "memory": "mknod /tmp/memory c 1 1",
    "a block device, as root of a new namespace": (
        "unshare -Urm mknod /tmp/disk b $(cat /sys/class/block/*/dev | head -1 | tr : ' ')"
    ),
    "a mount": "mount -t tmpfs none /mnt",
    "a mount namespace": "unshare -m true",
    "the namespaces of process 1": "nsenter -t 1 -m -u -i -n -p true",
    "a disk, in a new namespace": "unshare -Urm mount -t ext4 /dev/$(ls /sys/class/block | head -1) /mnt",
    "/proc, in a new namespace": "unshare -Urmpf mount -t proc proc /mnt && unshare -Urmpf mount -t proc proc /proc",
    "the kernel's settings": "echo 1 > /proc/sys/kernel/panic",
    "sysrq": "echo h > /proc/sysrq-trigger",
    "a cgroup": "mkdir /sys/fs/cgroup/*/escape",
    "the kernel's helper": "unshare -Urm sh -c 'echo /tmp/x > /proc/sys/kernel/core_pattern'",
    "a host's device, nested": f"podman run --rm --device /dev/$(ls /sys/class/block | head -1) {INNER}",
    "the outer processes, nested": f"podman run --rm --pid host {INNER}",
}


@pytest.mark.parametrize("attempt", ESCAPES.values(), ids=ESCAPES)
def test_an_escape_attempt_fails(inside: Inside, attempt: str) -> None:
    done = inside.run(attempt)
    assert done.returncode != 0, done.stdout
    assert done.stderr


def test_a_mount_in_a_new_namespace_stays_in_it(inside: Inside) -> None:
    """Root of its own user namespace may mount a tmpfs; neither the sandbox nor the host sees it."""
    script = "unshare -Urm sh -c 'mount -t tmpfs none /mnt && touch /mnt/x && ls /mnt'; ls /mnt"
    assert inside.out(script) == "x\n"
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert not [line for line in file if " /mnt " in line and "tmpfs" in line]


def test_an_inner_privileged_container_is_no_stronger_than_the_sandbox(inside: Inside) -> None:
    script = f"podman run --rm --privileged {INNER} sh -c 'echo /dev/*; echo x > /proc/sys/kernel/panic'"
    done = inside.run(script)
    assert done.returncode != 0
    devices = done.stdout.split()
    assert not [
        path for path in devices if path.startswith(("/dev/vd", "/dev/sd", "/dev/nvme", "/dev/kvm", "/dev/mem"))
    ]


# --- bad machines ----------------------------------------------------------------------------


def test_doctor_names_devices_that_may_not_be_opened(world: World) -> None:
    asked = {"PODBOT_SANDBOX_MOUNT_DEV_FUSE": "true"}
    found = {check["name"]: check for check in json.loads(world.podbot("doctor", "--json", env=asked).stdout)}
    assert found["fuse"]["status"] == ("ok" if FUSE else "warn")
    assert FUSE or "vfs" in found["fuse"]["meaning"]
    assert ("rootless-network" in found) is ROOTLESS
    if ROOTLESS and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        assert found["rootless-network"]["status"] == "warn"
        assert 'sandbox.network = "none" works' in found["rootless-network"]["meaning"]
    assert not ROOTLESS or found["user-ids"]["status"] == "ok"


def test_files_made_in_the_workspace_belong_to_the_operator(world: World) -> None:
    """Root inside is the user that runs the engine: root, or the ordinary user of a rootless one."""
    workspace = world.workspace()
    world.podbot(
        "run",
        "--workspace",
        workspace,
        "--agent",
        "custom",
        "--",
        "sh",
        "-c",
        "mkdir d; touch d/f; ln -s f d/l",
        check=True,
    )
    for place, directories, files in os.walk(workspace):
        for name in (*directories, *files):
            found = os.lstat(os.path.join(place, name))
            assert (found.st_uid, found.st_gid) == (os.getuid(), os.getgid())
