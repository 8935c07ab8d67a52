"""``podbot token-daemon`` with real sessions: the single writer, hand-over without an extra token, ends, and
systemd.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from e2e.forge import Forge, forge
from e2e.harness import ROOTLESS, World, close_world, new_world, wait_for
from e2e.patience import bound
from podbot.config.write import set_keys
from podbot.github.grant import grant_path
from podbot.github.lease import CLAIM, LEASE
from podbot.locks import is_held
from podbot.session.record import read_record
from podbot.tokens.systemd_unit import UNIT

SOON = 303.0  # lifetime of a token that is due after 3 s: the buffer is 300
TOKEN = "/run/secrets/ghapp_token"


@dataclass
class Site:
    """An operator with a forge; ``children`` are terminated afterwards."""

    world: World
    forge: Forge
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def session(self, *flags: str) -> str:
        """A session on a clone, whose agent sleeps; its name."""
        name = f"token-{uuid.uuid4().hex[:8]}"
        self.names.append(name)
        words = ("sh", "-ec", "echo ready; exec sleep 600")
        run = self.world.start("run", "--repo", "octo/shop", "--agent", "custom", "--name", name, *flags, "--", *words)
        self.children.append(run)
        assert run.stdout is not None
        assert run.stdout.readline() == b"ready\n", run.communicate()
        return name

    @property
    def run(self) -> subprocess.Popen[bytes]:
        """The first session's podbot."""
        return self.children[0]

    def daemon(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """A daemon in the background; its output goes to a file."""
        self.log = os.path.join(self.world.root, f"log-{uuid.uuid4().hex[:6]}")
        with open(self.log, "wb") as log:
            child = self.world.start("-v", "token-daemon", *words, stderr=log, **options)
        self.children.append(child)
        return child

    def said(self) -> str:
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def path(self, name: str, *more: str) -> str:
        return os.path.join(self.world.runtime, name, *more)

    def holder(self, name: str) -> tuple[str, int]:
        """(kind, pid) of the process that renews the token."""
        with (
            contextlib.suppress(OSError, ValueError),
            open(self.path(name, "token.status.json"), encoding="utf-8") as file,
        ):
            found = json.load(file)["holder"]
            if is_held(self.path(name, LEASE)):
                return str(found["kind"]), int(found["pid"])
        return "", 0

    def taken_over_by(self, name: str, daemon: subprocess.Popen[bytes]) -> None:
        """Wait until this daemon renews the token."""
        wait_for(lambda: self.holder(name) == ("daemon", daemon.pid), what="the daemon to take over")

    def inside(self, name: str) -> str:
        """The token as the sandbox sees it."""
        return self.world.podbot("exec", name, "--", "cat", TOKEN, check=True).stdout

    def ps(self) -> dict[str, Any]:
        listed = json.loads(self.world.podbot("ps", "--json", check=True).stdout)
        return {item["session"]: item["token"] for item in listed}


@pytest.fixture(scope="module")
def whole_site(image: str) -> Iterator[Site]:
    world = new_world(image, '[sandbox]\nnetwork = "host"\n')  # the forge listens on the host's loopback
    with forge(os.path.join(world.root, "forge")) as made:
        for key, value in made.config(os.path.join(world.env["HOME"], "app.pem")).items():
            set_keys(world.config, {key: value})
        made.repo("octo/shop")
        yield Site(world, made)
    close_world(world)


@pytest.fixture
def site(whole_site: Site) -> Iterator[Site]:
    whole_site.children.clear()
    whole_site.names.clear()
    api = whole_site.forge.api
    api.lifetime = 3600.0
    api.up()
    api.recover()
    yield whole_site
    for child in reversed(whole_site.children):
        if child.poll() is None:
            child.terminate()
        child.communicate(timeout=60)
    for name in whole_site.names:
        whole_site.world.podbot("stop", "--rm", "--time", "0", name)
        shutil.rmtree(whole_site.path(name), ignore_errors=True)
    assert whole_site.world.managed() == []


def ended(child: subprocess.Popen[bytes], number: int, seconds: float = 1.0) -> int:
    """The exit status of a child that gets a signal; it has ``seconds`` to exit."""
    begin = time.monotonic()
    child.send_signal(number)
    code = child.wait(timeout=30)
    took = time.monotonic() - begin
    assert took < bound(seconds), f"took {took:.2f} s"
    return code


# --- who renews -----------------------------------------------------------------------------------


def test_a_daemon_takes_over_and_gives_back_without_a_new_token(site: Site) -> None:
    name = site.session()
    minted = site.forge.api.mints
    token = site.inside(name)
    assert site.holder(name) == ("session", site.run.pid)
    daemon = site.daemon()
    site.taken_over_by(name, daemon)
    daemon.kill()
    daemon.wait()
    wait_for(lambda: site.holder(name) == ("session", site.run.pid), what="run to take over")
    again = site.daemon()
    wait_for(lambda: site.holder(name) == ("daemon", again.pid), what="the next daemon to take over")
    assert ended(again, signal.SIGTERM) == 0
    wait_for(lambda: site.holder(name) == ("session", site.run.pid), what="run to take over again")
    assert site.forge.api.mints == minted
    assert site.inside(name) == token
    assert ended(site.run, signal.SIGTERM, 30) == 143
    assert not os.path.exists(site.path(name))


def test_it_renews_tokens_that_are_due(site: Site) -> None:
    site.forge.api.lifetime = SOON
    name = site.session()
    daemon = site.daemon()
    first = site.inside(name)
    site.taken_over_by(name, daemon)
    site.forge.api.lifetime = 3600.0
    wait_for(lambda: site.inside(name) != first, what="a new token", seconds=60)
    mints = site.forge.api.mints
    assert site.world.podbot("exec", name, "--", "git", "fetch").returncode == 0
    time.sleep(3)
    assert site.forge.api.mints == mints


def test_it_keeps_a_killed_runs_session_and_drops_one_without_a_container(site: Site) -> None:
    name = site.session("--keep")  # its sandbox outlives its podbot
    daemon = site.daemon()
    site.taken_over_by(name, daemon)
    site.run.kill()
    site.run.wait()
    time.sleep(8)  # it asks the engine during this time
    assert site.holder(name) == ("daemon", daemon.pid)
    assert site.inside(name)
    assert "not renewed" not in site.world.podbot("ps", check=True).stdout
    assert site.world.podman("rm", "-f", "-t", "0", name).returncode == 0
    daemon.send_signal(signal.SIGHUP)  # ask now instead of later
    wait_for(lambda: not os.path.exists(grant_path(site.path(name))), what="the token's grant to go")
    site.world.podbot("ps", check=True)
    assert not os.path.exists(site.path(name)), "the next command removes the rest"
    assert f"the container of {name} is gone" in site.said()
    assert daemon.poll() is None
    assert ended(daemon, signal.SIGINT) == 0


def test_a_daemon_finds_the_session_of_a_killed_run(site: Site) -> None:
    name = site.session("--keep")
    site.run.kill()
    site.run.wait()
    assert "not renewed" in site.world.podbot("ps", check=True).stdout
    daemon = site.daemon()
    site.taken_over_by(name, daemon)


def test_a_second_daemon_takes_over_when_the_first_is_killed(site: Site) -> None:
    name = site.session()
    minted = site.forge.api.mints
    first = site.daemon()
    wait_for(lambda: site.holder(name) == ("daemon", first.pid), what="the first to take over")
    second = site.daemon()
    wait_for(lambda: "another token-daemon" in site.said(), what="the second to stand by")
    assert f"(process {first.pid})" in site.said()
    assert site.holder(name) == ("daemon", first.pid)
    first.kill()
    first.wait()
    wait_for(lambda: site.holder(name) == ("daemon", second.pid), what="the second to take over")
    assert site.forge.api.mints == minted
    assert site.said().count("another token-daemon") == 1


def test_killed_in_the_middle_of_writes(site: Site) -> None:
    name = site.session()
    file = site.path(name, "secrets", "ghapp_token")
    seen: set[str] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            with contextlib.suppress(FileNotFoundError), open(file, encoding="ascii") as opened:
                seen.add(opened.read())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for delay in (0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, None):
            daemon = site.daemon()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)  # so that the holder of the lease gets a token and writes it
            site.taken_over_by(name, daemon)
            if delay is None:
                wait_for(lambda: os.path.exists(file), what="a token that is written")
            else:
                time.sleep(delay)
            daemon.kill()
            daemon.wait()
    finally:
        over.set()
        reader.join()
    assert len(seen) > 1
    assert seen <= {minted.token for minted in site.forge.api.tokens}, "a reader saw half a token, or none"
    wait_for(lambda: site.holder(name) == ("session", site.run.pid), what="run to take over")
    wait_for(lambda: os.path.exists(file), what="a token")
    assert os.listdir(site.path(name, "secrets")) == ["ghapp_token"]
    assert site.world.podbot("exec", name, "--", "git", "fetch").returncode == 0


