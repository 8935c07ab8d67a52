"""What a workspace's commands may do: read from inside, and tried. ``test_library_sandbox`` has the profile itself."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import World, wait_for
from e2e.suites import Tools, opened
from podbot.events import Event
from podbot.shell.jobs import ShellJob

USER = 65534
PIDS, MEMORY = 512, 1 << 30
WRITABLE = {"/workspace", "/tmp", "/dev/shm", "/dev/mqueue"}

LIMITS = """
import json, os
def read(*paths):
    for path in paths:
        try: return open("/sys/fs/cgroup/" + path).read().split()
        except OSError: pass
print(json.dumps({
    "pids": read("pids.max", "pids/pids.max"),
    "memory": read("memory.max", "memory/memory.limit_in_bytes"),
    "swap": read("memory.swap.max", "memory/memory.memsw.limit_in_bytes"),
    "cpu": read("cpu.max") or read("cpu/cpu.cfs_quota_us") + read("cpu/cpu.cfs_period_us"),
}))
"""
FORKS = """
import os, signal
children = []
try:
    while len(children) < 2000:
        if not (child := os.fork()):
            signal.pause()
        children.append(child)
except OSError as error: print(len(children), error.errno)
for child in children: os.kill(child, signal.SIGKILL)
"""
FULL_OF_PROCESSES = """
import os, signal, time
try:
    while True:
        if not os.fork(): signal.pause()
except OSError: open("full", "w").close()
signal.pause()
"""
# Memory that belongs to no process: the kernel ends others for it. At 1,010 MiB of 1 GiB nothing was ended (measured).
FULL_OF_MEMORY = """
import mmap, os, signal
file = os.memfd_create("x")
os.truncate(file, 1010 << 20)
mapped = mmap.mmap(file, 0)
for offset in range(0, 1010 << 20, 4096): mapped[offset] = 1
open("full", "w").close()
signal.pause()
"""
EVERY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ls", {}), ("grep", {"pattern": "x"}), ("read_file", {"file_path": "kept"}), ("glob", {"pattern": "*"}),
    ("shell_execute", {"command": ["true"]}), ("evaluate_python", {"code": "print(1)"}),
)  # fmt: skip
SAYS = (
    "The next call starts it again", "The next call starts a new one", "Resource temporarily unavailable",
    "ended with exit code 126", "Cannot allocate memory", "lack of memory", "memory was used up",
)  # fmt: skip
CONNECTS = """
import json, socket, sys
def tried(family, kind, address):
    try:
        with socket.socket(family, kind) as out:
            out.settimeout(3)
            out.connect(address) if kind == socket.SOCK_STREAM else out.sendto(b"x", address)
    except OSError as error: return error.errno or type(error).__name__
    return "connected"
words = json.loads(sys.argv[1])
found = {}
for host in words["hosts"]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found[host] = tried(family, socket.SOCK_STREAM, (host, words["port"]))
    found[f"udp {host}"] = tried(family, socket.SOCK_DGRAM, (host, words["port"]))
found["abstract"] = tried(socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + words["abstract"])
found["packet"] = tried(getattr(socket, "AF_PACKET", 17), socket.SOCK_RAW, ("lo", 0))
try: found["name"] = socket.getaddrinfo("example.org", 80) and "resolved"
except OSError: found["name"] = "none"
print(json.dumps(found))
"""
OTHERS = r"""
import json, os, stat, sys
words = json.loads(sys.argv[1])
sockets, seen = [], []
for base, directories, names in os.walk("/"):
    if base in ("/proc", "/sys"):
        directories[:] = []
        continue
    for name in names:
        path = os.path.join(base, name)
        try: mode = os.lstat(path).st_mode
        except OSError: continue
        if stat.S_ISSOCK(mode): sockets.append(path)
    seen += [os.path.join(base, name) for name in names if name == words["file"]]
