"""The tokens' part of ``make bench``: the cost of a token-daemon, and the time until a new token is visible inside."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from e2e.forge import forge
from e2e.harness import PODBOT, World, close_world, new_world
from podbot.config.write import set_keys
from podbot.github.grant import Grant
from podbot.github.token_file import SECRETS, TokenFile
from podbot.testing import FakeGitHub

SESSIONS = 100
STEADY_SECONDS = 25
WRITES = 20
_TICK = os.sysconf("SC_CLK_TCK")

# Runs in the sandbox: prints the time at which each new token could be read. The clock is the host's.
WATCH = """
import sys, time
seen = ""
end = time.time() + 120
while time.time() < end:
    try:
        with open("/run/secrets/ghapp_token") as file:
            found = file.read()
    except FileNotFoundError:
        continue
    now = time.time()
    if found != seen:
        seen = found
        print(found, now, flush=True)
    if found == "end":
        break
"""


def bench_daemon() -> dict[str, Any]:
    """A daemon with 100 sessions whose tokens it has issued: memory, and processor time while no renewal is due."""
    names = [f"bench-{number:03d}" for number in range(SESSIONS)]
    with (
        FakeGitHub(repositories=tuple(f"octo/{name}" for name in names)) as github,
        tempfile.TemporaryDirectory(prefix="podbot-bench-") as root,
        contextlib.ExitStack() as stack,
    ):
        key = github.write_key(os.path.join(root, "app.pem"))
        for name in names:
            stack.enter_context(_session(os.path.join(root, "podbot", name), name, github, key))
        environ = {**os.environ, "HOME": root, "XDG_RUNTIME_DIR": root}
        daemon = subprocess.Popen([*PODBOT, "token-daemon"], env=environ, stderr=subprocess.DEVNULL)
        try:
            while github.mints < SESSIONS:
                assert daemon.poll() is None
                time.sleep(0.1)
            time.sleep(2)
            begin, used = time.monotonic(), _used(daemon.pid)
            time.sleep(STEADY_SECONDS)
            percent = (_used(daemon.pid) - used) / (time.monotonic() - begin) * 100
            rss = _rss(daemon.pid) / 1024
            needless = github.mints - SESSIONS
        finally:
            daemon.terminate()
            daemon.wait()
    return {
        "name": f"token-daemon with {SESSIONS} sessions, {STEADY_SECONDS} s steady",
        "other": f"{rss:.1f} MiB, {percent:.2f} % of a core, {needless} needless mints",
        "asked": "< 60 MiB, < 0.5 %",
        "rss_mib": round(rss, 1),
        "cpu_percent": round(percent, 2),
        "needless_mints": needless,
    }


@contextlib.contextmanager
def _session(path: str, name: str, github: FakeGitHub, key: str) -> Iterator[None]:
    """A session as a live `podbot run` has it, after it has released the token's renewal to the daemon."""
    os.makedirs(os.path.join(path, SECRETS), 0o700)
    os.chmod(os.path.dirname(path), 0o700)
    endpoint = "unix:///nowhere/podman.sock"
    with open(os.path.join(path, "session.json"), "w", encoding="utf-8") as file:
        json.dump({"session": name, "endpoint": endpoint, "kept": False}, file)
    Grant(
        repo=f"octo/{name}", server_url="https://github.com", api_url=github.url, app_id=github.app_id,
        installation_id=github.installation_id, private_key_path=key, permissions={"contents": "write"},
        container=name, endpoint=endpoint,
    ).store(path)  # fmt: skip
    with open(os.path.join(path, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _used(pid: int) -> float:
    """Processor time of a process in seconds, user and system."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _rss(pid: int) -> int:
    """Resident memory in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def bench_visible(image: str) -> dict[str, Any]:
    """From the call that writes a token, including its fsync, until a process in the sandbox has read it."""
    world = new_world(image, '[sandbox]\nnetwork = "host"\n')  # the forge listens on the host's loopback
    try:
        with forge(os.path.join(world.root, "forge")) as made:
            for key, value in made.config(os.path.join(world.env["HOME"], "app.pem")).items():
                set_keys(world.config, {key: value})
            made.repo("octo/shop")
            delays = sorted(_delays(world))
    finally:
        close_world(world)
    p50, most = statistics.median(delays) * 1000, delays[-1] * 1000
    return {
        "name": f"a written token is read inside ({len(delays)} writes)",
        "other": f"p50 {p50:.1f} ms, max {most:.1f} ms",
        "asked": "< 100 ms",
        "p50_ms": round(p50, 1),
        "max_ms": round(most, 1),
    }


def _delays(world: World) -> list[float]:
    name = "bench-visible"
    words = ("python3", "-c", WATCH)
    run = world.start("run", "--repo", "octo/shop", "--agent", "custom", "--name", name, "--rm", "--", *words)
    assert run.stdout is not None
    written: dict[str, float] = {}
    seen: dict[str, float] = {}
    file = TokenFile(os.path.join(world.runtime, name, SECRETS))
    first = run.stdout.readline()
    assert first, run.communicate()
    for number in range(WRITES):
        time.sleep(0.05)
        text = f"bench_{number}"
        written[text] = time.time()
        file.write(text)
        found, at = run.stdout.readline().split()
        seen[found.decode()] = float(at)
    file.write("end")
    run.communicate(timeout=60)
    assert seen.keys() == written.keys()
    return [seen[text] - at for text, at in written.items()]


def bench_tokens(image: str) -> list[dict[str, Any]]:
    """Both rows."""
    return [bench_daemon(), bench_visible(image)]


if __name__ == "__main__":
    from podbot.images.recipe import load_recipe

    for row in bench_tokens(sys.argv[1] if len(sys.argv) > 1 else load_recipe().image):
        print(f"| {row['name']} | {row['other']} | {row['asked']} |")