def test_a_killed_clone_that_is_kept_has_no_token(site: Site) -> None:
    """The daemon saw that the file was missing while the sandbox was looked through, and wrote another one."""
    name = site.session()
    site.world.podbot("exec", name, "--", "touch", "more", check=True)
    daemon = site.daemon()
    site.taken_over_by(name, daemon)
    file = site.path(name, "secrets", "ghapp_token")
    os.unlink(file)
    daemon.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(file), what="a token of the daemon's, which loads what it needs for that")
    site.run.kill()
    site.run.wait()
    wait_for(lambda: not os.path.exists(file), what="the token's removal")
    daemon.send_signal(signal.SIGHUP)  # look at everything now instead of later

    def kept() -> bool:
        record = read_record(site.path(name))
        return record is not None and record.state == "stopped"

    wait_for(kept, what="the clone to be kept")
    daemon.kill()  # it would remove the token a few seconds later
    daemon.wait()
    site.world.cleaned()
    assert site.world.container(name)["State"] == "exited"
    assert os.listdir(site.path(name, "secrets")) == []


@pytest.mark.parametrize("flags", [(), ("--keep",)])
def test_a_renewal_that_was_in_progress_writes_nothing_into_a_session_that_has_ended(
    site: Site, flags: tuple[str, ...]
) -> None:
    """``--keep``: ended by `podbot stop` after its podbot was killed; otherwise kept for its unsaved work."""
    name = site.session(*flags)
    site.world.podbot("exec", name, "--", "touch", "more", check=True)
    daemon = site.daemon()
    site.taken_over_by(name, daemon)
    site.forge.api.slow(8, times=1)
    os.unlink(site.path(name, "secrets", "ghapp_token"))
    daemon.send_signal(signal.SIGHUP)
    time.sleep(1.5)  # for the request
    site.run.kill()
    site.run.wait()
    if flags:
        site.world.podbot("stop", "--time", "0", name, check=True)
    minted = site.forge.api.mints
    wait_for(lambda: site.forge.api.mints > minted or "is not running" in site.said(), what="the answer")
    site.world.cleaned()
    time.sleep(1)
    daemon.kill()
    daemon.wait()
    assert site.world.container(name)["State"] == "exited"
    assert os.listdir(site.path(name, "secrets")) == []


