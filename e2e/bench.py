"""``make bench``: podbot compared with the alternative, paired in one run, as ratios with spread.

Each figure alternates the two commands (A B, B A, …) so that other load on the machine affects both. A ratio is the
median of A over the median of B; its spread is the 5th to 95th percentile of 2,000 bootstrap resamples. Nothing here
passes or fails: it only reports.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from e2e.bench_tokens import bench_tokens
from e2e.harness import INNER, MAKE_INNER, World, close_world, new_world
from e2e.memory import Peak, drained

CONSOLE = os.path.join(os.path.dirname(sys.executable), "podbot")
MEGABYTES = 100


def timed(command: Sequence[str] | Sequence[Sequence[str]], env: dict[str, str]) -> float:
    """Seconds for a command, or for several in sequence."""
    steps = [command] if isinstance(command[0], str) else command
    begin = time.perf_counter()
    for step in steps:
        subprocess.run(step, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)  # type: ignore[arg-type]
    return time.perf_counter() - begin


def first_result(image: str, work: str, command: str, env: dict[str, str]) -> float:
    """Seconds of ``podman create``, ``start`` and ``exec`` of a command, on ``work`` and without a network."""
    name = f"bench-{random.randrange(16**6):06x}"
    options = ["--network", "none", "--init", "-v", f"{work}:/workspace"]
    steps = [
        ["podman", "create", "--name", name, *options, image, "sleep", "infinity"],
        ["podman", "start", name],
        ["podman", "exec", "-w", "/workspace", name, command],
    ]
    seconds = timed(steps, env)
    subprocess.run(["podman", "rm", "-f", "-t", "0", name], env=env, capture_output=True, check=True)
    return seconds


def paired(a: Callable[[], float], b: Callable[[], float], rounds: int) -> dict[str, Any]:
    """Alternate ``a`` and ``b``; medians in ms and the ratio of medians with its spread."""
    a(), b()
    left: list[float] = []
    right: list[float] = []
    for number in range(rounds):
        for measure, into in ((a, left), (b, right)) if number % 2 else ((b, right), (a, left)):
            into.append(measure())
    ratios = sorted(_resampled(left) / _resampled(right) for _ in range(2000))
    return {
        "podbot_ms": round(statistics.median(left) * 1000, 1),
        "other_ms": round(statistics.median(right) * 1000, 1),
        "ratio": round(statistics.median(left) / statistics.median(right), 2),
        "low": round(ratios[100], 2),
        "high": round(ratios[1900], 2),
        "rounds": rounds,
    }


def _resampled(values: list[float]) -> float:
    return statistics.median(random.choices(values, k=len(values)))


def bench_commands(world: World, session: str, rounds: int) -> list[dict[str, Any]]:
    """Wall time of exec, ps, help and a whole run against Podman's own CLI."""
    podman_env, env = world.podman_env(), world.env
    typer = [sys.executable, "-c", "import typer"]
    shared = ["--network", "none", "--init"]

    def sequence() -> float:
        name = f"bench-{random.randrange(16**6):06x}"
        steps = [
            ["podman", "create", "--name", name, *shared, "-v", f"{work}:/workspace", world.image, "sleep", "infinity"],
            ["podman", "start", name],
            ["podman", "exec", "-w", "/workspace", name, "true"],
            ["podman", "rm", "-f", "-t", "0", name],
        ]
        return timed(steps, podman_env)

    work = world.workspace()
    run = ["run", "--workspace", work, "--agent", "custom", "--", "true"]

    def cli(*words: str) -> Callable[[], float]:
        return lambda: timed([CONSOLE, *words], env)

    def other(command: list[str]) -> Callable[[], float]:
        return lambda: timed(command, podman_env)

    half = max(5, rounds // 2)
    return [
        compare("podbot exec X -- true", cli("exec", session, "--", "true"),
                "podman exec X true", other(["podman", "exec", session, "true"]), "<= 0.35", rounds),
        compare("podbot ps", cli("ps"), "podman ps", other(["podman", "ps"]), "<= 2.5", rounds),
        compare("podbot --help", cli("--help"), "python -c 'import typer'", other(typer), "<= 1.2", rounds),
        compare("an answer of completion", cli("__complete", "bash", "podbot exec "),
                "python -c pass", other([sys.executable, "-c", "pass"]), "<= 4", rounds),
        compare("podbot run … -- true", cli(*run), "podman create, start, exec, rm -f", sequence, "<= 0.6", half),
    ]  # fmt: skip


def compare(  # noqa: PLR0917
    name: str, ours: Callable[[], float], other_name: str, other: Callable[[], float], asked: str, rounds: int
) -> dict[str, Any]:
    """One row of the table."""
    row = {"name": name, "other": other_name, "asked": asked, **paired(ours, other, rounds)}
    say(row)
    return row


# Runs inside the sandbox, so that the cost of podbot's exec is not counted: reads a line, prints the seconds of one
# run.
RESIDENT = """
import subprocess, sys, time
for line in sys.stdin:
    begin = time.perf_counter()
    subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    print(time.perf_counter() - begin, flush=True)
"""


def bench_nested(world: World, session: str, rounds: int) -> dict[str, Any]:
    """``podman run --rm IMAGE true`` in a session of the default profile, and on the host: one image, no network."""
    image = f"localhost/bench-{random.randrange(16**6):06x}"
    inside = [CONSOLE, "exec", session, "--"]
    subprocess.run([*inside, "sh", "-c", f"{MAKE_INNER}; podman tag {INNER} {image}"], env=world.env, check=True)
    saved = subprocess.run([*inside, "podman", "save", "-q", image], env=world.env, capture_output=True, check=True)
    subprocess.run(["podman", "load", "-q"], env=world.podman_env(), input=saved.stdout, check=True)
    command = ["podman", "run", "--rm", "--network", "none", image, "true"]
    resident = subprocess.Popen(
        [*inside, "python3", "-c", RESIDENT, *command], env=world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert resident.stdin is not None
    assert resident.stdout is not None
    ask, answer = resident.stdin, resident.stdout

    def nested() -> float:
        ask.write(b"\n")
        ask.flush()
        return float(answer.readline())

    def host() -> float:
        return timed(command, world.podman_env())

    try:
        return compare("nested podman run --rm true", nested, "the same on the host", host, "<= 2", rounds)
    finally:
        resident.communicate()
        subprocess.run(["podman", "rmi", image], env=world.podman_env(), capture_output=True, check=False)


def bench_throughput(world: World, session: str, rounds: int) -> dict[str, Any]:
    """100 MB from stdin through ``cat`` to stdout; compares every byte; podbot's peak memory."""
    with tempfile.NamedTemporaryFile(dir=world.root) as source:
        block = os.urandom(1 << 20)
        for number in range(MEGABYTES):
            source.write(number.to_bytes(4, "big") + block[4:])
        source.flush()
        with open(source.name, "rb") as again:
            want = hashlib.file_digest(again, "sha256").hexdigest()
        peaks: list[int] = []

        def through(command: list[str], env: dict[str, str]) -> float:
            begin = time.perf_counter()
            with (
                open(source.name, "rb") as data,
                subprocess.Popen(command, env=env, stdin=data, stdout=subprocess.PIPE) as child,
            ):
                peak = Peak(child.pid)
                assert child.stdout is not None
                got = hashlib.file_digest(child.stdout, "sha256").hexdigest()  # type: ignore[arg-type]
            seconds = time.perf_counter() - begin
            assert (got, child.returncode) == (want, 0), f"{command[0]} changed bytes or failed"
            if command[0] == CONSOLE:
                peaks.append(peak.kib)
            return seconds

        row = paired(
            lambda: through([CONSOLE, "exec", session, "--", "cat"], world.env),
            lambda: through(["podman", "exec", "-i", session, "cat"], world.podman_env()),
            rounds,
        )
    row |= {
        "name": f"{MEGABYTES} MB through podbot exec X -- cat (throughput)",
        "other": "podman exec -i X cat",
        "asked": ">= 1.5",
        "ratio": round(1 / row["ratio"], 2),
        "low": round(1 / row["high"], 2),
        "high": round(1 / row["low"], 2),
        "podbot_peak_mib": round(max(peaks) / 1024, 1),
        "byte_identical": True,
    }
    say(row)
    return row


def bench_stalled(world: World, session: str) -> dict[str, Any]:
    """podbot's peak memory while a client offers 100 MB and nobody reads for 5 s."""
    child = subprocess.Popen(
        [CONSOLE, "exec", session, "--", "head", "-c", str(MEGABYTES << 20), "/dev/zero"],
        env=world.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    out, code, peak = drained(child, after=5)
    row = {
        "name": "podbot's memory behind a reader that stops for 5 s",
        "asked": "< 80 MiB",
        "podbot_peak_mib": round(peak / 1024, 1),
        "complete": (len(out), code) == (MEGABYTES << 20, 0),
    }
    say(row)
    return row


def say(row: dict[str, Any]) -> None:
    """One line of the table."""
    if "ratio" in row:
        spread = f"{row['ratio']:.2f} ({row['low']:.2f}-{row['high']:.2f})"
        times = f"{row['podbot_ms']:.0f} / {row['other_ms']:.0f} ms"
    else:
        spread, times = "", row.get("figures", "")
    memory = f"  peak {row['podbot_peak_mib']} MiB" if "podbot_peak_mib" in row else ""
    print(f"| {row['name']} | {row.get('other', '')} | {times}{memory} | {spread} | {row['asked']} |", flush=True)


def main() -> None:
    """Run everything and write the JSON."""
    from e2e.bench_files import bench_files
    from e2e.bench_gateway import bench_gateway
    from e2e.bench_guard import bench_guard
    from e2e.bench_host import bench_host
    from e2e.bench_inspect import bench_inspect
    from e2e.bench_mcp import bench_mcp
    from e2e.bench_sessions import bench_sessions
    from e2e.bench_shell import bench_opening, bench_shell
    from e2e.bench_start import bench_first_start, bench_second_start
    from e2e.bench_suites import bench_suites
    from podbot.images.recipe import load_recipe

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--image", default=os.environ.get("PODBOT_E2E_IMAGE") or load_recipe().image)
    parser.add_argument("--out", default="bench-result.json")
    options = parser.parse_args()
    world = new_world(options.image)
    try:
        with world.session() as session:
            print("| podbot | other | medians | ratio (5-95 %) | asked |\n|---|---|---|---|---|", flush=True)
            rows = bench_commands(world, session, options.rounds)
            rows.append(bench_nested(world, session, options.rounds))
            rows.append(bench_throughput(world, session, max(5, options.rounds // 3)))
            rows.append(bench_stalled(world, session))
            rows += bench_shell(world, session, options.rounds)
            rows += bench_sessions(world, session)
        rows += bench_opening(world, options.rounds)
        rows += bench_second_start(world, max(5, options.rounds // 2))
        for row in bench_files(world, options.rounds):
            say(row)
            rows.append(row)
        rows += bench_suites(world, max(5, options.rounds // 2))
        rows += bench_host(world, options.rounds)
        rows += bench_guard(world, options.rounds)
        rows += bench_gateway(world, options.rounds)
        rows += bench_inspect(world)
        for row in bench_mcp(world):
            say(row)
            rows.append(row)
    finally:
        close_world(world)
    rows += bench_first_start()
    for row in bench_tokens(options.image):
        say(row)
        rows.append(row)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    result = {"machine": machine, "limits": resource.getrlimit(resource.RLIMIT_NOFILE), "rows": rows}
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
    print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
