"""Rows of ``make bench`` for ``podbot host``, compared with ``podman exec -i`` in the same container, or a similar
one.

Both are warm sessions of one agent (``host/inside/agent.py bench``), unless start-up is measured. The same few lines
of Python drive both over pipes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import select
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from e2e.bench import CONSOLE, paired, say
from e2e.harness import World
from e2e.host.inside.agent import ACP_HEAD, CODEX_HEAD
from e2e.host.pipe import AGENT, INSIDE, config_file
from e2e.memory import Peak

MEGABYTES = 100
BLOCK, BLOCKS = 100, 24  # consecutive round trips, and the number of blocks: 2,400 each
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'


class Frames(NamedTuple):
    """A protocol's usual frames: one of 4 KiB, a small request, and the beginning of a frame with an order."""

    large: bytes
    ping: bytes
    order: bytes


def frames(head: bytes, asking: bytes) -> Frames:
    """Frames made from the beginning of a notification and of a request."""
    start = head + b'"params":{"number":0,"text":"'
    large = start + b"x" * (4096 - len(start) - 4) + b'"}}\n'
    return Frames(
        large, asking + b'"params":{"sessionId":"s","text":"%s"}}\n' % (b"x" * 100), head + b'"params":{"order":'
    )


FRAMES = {
    "acp": frames(ACP_HEAD, b'{"jsonrpc":"2.0","id":7,"method":"session/update",'),
    "codex_app_server": frames(CODEX_HEAD, b'{"id":7,"method":"item/tool/requestUserInput",'),
}


class Session:
    """An agent at the other end of two pipes, which speaks ``mode``."""

    def __init__(self, command: Sequence[str], env: dict[str, str], mode: str = "acp") -> None:
        self.frames = FRAMES[mode]
        self.child = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self._in, self._out = self.child.stdin.fileno(), self.child.stdout.fileno()
        fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, 1 << 20)  # a reader whose memory is not measured

    def ping(self, frame: bytes = b"") -> float:
        """Seconds of a round trip."""
        begin = time.perf_counter()
        os.write(self._in, frame or self.frames.ping)
        got = b""
        while not got.endswith(b"\n"):
            got += self._read()
        return time.perf_counter() - begin

    def pour(self, megabytes: int, *, after: float = 0) -> float:
        """Seconds until this many bytes have arrived from the agent in frames of 4 KiB; first nobody reads for a
        while.
        """
        begin = time.perf_counter()
        order = self._order("pour", megabytes)
        time.sleep(after)
        self._receive((megabytes << 20) + len(order), order)
        return time.perf_counter() - begin

    def drain(self, megabytes: int) -> float:
        """Seconds until the agent has received this many bytes in frames of 4 KiB."""
        begin = time.perf_counter()
        order = self._order("drain", megabytes)
        self._send(megabytes)
        self._receive(len(order), order)
        return time.perf_counter() - begin

    def through(self, megabytes: int) -> float:
        """Seconds until this many bytes have been sent to the agent and back."""
        begin = time.perf_counter()
        order = self._order("through", megabytes)
        writer = threading.Thread(target=self._send, args=(megabytes,))
        writer.start()
        self._receive((megabytes << 20) + len(order), order)
        writer.join()
        return time.perf_counter() - begin

    def _order(self, word: str, megabytes: int) -> bytes:
        order = self.frames.order + b'"%s/%d"}}\n' % (word.encode(), megabytes)
        os.write(self._in, order)
        return order

    def _send(self, megabytes: int) -> None:
        block = self.frames.large * 256
        for _ in range(megabytes):
            view = memoryview(block)
            while view:
                view = view[os.write(self._in, view) :]

    def _receive(self, size: int, end: bytes) -> None:
        last = b""
        while size > 0:
            last = self._read()
            size -= len(last)
        assert size == 0, "more came than was asked for"
        assert last.endswith(end[-20:])

    def _read(self) -> bytes:
        assert select.select([self._out], [], [], 60)[0], "nothing came for a minute"
        data = os.read(self._out, 1 << 20)
        assert data, f"it ended: {self.child.wait()}"
        return data

    def close(self) -> None:
        """Close the agent's input and wait."""
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(60)


@contextlib.contextmanager
def hosted(world: World, mode: str) -> Iterator[tuple[Session, str]]:
    """A warm session of ``podbot host`` and its container's name."""
    name = f"bench-{random.randrange(16**6):06x}"
    with config_file(world) as config:
        words = ["host", "--workspace", world.workspace(), "--agent", "custom", "--agent-mode", mode, "--name", name]
        made = Session([CONSOLE, "--config", config, *words, "--", "python3", AGENT, "bench", mode], world.env, mode)
        try:
            made.ping()
            yield made, name
        finally:
            made.close()


@contextlib.contextmanager
def unfiltered(world: World, mode: str) -> Iterator[Session]:
    """A warm session of ``podbot run`` with the same agent."""
    with config_file(world) as config:
        words = ["run", "--workspace", world.workspace(), "--agent", "custom", "--", "python3", AGENT, "bench", mode]
        made = Session([CONSOLE, "--config", config, *words], world.env, mode)
        try:
            made.ping()
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def beside(world: World, name: str, mode: str) -> Iterator[Session]:
    """A warm exec of the same agent in the same container."""
    made = Session(["podman", "exec", "-i", name, "python3", AGENT, "bench", mode], world.podman_env(), mode)
    try:
        made.ping()
        yield made
    finally:
        made.close()