# --- once -----------------------------------------------------------------------------------------


def once(site: Site, *names: str, code: int = 0) -> dict[str, dict[str, Any]]:
    done = site.world.podbot("token-daemon", "--once", "--json", *names)
    assert done.returncode == code, done
    return {item["session"]: item for item in json.loads(done.stdout)}


def test_once(site: Site) -> None:
    site.forge.api.lifetime = SOON
    name = site.session("--keep")
    held = once(site)[name]
    assert (held["outcome"], f"process {site.run.pid}" in held["detail"]) == ("held", True)
    site.run.kill()
    site.run.wait()
    token = site.inside(name)
    time.sleep(3.5)
    site.forge.api.down()
    failed = once(site, code=1)[name]
    assert (failed["outcome"], "cannot reach GitHub" in failed["detail"]) == ("failed", True)
    assert site.inside(name) == token  # the last one stays
    assert "failing: " in site.world.podbot("ps", check=True).stdout
    site.forge.api.up()
    site.forge.api.lifetime = 3600.0
    assert once(site, name)[name]["outcome"] == "renewed"
    assert site.inside(name) != token
    mints = site.forge.api.mints
    assert once(site)[name]["outcome"] == "fresh"
    assert site.forge.api.mints == mints
    site.world.podman("stop", "-t", "0", name)
    assert once(site)[name]["outcome"] == "stopped"


