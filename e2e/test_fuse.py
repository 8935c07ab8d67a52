"""/dev/fuse is given on request, and nothing survives its session by it (attack 2, finding 6)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from e2e.harness import ROOTLESS, World, wait_for
from e2e.patience import patient

SERVER = Path(__file__).parent / "host" / "inside" / "stuck_server.py"
ASKED = {"PODBOT_SANDBOX_MOUNT_DEV_FUSE": "true"}
needs_fuse = pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse for this user")


def threads(container: str) -> list[str]:
    """The states of the container's threads that have not ended; that of a thread that no signal ends is D."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                if f"libpod-{container}" in (task / "cgroup").read_text() and state not in "ZX":
                    found.append(state)
            except OSError:
                continue
    return found


def test_a_session_has_no_fuse_unless_it_asks(world: World) -> None:
    for env, given in (({}, "no"), (ASKED, "yes" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "no")):
        done = world.agent("sh", "-c", "test -c /dev/fuse && echo yes || echo no", env=env)
        assert done.stdout == f"{given}\n", done.stderr


@needs_fuse
@pytest.mark.skipif(ROOTLESS, reason="a rootless engine may have no control group by which the test finds threads")
@pytest.mark.parametrize(
    ("how", "arguments"),
    [
        ("stop", ""),
        ("end", ""),
        ("kill", ""),
        ("stop", "$'m\\rq'"),
        ("end", "$'m\\xe2\\x80\\xa8q'"),
        ("stop", "m detached"),
    ],
)
def test_a_process_that_waits_for_its_own_server_ends_with_its_session(
    own_world: World, how: str, arguments: str
) -> None:
    """Also with a name that ends a line for Python, and where no mount is left by which to find it."""
    own_world.env |= ASKED
    workspace = own_world.workspace()
    with open(os.path.join(workspace, "server.py"), "w", encoding="utf-8") as file:
        file.write(SERVER.read_text())
    words = (
        f"python3 server.py {arguments} & until [ -e waiting ] && [ -e ready ]; do sleep 0.1; done; touch up; "
        "until [ -e go ]; do sleep 0.1; done"
    )
    flags = ("--name", f"e2e-fuse-{how}", "--workspace", workspace, "--agent", "custom")
    child = own_world.start("run", *flags, "--", "bash", "-c", words)
    wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the server", child=child)
    container = own_world.container(f"e2e-fuse-{how}")["Id"]
    assert threads(container)
    if how == "stop":
        done = own_world.podbot("stop", "--time", "0", f"e2e-fuse-{how}")
        assert done.returncode == 0, done.stderr
    elif how == "kill":
        os.killpg(child.pid, signal.SIGKILL)
        own_world.cleaned()
    else:
        Path(workspace, "go").touch()
    err = child.communicate(timeout=patient(120))[1]
    assert threads(container) == []
    assert own_world.container(f"e2e-fuse-{how}") == {}
    assert b"do not end" not in err
