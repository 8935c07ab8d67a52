"""Attacks from inside that succeeded before, repeated in a default session: each test is one attack."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from e2e.harness import ROOTLESS, World, wait_for
from podbot.container_spec import ContainerSpec, Security
from podbot.engine.endpoint import parse_endpoint
from podbot.engine.podman.private.fit import CAPABILITIES
from podbot.engine.podman.private.own_keyring import aside, join
from podbot.engine.podman.rest import RestEngine
from podbot.errors import CreateFailed, StartFailed
from podbot.launch.seccomp import profile

# System calls by number (x86-64), because the C library would not pass an attacker's arguments.
CALLS = """
import ctypes, errno, json, mmap, os, signal, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
HIGH = 1 << 32  # seccomp sees 64 bits of an argument, the kernel uses 32 of an int
NEWUSER, NEWCGROUP = 0x10000000, 0x02000000

def call(number, *words):
    got = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(w) if isinstance(w, int) else w for w in words))
    return "ok" if got >= 0 else errno.errorcode[ctypes.get_errno()]

def child(action):
    "What action says, in a process of its own; the signal that ended it otherwise."
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        os.write(writing, action().encode() + b"\\n")  # as does a process that the action made
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    os.close(writing)
    return os.read(reading, 99).decode().split()[0] if status == 0 else signal.Signals(status & 127).name

def new(number, *words):
    "A call that makes a process, or leaves for a namespace."
    return child(lambda: call(number, *words))

def int80(number, *words):
    "A 32-bit program's system call, with a pointer to three words as its second argument."
    libc.mmap.restype = ctypes.c_void_p
    page = libc.mmap(None, 4096, 7, 0x62, -1, 0)  # private, anonymous, below 4 GiB
    begin = b"\\x53\\xb8" + struct.pack("<I", number) + b"\\xbb\\x01\\0\\0\\0\\xb9" + struct.pack("<I", page + 2048)
    code = begin + b"\\xcd\\x80\\x5b\\xc3"
    ctypes.memmove(page, code, len(code))
    ctypes.memmove(page + 2048, struct.pack("<3I", *words), 12)
    got = ctypes.CFUNCTYPE(ctypes.c_int)(page)()
    return "ok" if got >= 0 else errno.errorcode[-got]