def test_names_without_a_token(site: Site) -> None:
    with site.world.session() as mounted:
        for words in (["nosuch"], ["--once", "nosuch"], [mounted]):
            done = site.world.podbot("token-daemon", *words)
            assert (done.returncode, "no GitHub token to renew for" in done.stderr) == (1, True), done
    assert site.world.podbot("token-daemon", "--once").stdout == "SESSION  TOKEN\n"


# --- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_during_a_request(site: Site, number: int) -> None:
    site.forge.api.lifetime = SOON
    name = site.session("--keep")
    site.run.kill()
    site.run.wait()
    token = site.inside(name)
    time.sleep(3.5)
    asked = len(site.forge.api.requests)
    site.forge.api.slow(8, times=5)
    daemon = site.daemon()
    site.taken_over_by(name, daemon)
    time.sleep(1.5)  # the question about the container, and then the request
    assert ended(daemon, number) == 0
    assert not is_held(site.path(name, LEASE))
    assert not is_held(site.path(name, CLAIM))
    assert site.inside(name) == token
    assert len(site.forge.api.requests) >= asked
    assert sorted(os.listdir(site.path(name, "secrets"))) == ["ghapp_token"]


def test_a_hang_up_makes_it_check_everything_and_does_not_end_it(site: Site) -> None:
    name = site.session()
    daemon = site.daemon()
    site.taken_over_by(name, daemon)
    for _ in range(5):
        daemon.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    assert daemon.poll() is None
    assert site.holder(name) == ("daemon", daemon.pid)


def test_a_service_manager_is_notified(site: Site) -> None:
    path = os.path.join(site.world.root, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(20)
        daemon = site.daemon(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
        assert manager.recv(4096).decode() == "READY=1\nSTATUS=renewing 0 of 0 tokens"
        began = time.monotonic()
        for _ in range(4):
            while manager.recv(4096) != b"WATCHDOG=1":
                pass
        # Half of WATCHDOG_USEC lies between two; late ones may come together.
        assert 1.0 < time.monotonic() - began < bound(4)
        name = site.session()
        while not (said := manager.recv(4096)).startswith(b"STATUS=renewing 1 of 1 tokens; next renewal at "):
            assert said == b"WATCHDOG=1" or said.startswith(b"STATUS=")
        daemon.send_signal(signal.SIGHUP)
        while not manager.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC="):
            pass
        while not manager.recv(4096).startswith(b"READY=1"):
            pass
        with open(f"/proc/{daemon.pid}/environ", "rb") as file:
            assert b"NOTIFY_SOCKET" in file.read()  # as it was started; children inherit os.environ
        assert ended(daemon, signal.SIGTERM) == 0
        while manager.recv(4096) != b"STOPPING=1\nSTATUS=ending":
            pass
        assert site.inside(name)


# --- seen from outside ----------------------------------------------------------------------------


def test_ps_and_status_show_the_daemon(site: Site) -> None:
    name = site.session()
    with site.world.session() as mounted:
        table = site.world.podbot("ps", check=True).stdout.splitlines()
        assert table[0].split()[-1] == "TOKEN"
        (row,) = [line for line in table if line.startswith(name)]
        assert "s old, renews in 54m" in row
        tokens = site.ps()
        assert tokens[mounted] is None
        assert tokens[name]["holder"] == {"pid": site.run.pid, "kind": "session"}
        assert 3000 < tokens[name]["expires_at"] - time.time() <= 3600
        assert site.inside(name) not in json.dumps(tokens)
    state = site.world.podbot("token-daemon", "status", check=True).stdout
    assert "unit: not installed" in state
    assert f"session (process {site.run.pid})" in state
    status = json.loads(site.world.podbot("token-daemon", "status", "--json", check=True).stdout)
    assert status["sessions"] == [{"session": name, "token": site.ps()[name]}]
    assert status["unit"]["installed"] is False


# --- systemd --------------------------------------------------------------------------------------


@pytest.fixture
def operator(tmp_path: Any) -> Iterator[dict[str, str]]:
    """A home of its own, with a short path for a manager's sockets."""
    root = tempfile.mkdtemp(prefix="podbot-unit-")
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("PODBOT_", "XDG_", "DBUS_"))}
    yield {**keep, "HOME": root, "XDG_RUNTIME_DIR": os.path.join(root, "run dir%h")}
    shutil.rmtree(root)


