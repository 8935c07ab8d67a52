"""The private service, with a replacement for the podman program that binds the socket and answers a ping."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.engine.podman.private.own_keyring import aside, join
from podbot.engine.podman.private.podman_facts import conf_files
from podbot.engine.podman.private.service import (
    StartLimits,
    answers,
    ensure_service,
    service_dir,
    service_environment,
)
from podbot.errors import EngineNotInstalled, ServiceStartFailed, UnsafeDirectory
from podbot.events import Emit, Event, ignore

PROGRAM = f"""#!{sys.executable}
import os, socket, sys
with open(os.environ["XDG_DATA_HOME"] + "/starts", "a") as log:
    log.write(f"{{os.getpid()}}\\n")
with open(os.environ["XDG_DATA_HOME"] + "/environ", "w") as log:
    log.write("\\n".join(f"{{k}}={{v}}" for k, v in os.environ.items()))
with open(os.environ["XDG_DATA_HOME"] + "/argv", "w") as log:
    log.write(" ".join(sys.argv[1:]))
with open(os.environ["XDG_DATA_HOME"] + "/cwd", "w") as log:
    log.write(os.getcwd())
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[-1].removeprefix("unix://"))
server.listen()
while True:
    peer, _ = server.accept()
    peer.recv(4096)
    try:
        peer.sendall(b"HTTP/1.0 200 OK\\r\\nLibpod-Api-Version: 4.3.1\\r\\n\\r\\nOK")
    except OSError:
        pass
    peer.close()