file = os.open("leased", os.O_CREAT | os.O_RDWR)
"""

REFUSED = {
    "read a keyring": ("call(250, 0, (1 << 32) - 4, 1)", "ENOSYS"),
    "add a key": ("call(248, b'user', b'podbot', b'x', 1, (1 << 32) - 4)", "ENOSYS"),
    "ask for a key": ("call(249, b'user', b'podbot', 0, 0)", "ENOSYS"),
    "a context of asynchronous requests, of which the host has so many": (
        "call(206, 1, struct.pack('Q', 0))",
        "ENOSYS",
    ),
    "unshare the cgroup namespace": ("new(272, NEWUSER | NEWCGROUP)", "EPERM"),
    "clone into a cgroup namespace": ("new(56, NEWUSER | NEWCGROUP | 17, 0, 0, 0, 0)", "EPERM"),
    "clone3 into a cgroup namespace": (
        "new(435, struct.pack('11Q', NEWUSER | NEWCGROUP, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)",
        "ENOSYS",
    ),
    "lease a file": ("call(72, file, 1024, 1)", "EINVAL"),
    "lease a file, lying in the high bits": ("call(72, file, 1024 | HIGH, 1)", "EINVAL"),
    "delegate a file": ("call(72, file, 1040, 0)", "ENOSYS"),
    "a socket to the hypervisor": ("call(41, 40, 1, 0)", "EAFNOSUPPORT"),
    "a socket to the hypervisor, lying in the high bits": ("call(41, 40 | HIGH, 1, 0)", "EAFNOSUPPORT"),
    "a socket to the hypervisor, as a 32-bit program": ("child(lambda: int80(102, 40, 1, 0))", "SIGSYS"),
    "a socket of the kernel's ciphers": ("call(41, 38, 5, 0)", "EAFNOSUPPORT"),
    "a socket of the audit log": ("call(41, 16, 3, 9)", "EINVAL"),
    "a socket of the audit log, lying in the high bits": ("call(41, 16, 3, 9 | HIGH)", "EINVAL"),
}
ALLOWED = {
    "a user namespace": "new(272, NEWUSER)",
    "a network namespace, as nested Podman and browsers make it": "new(272, NEWUSER | 0x40000000)",
    "a process in a user namespace": "new(56, NEWUSER | 17, 0, 0, 0, 0)",
    "whether a file is leased": "call(72, file, 1025, 0)",
    "a copy of a descriptor": "call(72, file, 1030, 0)",
    "a lock of an open file": "call(72, file, 37, struct.pack('hhqqi', 1, 0, 0, 0, 0))",
    "a pipe's size": "call(72, os.pipe()[0], 1031, 65536)",
    "a unix socket": "call(41, 1, 1, 0)",
    "a unix socket, with garbage in the high bits": "call(41, 1 | HIGH, 1, 0)",
    "an internet socket": "call(41, 2, 1, 0)",
    "an internet socket of version 6": "call(41, 10, 1, 0)",
    "a socket of the routing table": "call(41, 16, 3, 0)",
    "a socket of the kernel's events": "call(41, 16, 3, 15)",
}


@pytest.fixture(scope="module", params=["hardened", "minimal"])
def answers(shared_world: World, request: pytest.FixtureRequest) -> dict[str, str]:
    """The results of all calls above in a session of the profile."""
    calls = {name: code for name, (code, _) in REFUSED.items()} | ALLOWED
    table = ", ".join(f"{name!r}: {code}" for name, code in calls.items())
    script = f"{CALLS}\nprint(json.dumps({{{table}}}))"
    done = shared_world.agent("python3", "-c", script, env={"PODBOT_SANDBOX_PROFILE": request.param}, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("attempt", REFUSED)
def test_a_call_that_affected_the_host_is_refused(answers: dict[str, str], attempt: str) -> None:
    assert answers[attempt] == REFUSED[attempt][1]


@pytest.mark.parametrize("call", ALLOWED)
def test_a_call_that_programs_need_works(answers: dict[str, str], call: str) -> None:
    assert answers[call] == "ok"


@pytest.fixture(scope="module")
def inside(shared_world: World) -> Iterator[str]:
    """The name of a session with small limits."""
    environ = {"PODBOT_SANDBOX_PIDS": "100", "PODBOT_SANDBOX_MEMORY": "512m"}
    shared_world.env.update(environ)
    try:
        with shared_world.session() as name:
            yield name
    finally:
        for key in environ:
            del shared_world.env[key]


def run(world: World, name: str, script: str) -> tuple[int, str]:
    done = world.podbot("exec", name, "--", "bash", "-c", script)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("controller", ["memory", "pids"])
def test_a_sandbox_cannot_raise_its_own_limits(shared_world: World, inside: str, controller: str) -> None:
    """On cgroup v1 root of a new user and cgroup namespace mounted the hierarchy and overwrote its limits."""
    mount = f"mkdir -p /tmp/c; mount -t cgroup -o {controller} none /tmp/c || mount -t cgroup2 none /tmp/c"
    for flags in ("-Urm", "-UrmC"):
        status, words = run(shared_world, inside, f"unshare {flags} sh -c {shlex.quote(mount)}")
        assert status != 0, words


def test_the_kernel_also_filters_the_first_process(world: World) -> None:
    script = "grep Seccomp: /proc/1/status /proc/self/status"
    assert [line.split()[-1] for line in world.agent("sh", "-c", script).stdout.splitlines()] == ["2", "2"]


PROBE_KEYS = """import ctypes
libc = ctypes.CDLL(None)
print(libc.syscall(250, 0, -3, 0), libc.syscall(250, 10, -3, b"user", b"podbot-e2e", 0))
"""


def test_sandboxes_share_a_keyring_that_is_not_the_operators(own_world: World) -> None:
    """Issue 29.8: each had one of its own, of which a user may have few. Of podbot's profiles only one allows keyctl.

    ADR 0055. The operator's keyring is that of a thread here, which starts podbot and with it the engine's service.
    """
    agent = ("python3", "-c", PROBE_KEYS)

    def sessions() -> tuple[str, list[str]]:
        assert join()
        libc = ctypes.CDLL(None)
        assert libc.syscall(248, b"user", b"podbot-e2e", b"x", 1, -3) > 0
        here = subprocess.run([sys.executable, "-c", PROBE_KEYS], capture_output=True, text=True, check=True).stdout
        flags = ("--profile", "privileged")
        return here, [own_world.agent(*agent, flags=flags, check=True).stdout for _ in range(2)]

    here, inside = aside(sessions)
    (own, key), (shared, found) = here.split(), inside[0].split()
    assert int(key) > 0
    assert inside[1] == inside[0], "the same keyring"
    assert (shared != own, found) == (True, "-1")
    assert own_world.agent(*agent, check=True).stdout == "-1 -1\n"  # podbot's own seccomp profile


def test_programs_that_open_the_audit_log_continue_without_it(world: World) -> None:
    done = world.agent("sh", "-c", "useradd -M somebody && id -u somebody")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", [None, "{", '{"defaultAction": "NONE"}'])
def test_an_engine_that_cannot_read_the_profile_starts_nothing(world: World, tmp_path: Path, text: str | None) -> None:
    """This shows that the engine reads it, although inspect does not show it."""
    world.podbot("ps", check=True)  # starts the service
    path = tmp_path / "profile.json"
    if text is not None:
        path.write_text(text)
    spec = ContainerSpec("unread", world.image, "test", {}, (), Security(seccomp=str(path)), network="none")
    engine = RestEngine(parse_endpoint(os.path.join(world.runtime, ".engine", "podman.sock"), "test"))
    with contextlib.closing(engine):
        with pytest.raises((CreateFailed, StartFailed)):
            engine.start(engine.create(spec))
        engine.remove("unread")


def test_the_profile_is_podbots_own_file_and_rewritten_when_changed(world: World) -> None:
    plan = json.loads(world.agent("true", flags=("--dry-run", "--json"), check=True).stdout)
    path = plan["container"]["security"]["seccomp"]
    assert path.startswith(world.env["HOME"])
    world.agent("true", check=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("{}")
    world.agent("true", check=True)
    with open(path, encoding="utf-8") as file:
        assert file.read() == profile()


def test_a_sandbox_writes_no_log_on_the_host(shared_world: World, inside: str) -> None:
    """Before, process 1's stdout and stderr went into a file of the engine's, or the journal, without a limit."""
    script = "for fd in 1 2; do timeout 20 head -c 50000000 /dev/zero > /proc/1/fd/$fd || exit 1; done"
    status, words = run(shared_world, inside, script)
    assert status == 0, words
    found = shared_world.inspect(inside)
    assert found["HostConfig"]["LogConfig"]["Type"] == "none"
    assert sum(file.stat().st_size for file in Path(found["OCIConfigPath"]).parent.rglob("*")) < 1_000_000


# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, SETFCAP, by number
KEPT = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31))


def test_no_containers_conf_adds_capabilities(own_world: World) -> None:
    """A containers.conf can allow every container to make devices, read others' memory or change the network."""
    own_world.podbot("ps", check=True)  # writes the configuration that works here
    conf = os.path.join(own_world.root, "generous.conf")
    settings: dict[str, dict[str, object]] = {"containers": {}}
    if fitted := own_world.podman_env().get("CONTAINERS_CONF"):
        with open(fitted, "rb") as file:
            settings = tomllib.load(file)
    settings["containers"]["default_capabilities"] = [*CAPABILITIES, "MKNOD", "NET_ADMIN", "NET_RAW", "SYS_PTRACE"]
    with open(conf, "wb") as written:
        tomli_w.dump(settings, written)
    for pid in own_world.service_pids():
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not own_world.service_pids(), what="the service to end")
    script = "grep -h -E 'Cap(Eff|Bnd|Inh|Amb)' /proc/self/status /proc/1/status"
    done = own_world.agent("sh", "-c", script, env={"CONTAINERS_CONF": conf}, check=True)
    masks = {int(line.split()[1], 16) for line in done.stdout.splitlines()}
    assert masks <= {KEPT, 0}, done.stdout


def test_root_has_the_capability_that_nested_containers_need(world: World) -> None:
    """Without SETFCAP root cannot map itself into a user namespace, and no container starts inside."""
    assert world.agent("unshare", "-Ur", "true").returncode == 0


def test_a_planted_file_capability_has_no_effect_on_the_host_of_a_rootless_engine(world: World) -> None:
    """The kernel binds it to the sandbox's root. On a rootful engine this is the host's: see the security model."""
    workspace = world.workspace()
    plant = "cp /bin/cat reader && setcap cap_dac_read_search+ep reader && getcap reader"
    assert "cap_dac_read_search" in world.agent("sh", "-c", plant, workspace=workspace, check=True).stdout
    if ROOTLESS:
        done = subprocess.run([f"{workspace}/reader", "/etc/shadow"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert "Permission denied" in done.stderr