for entry in os.listdir("/proc"):
    if entry.isdigit():
        for path in (f"/proc/{entry}/root/{words['path']}", f"/proc/{entry}/cwd/{words['file']}"):
            if os.path.lexists(path): seen.append(path)
found = {path: os.path.lexists(path) for path in words["paths"]}
print(json.dumps({"sockets": sorted(sockets), "seen": seen, "found": found}))
"""


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """What the starts of the workspace reported."""
    return []


@pytest.fixture(scope="module")
def tools(shared_world: World, events: list[Event]) -> Iterator[Tools]:
    with opened(shared_world, emit=events.append) as found:
        found.workspace.start()
        yield found


@pytest.fixture(scope="module")
def enforced(tools: Tools, events: list[Event]) -> bool:
    """Whether the engine enforces limits: a rootless one with cgroup v1 does not. Then a warning names each of them."""
    unmet = {event.message for event in events if event.kind == "limit.unmet"}  # the same at each start
    assert len(unmet) <= 1
    assert all("sandbox.memory = 1024m" in message for message in unmet)
    return not unmet


def asked(tools: Tools, program: str, **words: object) -> dict[str, object]:
    """The JSON that a program inside prints, which gets ``words`` as JSON."""
    import json

    found: dict[str, object] = json.loads(tools.python(program, json.dumps(words)))
    return found


# --- who the commands are --------------------------------------------------------------------------


def test_every_process_is_an_unprivileged_user_without_a_capability(tools: Tools) -> None:
    tools.value("ls")  # starts the files worker, which is one of them
    text = tools.run("cat /proc/[0-9]*/status 2>/dev/null")
    fields: dict[str, set[str]] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name, set()).add(" ".join(value.split()))
    assert fields["Uid"] == fields["Gid"] == {" ".join([str(USER)] * 4)}
    assert fields["Groups"] <= {str(USER), ""}
    assert {value for name in fields if name.startswith("Cap") for value in fields[name]} == {"0" * 16}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ({"1"}, {"2"})
    assert len(text.split("Uid:")) >= 4  # the init, the guest, the worker, cat


def test_no_program_raises_the_user(tools: Tools) -> None:
    setuid = tools.run("find / -xdev -perm -4000 -type f 2>/dev/null || true").split()
    for program in (path for path in setuid if os.path.basename(path) in {"su", "newgrp", "mount", "chsh"}):
        found = tools.value("shell_execute", command=["sh", "-c", f"{program} -c id </dev/null; id -u"])
        assert "uid=0" not in found.stdout
    tools.run("cp /usr/bin/id mine && chmod 6755 mine")
    assert tools.run("./mine -u; ./mine -ru; rm mine").split() == [str(USER)] * 2
    for line in (
        "unshare -Ur id -u",
        "mount -t tmpfs x /tmp",
        "chown 0 .",
        "mknod d b 8 0",
        "chroot /tmp",
        "hostname x",
    ):
        found = tools.value("shell_execute", command=["sh", "-c", f"{line}; exit 1"])
        assert "uid=0" not in found.stdout, line
        if not line.startswith("unshare"):
            assert tools.value("shell_execute", command=["sh", "-c", f"{line} 2>/dev/null"]).exit_code != 0, line


# --- network ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, str, list[bytes]]]:
    """A port on all of this host's addresses and an abstract socket: (port, name, what connected)."""
    name, accepted = f"podbot-e2e-{os.getpid()}", list[bytes]()
    with socket.create_server(("", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()

        def accept(listener: socket.socket) -> None:
            with contextlib.suppress(OSError):
                listener.accept()[0].close()
                accepted.append(b"connected")

        for listener in (tcp, abstract):
            threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield tcp.getsockname()[1], name, accepted
        for listener in (tcp, abstract):
            listener.shutdown(socket.SHUT_RDWR)


def test_there_is_no_network(tools: Tools) -> None:
    assert tools.run("ls /sys/class/net; tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo", "lo"]
    assert tools.run("tail -n +2 /proc/net/route") == ""
    hosts = ["127.0.0.1", "::1", "10.0.2.2", "10.88.0.1", "169.254.169.254", "192.0.2.1", "2001:db8::1"]
    with contextlib.suppress(OSError):
        hosts += {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), 1)}
    with listening() as (port, name, accepted):
        found = asked(tools, CONNECTS, hosts=hosts, port=port, abstract=name)
        assert accepted == []
    loopback = {"udp 127.0.0.1", "udp ::1"}  # nobody hears it
    assert {key for key, value in found.items() if value in {"connected", "resolved"}} <= loopback, found
    assert not any(isinstance(value, str) and "imeout" in value for value in found.values()), found