"""
DYING = """#!/bin/sh
echo "level=info msg=starting" >&2
echo "Error: cannot re-exec process" >&2
exit 125
"""


@pytest.fixture
def environ() -> Iterator[dict[str, str]]:
    """Of a machine whose files lie in its home directory: see :func:`ensure`."""
    # Not tmp_path: its name is too long for a socket's path.
    with tempfile.TemporaryDirectory(prefix="pb") as root:
        os.mkdir(f"{root}/bin")
        yield {"XDG_RUNTIME_DIR": root, "XDG_DATA_HOME": root, "HOME": root, "PATH": "/bin"}
        for pid in started(root):
            os.kill(pid, signal.SIGKILL)
        for thread in threading.enumerate():
            if thread.name == "podbot-service-reaper":
                thread.join()


def started(root: str) -> list[int]:
    starts = Path(root, "starts")
    return [int(line) for line in starts.read_text().split()] if starts.exists() else []


def ensure(environ: dict[str, str], emit: Emit = ignore, *, uid: int = 0, **limits: float) -> str:
    """The service of a machine without systemd, cgroup v2 and capabilities, and with the programs of the test alone."""
    return ensure_service(environ, emit=emit, root=environ["HOME"], uid=uid, limits=StartLimits(**limits))


def put(environ: dict[str, str], path: str, text: str = "") -> str:
    """A file of that machine."""
    target = Path(environ["HOME"], path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return str(target)


def install(environ: dict[str, str], program: str) -> None:
    path = Path(environ["HOME"], "bin", "podman")
    path.write_text(program)
    path.chmod(0o755)


def test_a_service_is_started_once_and_shared(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    events: list[Event] = []
    path = ensure(environ, events.append)
    assert ensure(environ, events.append) == path
    assert len(started(environ["HOME"])) == 1
    assert [event.kind for event in events] == ["engine.service.started"]
    directory = os.path.dirname(path)
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(os.path.join(directory, "service.log")).st_mode) == 0o600


@pytest.mark.parametrize(("uid", "subids", "seconds"), [(1000, True, 300), (1000, False, 15), (0, False, 300)])
def test_a_service_without_user_ids_ends_soon(environ: dict[str, str], uid: int, subids: bool, seconds: int) -> None:
    """Given a range, the operator would otherwise meet the old service for five minutes."""
    install(environ, PROGRAM)
    for name in ("etc/subuid", "etc/subgid"):
        put(environ, name, f"{uid}:100000:65536\n" if subids else "")
    path = ensure(environ, uid=uid)
    assert Path(environ["HOME"], "argv").read_text() == f"system service --time {seconds} unix://{path}"


def test_many_at_once_start_one(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    barrier = threading.Barrier(4)
    paths: list[str] = []

    def start() -> None:
        barrier.wait()
        paths.append(ensure(environ))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths) == 4
    assert len(set(paths)) == 1
    assert len(started(environ["HOME"])) == 1


def test_a_stale_socket_is_replaced(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    directory = service_dir(environ)
    os.makedirs(directory, mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.path.join(directory, "podman.sock"))
    assert answers(ensure(environ))


def test_a_service_that_exits_reports_the_reason(environ: dict[str, str]) -> None:
    install(environ, DYING)
    with pytest.raises(ServiceStartFailed) as caught:
        ensure(environ)
    assert "cannot re-exec process" in caught.value.reason
    assert caught.value.log.endswith("service.log")


def test_a_service_that_is_not_a_program(environ: dict[str, str]) -> None:
    install(environ, "#!/nonexistent/interpreter\n")
    with pytest.raises(ServiceStartFailed):
        ensure(environ)


def test_one_that_never_answers_is_ended(environ: dict[str, str]) -> None:
    install(environ, "#!/bin/sh\nexec sleep 60\n")
    said: list[Event] = []
    with pytest.raises(ServiceStartFailed, match="no answer"):
        ensure(environ, said.append, start=0.05, slow=0.01)
    assert [event.kind for event in said] == ["engine.service.slow"]


def test_without_podman_the_error_says_how_to_install_it_and_names_no_socket(environ: dict[str, str]) -> None:
    with pytest.raises(EngineNotInstalled) as caught:
        ensure(environ)
    assert caught.value.message == "Podman is not installed"
    assert "nstall" in caught.value.install
    assert "podman" in caught.value.install
    assert "sock" not in caught.value.install


def test_a_path_too_long_for_a_socket_is_named(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    environ["XDG_RUNTIME_DIR"] += "/" + "x" * 100
    with pytest.raises(ServiceStartFailed, match="longer than 107"):
        ensure(environ)


def test_a_directory_that_is_a_link_is_refused(environ: dict[str, str]) -> None:
    os.mkdir(environ["HOME"] + "/elsewhere", 0o700)
    os.symlink(environ["HOME"] + "/elsewhere", environ["HOME"] + "/podbot")
    with pytest.raises(UnsafeDirectory):
        ensure(environ)


def test_the_service_gets_no_secret(environ: dict[str, str]) -> None:
    given = {
        **environ,
        "ANTHROPIC_API_KEY": "canary",
        "GITHUB_TOKEN": "canary",
        "PODBOT_IMAGE": "canary",
        "CONTAINER_HOST": "canary",
        "https_proxy": "http://proxy:3128",
        "LC_ALL": "C",
        "CONTAINERS_STORAGE_CONF": "/s",
        "CONTAINERS_CONF": "/c.conf",
    }
    seen = service_environment(given)
    assert "canary" not in seen.values()
    assert seen["https_proxy"] == "http://proxy:3128"
    assert (seen["LC_ALL"], seen["CONTAINERS_STORAGE_CONF"], seen["CONTAINERS_CONF"]) == ("C", "/s", "/c.conf")
    assert "/usr/sbin" in seen["PATH"].split(":")


def test_a_relative_path_entry_does_not_reach_the_service(environ: dict[str, str]) -> None:
    seen = service_environment({**environ, "PATH": ".::bin:/usr/bin"})
    assert all(part.startswith("/") for part in seen["PATH"].split(":"))


def test_the_fitted_file_is_used_and_private(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    directory = os.path.dirname(ensure(environ))
    conf = os.path.join(directory, "containers.conf")
    assert stat.S_IMODE(os.stat(conf).st_mode) == 0o600
    assert 'events_logger = "file"' in Path(conf).read_text()
    assert ("keyring = false" in Path(conf).read_text()) is aside(join), "only beside a keyring of the service's own"
    assert f"CONTAINERS_CONF={conf}" in Path(environ["HOME"], "environ").read_text().splitlines()


def test_the_operators_own_containers_conf_stands(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    directory = os.path.dirname(ensure({**environ, "CONTAINERS_CONF": "/mine.conf"}))
    assert not os.path.exists(os.path.join(directory, "containers.conf"))
    assert "CONTAINERS_CONF=/mine.conf" in Path(environ["HOME"], "environ").read_text().splitlines()


@pytest.mark.parametrize("uid", [0, 1000])
def test_no_file_of_a_monitor_is_left_at_the_machine_s_root(environ: dict[str, str], uid: int) -> None:
    """Monitors inherit the service's directory, and root's can write `oom` into it. A user's must not vanish."""
    install(environ, PROGRAM)
    directory = os.path.dirname(ensure(environ, uid=uid))
    assert Path(environ["HOME"], "cwd").read_text() == ("/" if uid else os.path.realpath(directory))