def bench_host(world: World, rounds: int) -> list[dict[str, Any]]:
    """All rows."""
    rows = []
    for mode, what in (("acp", "ACP filter"), ("codex_app_server", "Codex filter")):
        with hosted(world, mode) as (ours, name), beside(world, name, mode) as other:
            rows += [latency(ours, other)] if mode == "acp" else []
            rows += throughput(f"podbot host ({what})", ours, other, ">= 1.2", rounds)
            if mode == "acp":
                # `podbot host` judges every frame; the same relay without a filter is that of `podbot run`.
                with unfiltered(world, mode) as plain:
                    rows += throughput("podbot run (no filter)", plain, other, ">= 1.5", rounds)
    rows += [stalled(world), first_reply(world, rounds)]
    return rows


def latency(ours: Session, other: Session) -> dict[str, Any]:
    """Round trips of small frames, in alternating blocks."""
    times: dict[Session, list[float]] = {ours: [], other: []}
    for session in (ours, other):
        for _ in range(BLOCK):
            session.ping()
    for number in range(BLOCKS):
        for session in (ours, other) if number % 2 else (other, ours):
            times[session] += [session.ping() for _ in range(BLOCK)]
    cuts = {session: statistics.quantiles(values, n=100) for session, values in times.items()}
    p50 = [1000 * cuts[session][49] for session in (ours, other)]
    p99 = [1000 * cuts[session][98] for session in (ours, other)]
    row = {
        "name": "podbot host, round trip of a small frame",
        "other": "podman exec -i X",
        "asked": "added p50 <= 0.5 ms, p99 <= 3 ms",
        "podbot_p50_ms": round(p50[0], 3),
        "other_p50_ms": round(p50[1], 3),
        "podbot_p99_ms": round(p99[0], 3),
        "other_p99_ms": round(p99[1], 3),
        "added_p50_ms": round(p50[0] - p50[1], 3),
        "added_p99_ms": round(p99[0] - p99[1], 3),
        "rounds": BLOCK * BLOCKS,
        "figures": f"p50 {p50[0]:.2f} / {p50[1]:.2f} ms, p99 {p99[0]:.2f} / {p99[1]:.2f} ms",
    }
    say(row)
    return row


def throughput(what: str, ours: Session, other: Session, asked: str, rounds: int) -> list[dict[str, Any]]:
    """Frames of 4 KiB, 100 MB in total: there and back at the same time, and in each direction."""
    ways: list[tuple[str, Callable[[Session, int], float]]] = [
        ("through", Session.through),
        ("from", Session.pour),
        ("to", Session.drain),
    ]
    rows = []
    for way, measure in ways:
        row = paired(lambda m=measure: m(ours, MEGABYTES), lambda m=measure: m(other, MEGABYTES), max(5, rounds // 3))  # type: ignore[misc]
        row |= {
            "name": f"{what}, {MEGABYTES} MB {way} the agent in 4 KiB frames (throughput)",
            "other": "podman exec -i X",
            "asked": asked,
            "ratio": round(1 / row["ratio"], 2),
            "low": round(1 / row["high"], 2),
            "high": round(1 / row["low"], 2),
        }
        say(row)
        rows.append(row)
    return rows


def stalled(world: World) -> dict[str, Any]:
    """podbot's peak memory while 1 GB is offered and nobody reads for 10 s."""
    with hosted(world, "acp") as (ours, _):
        peak = Peak(ours.child.pid)
        ours.pour(1024, after=10)
    row = {
        "name": "podbot host's memory behind a client that stops for 10 s before 1 GB",
        "asked": "< 64 MiB",
        "podbot_peak_mib": round(peak.kib / 1024, 1),
    }
    say(row)
    return row


def first_reply(world: World, rounds: int) -> dict[str, Any]:
    """From the start of podbot to the agent's answer to ``initialize``; the clean-up is not counted."""
    work = world.workspace()
    agent = ["python3", AGENT, "bench"]

    def ours(config: str) -> float:
        begin = time.perf_counter()
        words = ["host", "--workspace", work, "--agent", "custom", "--agent-mode", "acp"]
        session = Session([CONSOLE, "--config", config, *words, "--", *agent], world.env)
        session.ping(INITIALIZE)
        seconds = time.perf_counter() - begin
        session.close()
        return seconds

    def other() -> float:
        env, name = world.podman_env(), f"bench-{random.randrange(16**6):06x}"
        mounts = ["-v", f"{work}:{work}", "-v", f"{INSIDE}:/e2e/host:ro"]
        begin = time.perf_counter()
        for step in (
            ["create", "--name", name, "--network", "none", "--init", *mounts, world.image, "sleep", "infinity"],
            ["start", name],
        ):
            subprocess.run(["podman", *step], env=env, capture_output=True, check=True)
        session = Session(["podman", "exec", "-i", "-w", work, name, *agent], env)
        session.ping(INITIALIZE)
        seconds = time.perf_counter() - begin
        session.close()
        subprocess.run(["podman", "rm", "-f", "-t", "0", name], env=env, capture_output=True, check=True)
        return seconds

    with config_file(world) as config:
        row = paired(lambda: ours(config), other, max(5, rounds // 2))
    row |= {
        "name": "podbot host, from its start to the answer to initialize",
        "other": "podman create, start, exec -i",
        "asked": "<= 0.8",
    }
    say(row)
    return row
