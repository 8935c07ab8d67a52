"""``podbot doctor`` on a healthy machine, and with each of a session's requirements removed in turn (issue 11.5)."""

from __future__ import annotations

import contextlib
import getpass
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from e2e.vm.inside.operator import doctor, eventually, podbot, run, sudo

DROP_IN = "/etc/systemd/system/user@.service.d/podbot-test.conf"


def test_all_is_well() -> None:
    found = doctor()
    assert {name: check for name, check in found.items() if check["status"] != "ok"} == {}
    assert {"podman", "cgroups", "user-ids", "rootless-network", "delegation", "linger", "runtime", "disk"} <= {*found}
    assert podbot("doctor").returncode == 0


@contextlib.contextmanager
def away(path: str) -> Iterator[None]:
    """Removes the file for the duration of the block."""
    sudo("mv", path, f"{path}.away")
    try:
        yield
    finally:
        sudo("mv", f"{path}.away", path)


def only(name: str, status: str, *, env: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """The check, which must have this status and be the only one that is not ok."""
    found = doctor(env=env)
    assert [check for check, each in found.items() if each["status"] != "ok"] == [name]
    assert found[name]["status"] == status
    assert found[name]["meaning"]
    assert found[name]["fix"]
    return found[name]


@pytest.mark.parametrize("file", ["/etc/subuid", "/etc/subgid"])
def test_without_a_range_of_user_ids(file: str) -> None:
    with away(file):
        check = doctor()["user-ids"]
    assert check["status"] == "fail"
    assert "usermod --add-subuids" in check["fix"]


def test_without_pasta() -> None:
    with away("/usr/bin/pasta"):
        assert "passt" in only("rootless-network", "fail")["fix"]
        refused = podbot("setup", "--yes", "--force", check=False)
    assert refused.returncode == 1
    assert "pasta" in refused.stderr
    assert "step 1 of" not in refused.stderr


def test_without_crun() -> None:
    others = [path for path in ("/usr/bin/runc", "/usr/sbin/runc") if os.path.exists(path)]
    with contextlib.ExitStack() as stack:
        for path in ("/usr/bin/crun", *others):
            stack.enter_context(away(path))
        check = doctor()["runtime"]
    assert check["status"] == "fail"
    assert "crun" in check["fix"]


def test_without_room_on_the_disk() -> None:
    """Temporary files are on a file system of 50 MB, and there is no image yet."""
    small = os.path.expanduser("~/small")
    os.makedirs(small)
    sudo("mount", "-t", "tmpfs", "-o", f"size=50m,uid={os.getuid()}", "tmpfs", small)
    try:
        env = {"TMPDIR": small, "PODBOT_IMAGE": "localhost/not-yet:1"}
        check = doctor(env=env)["disk"]
    finally:
        sudo("umount", small)
        os.rmdir(small)
    assert check["status"] == "fail"
    assert small in check["found"]
    assert "MB" in check["found"]


def test_linger_is_checked_where_token_daemon_is_installed() -> None:
    user = getpass.getuser()
    sudo("loginctl", "disable-linger", user)
    podbot("token-daemon", "install")
    try:
        assert "loginctl enable-linger" in only("linger", "warn")["fix"]
        sudo("loginctl", "enable-linger", user)
        assert doctor()["linger"]["status"] == "ok"
    finally:
        podbot("token-daemon", "uninstall")
        sudo("loginctl", "disable-linger", user)
    assert doctor()["linger"]["status"] == "ok"


@contextlib.contextmanager
def delegated(controllers: str) -> Iterator[None]:
    """systemd delegates just these to users; their managers are restarted."""
    text = f"[Service]\nDelegate=\nDelegate={controllers}\n"  # the first removes systemd's own list, the second adds
    sudo("mkdir", "-p", os.path.dirname(DROP_IN))
    sudo("sh", "-c", f"printf '%s' '{text}' > {DROP_IN}")
    _managers_again()
    try:
        yield
    finally:
        sudo("rm", DROP_IN)
        _managers_again()


def _managers_again() -> None:
    sudo("systemctl", "daemon-reload")
    sudo("systemctl", "restart", f"user@{os.getuid()}.service")
    bus = f"/run/user/{os.getuid()}/bus"
    eventually(lambda: os.path.exists(bus) and run(["systemctl", "--user", "is-system-running"]).returncode == 0, "it")


def test_without_delegation() -> None:
    with delegated("pids"):
        check = only("delegation", "warn")
    assert "cpu" in check["found"]  # systemd enables memory and pids in every slice, for accounting
    assert "Delegate=" in check["fix"]
