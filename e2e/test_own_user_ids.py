"""sandbox.own_user_ids: on a rootful engine root inside has a user id that no other user has (ADR 0059).

podbot and its engine run in a mount namespace of the test's own. In it Podman has a range of user ids to give, and crun
runs containers where the machine's cgroups are for runc: crun refuses them only while a part of them is of version 2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.clones import IDENTITY, NETWORK, Site
from e2e.forge import forge, git
from e2e.harness import INNER, MAKE_INNER, ROOTLESS, World, close_world, new_world, wait_for
from podbot.config.write import set_keys

RANGE = "containers:300000000:655360"
HYBRID = "/sys/fs/cgroup/unified"
CRUN = shutil.which("crun") or str(Path(__file__).parents[1] / ".e2e" / "crun" / "usr" / "bin" / "crun")  # scripts/e2e
WITH_CRUN = f'if [ -d {HYBRID} ]; then umount {HYBRID} && mount --bind {CRUN} "$(command -v runc)"; fi'
ASKED = {"sandbox.own_user_ids": True}
rootful = pytest.mark.skipif(ROOTLESS, reason="an ordinary user's engine has a user namespace anyway")


def in_namespace(world: World, script: str, *, ranges: str = RANGE) -> None:
    """Have ``script`` run before each podbot of this operator, in a mount namespace of podbot's own."""
    path = os.path.join(world.root, "ranges")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{ranges}\n")
    binds = "".join(f"mount --bind {path} /etc/{name}; " for name in ("subuid", "subgid"))
    words = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", f'{binds}{script}; exec "$@"', "sh")
    world.through = words
    set_keys(world.config, ASKED)


@pytest.fixture
def apart(own_world: World) -> World:
    in_namespace(own_world, WITH_CRUN)
    return own_world


@rootful
def test_root_inside_is_no_user_of_the_host(apart: World) -> None:
    """And no user of another session."""
    first = []
    for _ in range(2):
        name = f"own-{uuid.uuid4().hex[:8]}"
        done = apart.agent("cat", "/proc/self/uid_map", flags=("--name", name, "--keep"))
        inside, outside, count = map(int, done.stdout.split())
        assert (inside, count) == (0, 65_536), done.stderr
        assert outside >= 300_000_000
        first.append(outside)
    assert abs(first[0] - first[1]) >= 65_536


@rootful
def test_the_files_of_the_workspace_have_the_hosts_owners_on_both_sides(apart: World) -> None:
    workspace = apart.workspace()
    os.chmod(workspace, 0o700)
    for name, owner in (("mine", 0), ("theirs", 1234)):
        Path(workspace, name).write_text("before")
        os.chown(os.path.join(workspace, name), owner, owner)
    script = "stat -c %u mine theirs; echo after >> theirs; mkdir made; touch made/one; chown 77 made/one"
    done = apart.agent("sh", "-ec", script, workspace=workspace)
    assert done.stdout == "0\n1234\n", done.stderr
    found = {name: os.stat(os.path.join(workspace, name)).st_uid for name in ("mine", "theirs", "made", "made/one")}
    assert found == {"mine": 0, "theirs": 1234, "made": 0, "made/one": 77}


@rootful
def test_a_process_of_the_session_has_that_user_on_the_host(apart: World) -> None:
    """Descriptors in flight and the pages of pipes are counted for the session alone; more is not (ADR 0059)."""
    marker = f"{uuid.uuid4().int % 10**9 + 10**9}"

    def user() -> int | None:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if Path(f"/proc/{pid}/cmdline").read_bytes() == f"sleep\0{marker}\0".encode():
                    return os.stat(f"/proc/{pid}").st_uid
            except OSError:
                continue
        return None

    with apart.session("sleep", marker):
        wait_for(lambda: user() is not None, what="the agent")
        assert (user() or 0) >= 300_000_000