# --- files -----------------------------------------------------------------------------------------


def test_only_the_workspace_and_memory_can_be_written(tools: Tools) -> None:
    mounts = [line.split(" ") for line in tools.run("cat /proc/mounts").splitlines()]  # a source may be empty
    options = {words[1]: words[3] for words in mounts}
    kinds = {words[1]: words[2] for words in mounts}
    assert "ro" in options["/"].split(",")
    assert kinds["/tmp"] == kinds["/dev/shm"] == "tmpfs"
    assert {"nosuid", "nodev"} <= set(options["/tmp"].split(",")) & set(options["/workspace"].split(","))
    writable = tools.run("find / -path /proc -prune -o -type d -writable -print 2>/dev/null || true").split()
    assert {path for path in writable if not path.startswith("/workspace/")} == WRITABLE
    for path in ("/x", "/etc/x", "/usr/bin/x", "/root/x", "/run/x", "/var/tmp/x", "/home/x", "/run/podbot/guest/x"):
        found = tools.value("shell_execute", command=["sh", "-c", f"echo x > {path}"])
        assert found.exit_code != 0, path


def test_memory_files_are_bounded_and_end_with_the_container(tools: Tools) -> None:
    found = tools.value(
        "shell_execute", command=["sh", "-c", "head -c 600m /dev/zero > /tmp/x; stat -c %s /tmp/x; rm /tmp/x"]
    )
    assert "No space left" in found.stderr
    assert int(found.stdout) == 512 << 20
    tools.run("echo x > /tmp/kept; echo y > kept")
    tools.workspace.stop()
    assert tools.run("ls /tmp; cat kept") == "y\n"


def test_nothing_of_another_workspace_or_session_is_reached(tools: Tools, shared_world: World) -> None:
    with opened(shared_world) as other:
        other.value("write_file", file_path="e2e-secret", content="SECRET")
        other.run("cp e2e-secret /tmp; mkdir -p own; exec 3<own; true")
        host = [tools.workspace.directory, other.workspace.directory, shared_world.root, shared_world.runtime,
                "/run/podman", "/var/run/docker.sock", "/run/user", "/var/lib/containers"]  # fmt: skip
        assert os.path.exists(f"{other.workspace.directory}/e2e-secret")
        found = asked(tools, OTHERS, file="e2e-secret", path="workspace/e2e-secret", paths=host)
        assert found["seen"] == []
        assert {path for path, is_there in found["found"].items() if is_there} == set()  # type: ignore[attr-defined]
        # Its own guest's socket, of its own user, and nobody else's.
        sockets = found["sockets"]
        assert isinstance(sockets, list)
        assert all(path.startswith("/run/podbot/guest/") for path in sockets), sockets
        mine, others = (
            {mount["Source"] for mount in shared_world.inspect(each.workspace.name)["Mounts"]}
            for each in (tools, other)
        )
        assert mine & others == set()
    for path in (Path(tools.workspace.directory).parent, Path(tools.workspace.directory).parent.parent):
        assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o700, os.getuid())


# --- limits ----------------------------------------------------------------------------------------