@pytest.mark.parametrize("theirs", ["", "/mine.conf"])
def test_a_machine_that_needs_no_fitted_file_gets_an_override(environ: dict[str, str], theirs: str) -> None:
    install(environ, PROGRAM)
    put(environ, "sys/fs/cgroup/cgroup.controllers")
    put(environ, "run/systemd/system/x")
    environ |= {"CONTAINERS_CONF_OVERRIDE": theirs} if theirs else {}
    directory = os.path.dirname(ensure(environ, uid=1000))
    override = os.path.join(directory, "override.conf")
    lines = Path(environ["HOME"], "environ").read_text().splitlines()
    assert f"CONTAINERS_CONF_OVERRIDE={theirs or override}" in lines
    assert not [line for line in lines if line.startswith("CONTAINERS_CONF=")]
    assert os.path.exists(override) is not bool(theirs)


def test_the_users_files_are_read_for_a_rootless_engine_only(tmp_path: Path) -> None:
    mine = tmp_path / ".config/containers/containers.conf"
    drop_in = tmp_path / ".config/containers/containers.conf.d/9.conf"
    drop_in.parent.mkdir(parents=True)
    mine.write_text("")
    drop_in.write_text("")
    environ = {"HOME": str(tmp_path)}
    assert conf_files(environ, rootless=True)[-2:] == [str(mine), str(drop_in)]
    assert str(mine) not in conf_files(environ, rootless=False)


def test_a_broken_file_of_the_operators_is_named(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    broken = put(environ, "etc/containers/containers.conf", "[engine")
    with pytest.raises(ServiceStartFailed, match=f"{broken} is not valid TOML"):
        ensure(environ)


def fuse(environ: dict[str, str]) -> None:
    """An ordinary user of that machine can use overlay, whatever the kernel can do."""
    put(environ, "dev/fuse")
    os.chmod(put(environ, "bin/fuse-overlayfs"), 0o755)


def test_an_ordinary_users_new_store_is_overlay_and_the_users_podman_is_told(environ: dict[str, str]) -> None:
    install(environ, PROGRAM)
    fuse(environ)
    put(environ, "containers/storage/overlay-images/images.json")  # which the service makes
    events: list[Event] = []
    ensure(environ, events.append, uid=1000)
    assert "STORAGE_DRIVER=overlay" in Path(environ["HOME"], "environ").read_text().splitlines()
    written = Path(environ["HOME"], ".config/containers/storage.conf")
    assert 'driver = "overlay"' in written.read_text()
    (notice,) = [event for event in events if event.level == "notice"]
    assert notice.kind == "engine.storage.driver"
    assert notice.fields == {"driver": "overlay", "path": str(written)}
    assert str(written) in notice.message


def test_a_service_that_does_not_name_its_version_has_no_file_written(environ: dict[str, str]) -> None:
    install(environ, PROGRAM.replace("Libpod-Api-Version: 4.3.1", "X: y"))
    fuse(environ)
    put(environ, "containers/storage/overlay-images/images.json")
    ensure(environ, uid=1000)
    assert not Path(environ["HOME"], ".config").exists()


@pytest.mark.parametrize("uid", [0, 1000])
def test_a_storage_that_was_chosen_or_that_is_roots_is_left_to_podman(environ: dict[str, str], uid: int) -> None:
    install(environ, PROGRAM)
    fuse(environ)
    put(environ, "containers/storage/overlay-images/images.json")
    if uid:
        put(environ, ".config/containers/storage.conf", '[storage]\ndriver = "vfs"\n')
    ensure(environ, uid=uid)
    assert not [line for line in Path(environ["HOME"], "environ").read_text().splitlines() if "STORAGE_DRIVER" in line]
    assert Path(environ["HOME"], ".config/containers/storage.conf").exists() is bool(uid)
