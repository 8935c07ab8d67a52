"""``podbot token-daemon`` under the user's real systemd (issue 11.4)."""

from __future__ import annotations

import glob
import os
import signal
from collections.abc import Iterator

import pytest

from e2e.vm.inside.operator import eventually, podbot, run, said
from podbot.tokens.systemd_unit import UNIT, WATCHDOG_SECONDS


def show(name: str) -> str:
    """A property of the unit, as systemd sees it."""
    return said("systemctl", "--user", "show", "--value", f"--property={name}", UNIT)


def main_pid() -> int:
    return int(show("MainPID") or 0)


@pytest.fixture
def installed() -> Iterator[None]:
    done = podbot("token-daemon", "install")
    assert f"{UNIT} runs" in done.stderr
    yield
    podbot("token-daemon", "uninstall")


@pytest.mark.usefixtures("installed")
def test_install_starts_a_unit_that_reports_ready() -> None:
    assert (show("ActiveState"), show("SubState"), show("Type")) == ("active", "running", "notify")
    assert show("StatusText").startswith("renewing 0 of 0 tokens")
    assert show("UnitFileState") == "enabled"
    assert "unit: active, enabled, renewing 0 of 0 tokens" in podbot("token-daemon", "status").stdout


@pytest.mark.usefixtures("installed")
def test_the_watchdog_gets_its_notifications() -> None:
    first = int(show("WatchdogTimestampMonotonic"))
    eventually(lambda: int(show("WatchdogTimestampMonotonic")) > first, "another WATCHDOG=1", WATCHDOG_SECONDS)


@pytest.mark.usefixtures("installed")
def test_the_watchdog_ends_and_restarts_a_daemon_that_hangs() -> None:
    before = main_pid()
    os.kill(before, signal.SIGSTOP)
    eventually(lambda: main_pid() not in (0, before), "a new process", 3 * WATCHDOG_SECONDS)
    eventually(lambda: show("ActiveState") == "active", "it to be ready")


@pytest.mark.usefixtures("installed")
def test_it_is_restarted_after_a_crash() -> None:
    before = main_pid()
    os.kill(before, signal.SIGKILL)
    eventually(lambda: main_pid() not in (0, before), "a new process")
    eventually(lambda: show("ActiveState") == "active", "it to be ready")
    assert int(show("NRestarts")) == 1


@pytest.mark.usefixtures("installed")
def test_it_is_confined() -> None:
    with open(f"/proc/{main_pid()}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_uninstall_leaves_nothing() -> None:
    podbot("token-daemon", "install")
    pid = main_pid()
    podbot("token-daemon", "uninstall")
    assert not os.path.exists(f"/proc/{pid}")
    assert UNIT not in said("systemctl", "--user", "list-units", "--all", "--no-legend", "--plain")
    assert UNIT not in said("systemctl", "--user", "list-unit-files", "--no-legend")
    left = glob.glob(os.path.expanduser("~/.config/systemd/**/*"), recursive=True)
    assert [path for path in left if UNIT in path] == []
    assert "unit: not installed" in podbot("token-daemon", "status").stdout
    assert run(["systemctl", "--user", "is-failed", UNIT]).stdout.strip() != "failed"