def test_the_limits_are_those_of_the_cgroup(tools: Tools, enforced: bool, shared_world: World) -> None:
    if not enforced:
        return  # the fixture has checked the warning
    found = asked(tools, LIMITS)
    assert (found["pids"], found["memory"]) == ([str(PIDS)], [str(MEMORY)])
    assert found["swap"] in (["0"], [str(MEMORY)], None)  # on cgroup v1 memory and swap together; without swap no file
    quota, period = map(int, found["cpu"])  # type: ignore[call-overload]
    assert quota == period
    asked_for = shared_world.inspect(tools.workspace.name)["HostConfig"]
    assert (asked_for["Memory"], asked_for["MemorySwap"], asked_for["PidsLimit"]) == (MEMORY, MEMORY, PIDS)
    assert asked_for["NanoCpus"] == 1_000_000_000


def test_forks_end_at_the_limit_and_the_workspace_answers(tools: Tools, enforced: bool) -> None:
    """Where no cgroup enforces it, the kernel may count the user's processes: see ``launch.security``."""
    by_user = int(tools.python("import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[0])"))
    if enforced or 0 < by_user <= PIDS:  # elsewhere nothing would stop it
        count, number = map(int, tools.python(FORKS).split())
        assert (PIDS - 30 < count < PIDS, number) == (True, 11)  # EAGAIN
    assert tools.run("echo alive") == "alive\n"
    assert tools.value("ls") is not None


def _said(tools: Tools, arguments: dict[str, Any]) -> bool:
    ran: Any = tools.workspace.suite().tool("shell_execute").invoke(arguments)
    return bool(ran.success and ran.value.stdout == "text\n")


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("full", [FULL_OF_PROCESSES, FULL_OF_MEMORY], ids=["processes", "memory"])
def test_a_full_workspace_says_so_and_works_again(shared_world: World, enforced: bool, full: str, warm: bool) -> None:
    """``warm``: the files worker runs before."""
    if not enforced:
        return
    with opened(shared_world) as tools:
        tools.value("shell_execute", command=["sh", "-c", "echo text > kept"])
        if warm:
            tools.value("ls")
        job = tools.workspace.shell.start(["python3", "-c", full])
        mark = Path(tools.workspace.directory, "full")
        wait_for(lambda: mark.exists() or _has_ended(job), what="the workspace to be full")
        said = [tools.problem(tool, **arguments) for tool, arguments in EVERY]
        assert all(any(word in message for word in SAYS) for message in said if message), said
        with contextlib.suppress(ValueError, RuntimeError):  # its container has ended
            job.kill()
        # Until all of its processes have ended, a shell may be started that cannot start another program.
        kept = {"command": ["sh", "-c", "exec cat kept"]}
        wait_for(lambda: _said(tools, kept), what="a command to run")
        assert [tools.problem(tool, **arguments) for tool, arguments in EVERY] == [""] * len(EVERY)


def _has_ended(job: ShellJob) -> bool:
    try:
        return not job.poll().running
    except (ValueError, RuntimeError):
        return True


def test_a_process_over_the_memory_limit_is_killed_and_the_workspace_answers(tools: Tools, enforced: bool) -> None:
    tools.run("echo kept > memory; echo kept > /tmp/memory")
    if enforced:
        program = "x = bytearray(1536 << 20)\nfor n in range(0, len(x), 4096): x[n] = 1\nprint('allocated')"
        found = tools.value("shell_execute", command=["python3", "-c", program], timeout_seconds=60)
        assert (found.exit_code, found.stdout) == (137, "")
    assert tools.run("cat memory /tmp/memory") == "kept\nkept\n"  # the same container
    assert tools.value("read_file", file_path="memory").content == "kept"


def test_two_busy_processes_share_one_core(tools: Tools, enforced: bool) -> None:
    if not enforced:
        return
    busy = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    line = f"for n in 1 2; do python3 -c '{busy}' & done; wait"
    assert sum(map(float, tools.run(line).split())) < 2.2
