"""The rows of ``make bench`` for shells: a command in a sandbox that is up, beside other ways to run one there.

The packages of others are installed by this target alone, into an environment of their own below ``.e2e/``. One that
cannot be installed or does not run here is reported as such.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import podbot
from e2e.bench import compare, first_result, paired, say, timed
from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter
from e2e.shells import check_connection
from podbot.shell import HostShell, PodmanShell

PEERS = os.path.join(".e2e", "bench-peers")
PACKAGES = ("swe-rex==1.4.0", "aiohttp", "llm-sandbox[podman]==0.3.46")  # swe-rex imports aiohttp undeclared
INSTALL_SECONDS = 300
RUN_SECONDS = 300
FLOOD = 200_000_000

# Each prints the seconds of so many commands as JSON. Its arguments: the engine's socket, the container, the number.
EXEC_RUN = """
import json, sys, time
from podman import PodmanClient
socket, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with PodmanClient(base_url=f"unix://{socket}") as client:
    container = client.containers.get(name)
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        code, _ = container.exec_run(["true"])
        times.append(time.perf_counter() - begin)
print(json.dumps(times))
"""
_REX = """
import asyncio, json, subprocess, sys, time
from swerex.runtime.abstract import Command
async def measure(runtime, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        answer = await runtime.execute(Command(command=["true"]))
        times.append(time.perf_counter() - begin)
        assert answer.exit_code == 0
    print(json.dumps(times), flush=True)
"""
# Its server and its client in one container without a network: their HTTP goes by that container's loopback.
SWE_REX = (
    _REX
    + """
from swerex.runtime.config import RemoteRuntimeConfig
from swerex.runtime.remote import RemoteRuntime
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
words = [sys.executable, "-m", "swerex.server", "--port", "8021", "--auth-token", "t"]
async def main(count):
    server = subprocess.Popen(words, **quiet)
    runtime = RemoteRuntime.from_config(RemoteRuntimeConfig(host="http://127.0.0.1", port=8021, auth_token="t"))
    await runtime.wait_until_alive(timeout=60)
    await measure(runtime, count)
    server.terminate()
asyncio.run(main(int(sys.argv[3])))
"""
)
REX_ON_PODBOT = (
    _REX
    + """
from podbot.integrations.swerex_deployment import PodbotDeployment
async def main(count):
    deployment = PodbotDeployment()
    await deployment.start()
    try:
        await measure(deployment.runtime, count)
    finally:
        await deployment.stop()
asyncio.run(main(int(sys.argv[3])))
"""
)
LLM_SANDBOX = """
import json, sys, time
from podman import PodmanClient
from llm_sandbox import SandboxSession, SandboxBackend
socket, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with PodmanClient(base_url=f"unix://{socket}") as client:
    session = SandboxSession(
        backend=SandboxBackend.PODMAN, client=client, container_id=name, lang="python", skip_environment_setup=True
    )
    session.open()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        session.execute_command("true")
        times.append(time.perf_counter() - begin)
print(json.dumps(times))
"""


@contextlib.contextmanager
def opened(world: World, session: str) -> Iterator[tuple[PodmanShell, str]]:
    """A shell in a running session, by the socket of its guest, and the path of the engine's socket."""
    config = podbot.load_config(podbot.LoadOptions(environ=world.env))
    with podbot.open_engine(config, environ=world.env) as engine:
        socket = engine.endpoint.removeprefix("unix://")
    with podbot.open_shell(config, session, root="/", validator=None, environ=world.env) as shell:
        check_connection(shell)
        yield shell, socket


def bench_shell(world: World, session: str, rounds: int) -> list[dict[str, Any]]:
    """One command, 50 at once, a flood."""
    with opened(world, session) as (shell, socket):
        ours = percentiles([one(shell) for _ in range(rounds * 50)])
        name = "PodmanShell.execute(['true'])"
        rows = [
            {"name": name, "figures": shown(ours), "asked": "p50 <= 1.2 ms, p95 <= 3 ms", **ours},
            _beside_podman(world, session, shell, rounds),
            _at_once(shell, rounds),
            _flood(shell),
        ]
        words = [socket, session, str(rounds * 5)]
        rows += [
            _peer(world, "podman-py exec_run(['true'])", lambda: [sys.executable, "-c", EXEC_RUN, *words]),
            _peer(world, "llm-sandbox execute_command('true')", lambda: [_installed(), "-c", LLM_SANDBOX, *words]),
            _peer(world, "swe-rex execute(['true'])", lambda: [*_in_container(world), "-c", SWE_REX, *words]),
            _peer(
                world,
                "the same with podbot's deployment",
                lambda: [interpreter("swe-rex", *PACKAGES[:2]), "-c", REX_ON_PODBOT, *words],
                asked="p50 <= swe-rex",
                env={**world.env, "PYTHONPATH": str(ROOT)},
            ),
        ]
    for row in rows:
        say(row)
    return rows


def bench_opening(world: World, rounds: int) -> list[dict[str, Any]]:
    """From nothing to the result of a first command, and a command of this host's; each beside what it replaces."""
    work, env = world.workspace(), world.podman_env()

    def opened_shell() -> float:
        begin = time.perf_counter()
        with PodmanShell.open(work, network="none", environ=world.env) as shell:
            one(shell)
            return time.perf_counter() - begin

    def commands() -> float:
        return first_result(world.image, work, "true", env)

    def alone() -> float:
        begin = time.perf_counter()
        subprocess.run(["true"], check=True)
        return time.perf_counter() - begin

    other = "podman create, start, exec"
    with HostShell("/tmp", validator=None) as host:
        return [
            compare("a sandbox, to the first result of its shell", opened_shell, other, commands, "<= 0.6", rounds),
            compare("HostShell.execute(['true'])", lambda: one(host), "subprocess.run(['true'])", alone, "<= 1.5",
                    rounds * 50),
        ]  # fmt: skip


def _in_container(world: World) -> list[str]:
    """A Python with the peers' packages in a container of podbot's image."""
    (packages,) = glob.glob(os.path.join(os.path.dirname(_installed()), "..", "lib", "python3*", "site-packages"))
    mount = f"{os.path.abspath(packages)}:/peers:ro"
    run = ["podman", "run", "--rm", "--network", "none", "-v", mount, "-e", "PYTHONPATH=/peers"]
    return [*run, world.image, "python3"]


def one(shell: PodmanShell | HostShell) -> float:
    """Seconds of one command."""
    begin = time.perf_counter()
    result = shell.execute(["true"])
    seconds = time.perf_counter() - begin
    assert result.exit_code == 0
    return seconds


def percentiles(times: list[float]) -> dict[str, float]:
    """In ms."""
    parts = statistics.quantiles(times, n=20)
    return {"p50_ms": round(parts[9] * 1000, 2), "p95_ms": round(parts[18] * 1000, 2), "rounds": len(times)}


def shown(figures: dict[str, float]) -> str:
    """For the table."""
    return f"p50 {figures['p50_ms']} ms, p95 {figures['p95_ms']} ms"


def _beside_podman(world: World, session: str, shell: PodmanShell, rounds: int) -> dict[str, Any]:
    command = ["podman", "exec", session, "true"]
    row = paired(lambda: one(shell), lambda: timed(command, world.podman_env()), rounds)
    return {"name": "the same", "other": "podman exec X true", "asked": "", **row}


def _at_once(shell: PodmanShell, rounds: int) -> dict[str, Any]:
    times = []
    with ThreadPoolExecutor(50) as pool:
        for _ in range(max(5, rounds // 2)):
            begin = time.perf_counter()
            list(pool.map(lambda _: one(shell), range(50)))
            times.append(time.perf_counter() - begin)
    seconds = statistics.median(times[1:])  # the first one starts the threads
    return {"name": "50 commands at once", "figures": f"{seconds:.3f} s", "asked": "<= 0.2 s", "seconds": seconds}


def _flood(shell: PodmanShell) -> dict[str, Any]:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # from here on the peak is that of the flood
    before = _memory("VmRSS")
    result = shell.execute(f"head -c {FLOOD} /dev/zero", timeout_seconds=120)
    assert result.truncated
    grown = (_memory("VmHWM") - before) / 1024
    seconds = result.duration_seconds
    figures = f"{seconds:.2f} s, {grown:.1f} MiB more"
    return {"name": "200 MB into 32 KiB", "figures": figures, "asked": "<= 1 s, <= 10 MB", "seconds": seconds}


def _memory(name: str) -> int:
    """Of this process, in KiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{name}:"))


def _peer(
    world: World, name: str, command: Callable[[], list[str]], *, asked: str = "", env: dict[str, str] | None = None
) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "asked": asked}
    try:
        done = subprocess.run(
            command(), env=env or world.podman_env(), capture_output=True, text=True, timeout=RUN_SECONDS, check=True
        )
        figures = percentiles(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.CalledProcessError as exc:
        last = (exc.stderr or exc.stdout or "").strip().splitlines()[-1:]
        return {**row, "figures": f"did not run here: {' '.join(last)[:120]}"}
    except subprocess.TimeoutExpired:
        return {**row, "figures": f"did not end within {RUN_SECONDS} s"}
    return {**row, "figures": shown(figures), **figures}


def _installed() -> str:
    """The interpreter of the peers' own environment. Raises CalledProcessError when they cannot be installed."""
    python = os.path.join(PEERS, "bin", "python")
    for words in ([sys.executable, "-m", "venv", PEERS], [python, "-m", "pip", "install", "-q", *PACKAGES]):
        subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=True)
    return python
