"""The gate's steps with their time limits, and the tests that `make smoke` runs."""

from __future__ import annotations

import ast
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANG

ROOT = Path(__file__).parents[1]
STEP = (sys.executable, ROOT / "scripts" / "step.py")
HOUR = "3600"

HANGS = """
import subprocess, sys, threading, faulthandler
faulthandler.enable()
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
thread = threading.Thread(target=child.wait, name="other", daemon=True)
thread.start()
print("hangs", child.pid, flush=True)
thread.join()
"""


def step(*command: str, name: str = "demo", limit: str = HOUR) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*STEP, name, limit, *command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("command", "code", "how"), [("exit 0", 0, "passed"), ("exit 3", 3, "exit code 3")])
def test_a_step_has_its_commands_status_and_prints_its_time(command: str, code: int, how: str) -> None:
    done = step("sh", "-c", f"echo working; {command}")
    assert done.returncode == code
    assert re.fullmatch(rf"== demo\nworking\n== demo: \d+ s, {how}\n", done.stdout)


def test_a_commands_signal_is_a_failure() -> None:
    assert step("sh", "-c", "kill -KILL $$").returncode == 137


@pytest.mark.parametrize(
    ("number", "code", "how"),
    [(signal.SIGALRM, 124, "ended at its limit"), (signal.SIGTERM, 143, "ended by a signal")],
)
def test_a_step_that_hangs_is_ended_with_all_that_it_started(number: int, code: int, how: str) -> None:
    """ALRM is what the limit sends. What the step started in another session ends, too."""
    child = subprocess.Popen(
        [*STEP, "demo", HOUR, sys.executable, "-c", HANGS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    said = [child.stdout.readline(), child.stdout.readline()]
    below = os.pidfd_open(int(said[1].split()[1]))
    child.send_signal(number)
    out, err = child.communicate()
    assert child.returncode == code
    assert out.splitlines()[-1].endswith(how)
    assert ("Thread 0x" in err and "in wait" in err) == (number == signal.SIGALRM), err
    assert select.select([below], [], [], HANG)[0], "a process of the step is left"
    os.close(below)


def test_a_limit_strikes() -> None:
    done = step("sleep", "600", limit="0.01")
    assert done.returncode == 124
    assert "still runs at its limit" in done.stdout


def test_each_smoke_test_exists() -> None:
    named = [line for line in (ROOT / "e2e" / "smoke.txt").read_text("utf-8").splitlines() if line[:1] not in ("", "#")]
    assert 30 <= len(named) <= 45
    assert len(set(named)) == len(named)
    for path, name in (line.split("::") for line in named):
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert name.partition("[")[0] in functions, f"{path} has no {name}"


def test_a_suite_is_started_with_no_variable_that_podbot_would_read() -> None:
    """It would refuse an unknown one, in every test that reads the configuration."""
    text = (ROOT / "Makefile").read_text() + (ROOT / ".ci" / "run").read_text()
    assert not re.findall(r"\bPODBOT_(?!E2E_|BENCH_)\w+=", text)