def podbot(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "podbot", "token-daemon", *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)


def test_systemd_finds_no_error_in_the_unit(operator: dict[str, str]) -> None:
    os.mkdir(operator["XDG_RUNTIME_DIR"], 0o700)
    done = podbot(operator, "install")
    assert done.returncode == 1, "no manager answers here: the daemon does not run, and that is said"
    assert "it is not running" in done.stderr
    assert f"systemctl --user enable --now {UNIT}" in done.stderr
    assert "loginctl enable-linger" in done.stderr
    unit = os.path.join(operator["HOME"], ".config/systemd/user", UNIT)
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--user", unit], env=operator, capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    removed = podbot(operator, "uninstall")
    assert (removed.returncode, os.path.exists(unit)) == (1, False)
    assert "systemd did not answer" in removed.stderr
    assert podbot(operator, "uninstall").returncode == 0


MANAGER = """
mount -t tmpfs tmpfs /run/systemd 2>/dev/null || { mkdir -p /run/systemd; mount -t tmpfs tmpfs /run/systemd; }
mkdir /run/systemd/system
/lib/systemd/systemd --user & manager=$!
trap 'systemctl --user exit; wait $manager' EXIT
for _ in $(seq 100); do systemctl --user is-system-running >/dev/null 2>&1 && break; sleep 0.1; done
set -e
cd "$TREE"
"$PYTHON" -m podbot token-daemon install
"$PYTHON" -m podbot token-daemon install
"$PYTHON" -m podbot token-daemon status
pid=$(systemctl --user show -p MainPID --value UNIT)
grep -E 'NoNewPrivs|Seccomp:' /proc/$pid/status
nsenter -t $pid -m sh -c 'touch /etc/x "$HOME/x" /usr/x' 2>&1 || true
systemctl --user reload UNIT
kill -9 $pid
again() { now=$(systemctl --user show -p MainPID --value UNIT); [ "$now" != 0 ] && [ "$now" != $pid ]; }
for _ in $(seq 150); do again && systemctl --user is-active --quiet UNIT && break; sleep 0.1; done
systemctl --user is-active UNIT
"$PYTHON" -m podbot token-daemon uninstall
systemctl --user is-active UNIT || true
test -d "$XDG_RUNTIME_DIR/podbot" && echo directory is there
""".replace("UNIT", UNIT)


@pytest.mark.skipif(ROOTLESS, reason="a manager of its own needs a mount namespace, which root makes here")
def test_a_real_user_manager_runs_the_unit(operator: dict[str, str]) -> None:
    os.mkdir(operator["XDG_RUNTIME_DIR"], 0o700)
    environ = {**operator, "PYTHON": sys.executable, "TREE": os.path.dirname(os.path.dirname(__file__))}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", MANAGER],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done
    assert done.stderr.count(f"{UNIT} runs, and starts when you log in") == 2, done.stderr
    assert "wrote" in done.stderr
    assert "unchanged" in done.stderr
    assert "unit: active, enabled, renewing 0 of 0 tokens" in lines
    assert "NoNewPrivs:\t1" in lines
    assert "Seccomp:\t2" in lines
    assert done.stdout.count("Read-only file system") == 3, done.stdout
    assert lines[-3:] == ["active", "inactive", "directory is there"]