@rootful
def test_the_hosts_devices_are_not_the_sandboxs(apart: World) -> None:
    """crun 1.8 gave away the host's /dev/null, which a process without an input has; then an agent could close it."""
    name = f"own-{uuid.uuid4().hex[:8]}"
    script = (
        "for each in null zero full random urandom tty; do chmod 600 /dev/$each; done 2>/dev/null; stat -c %u /dev/null"
    )
    done = apart.agent("sh", "-c", script, flags=("--name", name, "--keep"))
    assert done.stdout == "65534\n", done.stderr
    apart.podbot("start", name, check=True)
    assert apart.podbot("exec", name, "--", "chmod", "600", "/dev/null").returncode == 1
    for each in ("null", "zero", "full", "random", "urandom", "tty"):
        found = os.stat(f"/dev/{each}")
        assert (found.st_uid, found.st_mode & 0o777) == (0, 0o666), each
    apart.podbot("stop", "--rm", name, check=True)


@rootful
def test_a_kept_session_is_started_again_and_runs_containers(apart: World) -> None:
    name = f"own-{uuid.uuid4().hex[:8]}"
    apart.agent("touch", "/root/made", flags=("--name", name, "--keep"))
    apart.podbot("start", name, check=True)
    script = f"{MAKE_INNER}\ntest -e /root/made; podman run --rm --network none {INNER} sh -c 'echo from within'"
    done = apart.podbot("exec", name, "--", "bash", "-ec", script)
    assert done.stdout.endswith("from within\n"), done.stderr
    apart.podbot("stop", "--rm", name, check=True)


@pytest.fixture
def site(image: str) -> Iterator[Site]:
    world = new_world(image, NETWORK)
    with forge(os.path.join(world.root, "forge")) as made:
        for key, value in made.config(os.path.join(world.env["HOME"], "app.pem")).items():
            set_keys(world.config, {key: value})
        in_namespace(world, WITH_CRUN)
        yield Site(world, made)
    close_world(world)


@rootful
def test_a_clone_belongs_to_the_sandbox(site: Site) -> None:
    site.forge.repo("octo/shop")
    done = site.script(f"{IDENTITY}; git commit -q --allow-empty -m more; git push -q origin HEAD; stat -c %u .")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert git("log", "-1", "--format=%s", "main", cwd=site.forge.path("octo/shop")) == "more"


@rootful
def test_without_user_ids_to_give_the_error_says_where_they_are_written(own_world: World) -> None:
    in_namespace(own_world, WITH_CRUN, ranges="containers:300000000:1000")
    done = own_world.agent("true")
    assert done.returncode == 1
    assert "no 65,536 user ids are left for it (sandbox.own_user_ids)" in done.stderr
    assert "/etc/subuid" in done.stderr


@rootful
def test_a_file_system_without_such_mounts_is_named(own_world: World) -> None:
    workspace = own_world.workspace()
    in_namespace(own_world, f"{WITH_CRUN}; mountpoint -q {workspace} || mount -t ramfs none {workspace}")
    done = own_world.agent("true", workspace=workspace)
    assert done.returncode == 1
    assert f"the file system of {workspace} cannot be mounted with other user ids" in done.stderr


@rootful
@pytest.mark.skipif(not os.path.isdir(HYBRID), reason="this machine's runtime has such mounts")
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_runtime_without_such_mounts_is_refused(own_world: World, mode: int) -> None:
    """runc 1.1 makes plain mounts, in which the sandbox's root is nobody."""
    workspace = own_world.workspace()
    os.chmod(workspace, mode)
    in_namespace(own_world, "true")
    done = own_world.agent("touch", "made", workspace=workspace)
    assert done.returncode == 1
    assert "sandbox.own_user_ids needs an engine with the runtime crun" in done.stderr
    assert os.listdir(workspace) == []


@pytest.mark.skipif(not ROOTLESS, reason="root's engine gives each session its own")
def test_for_an_ordinary_user_there_is_nothing_to_do(own_world: World) -> None:
    set_keys(own_world.config, ASKED)
    done = own_world.agent("cat", "/proc/self/uid_map")
    assert "sandbox.own_user_ids has no effect: root inside is the engine's owner" in done.stderr
    assert done.stdout.split()[:2] == ["0", str(os.getuid())]


@rootful
def test_crun_is_there() -> None:
    assert subprocess.run([CRUN, "--version"], capture_output=True, check=False).returncode == 0
