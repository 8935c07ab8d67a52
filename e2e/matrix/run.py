"""Runs cells of the matrix: one client with one agent, through ``podbot host`` and, for failed steps, without it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from e2e.agents.kinds import KINDS
from e2e.agents.provider import aimock
from e2e.agents.scenario import CONTENT, FILE, Scenario, scenario
from e2e.harness import PODBOT, World
from e2e.matrix.install import Clients, installed
from e2e.matrix.outcome import Outcome, Outcomes
from e2e.matrix.report import ENDS_AFTER_CANCEL, RUNS_BEFORE_CANCEL, Plan
from e2e.matrix.steps import (
    ASKED_FILE,
    BASE,
    CLIENTS,
    FAILS,
    IMAGE,
    LOOK,
    PROMPTS,
    RECALL,
    SAID,
    STEPS,
    WORKS,
    Client,
    fixtures,
    words,
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEPT = os.path.join(ROOT, ".e2e", "matrix")
PAGE = os.path.join(ROOT, "docs", "reference", "clients.md")
CELL_LIMIT = 1800  # seconds: more than a cell takes on a machine with ten other jobs


def cells() -> list[tuple[Client, str]]:
    """Every pair, the longest first."""
    pairs = [(client, agent) for client in CLIENTS.values() for agent in client.agents]
    return sorted(pairs, key=lambda pair: -KINDS[pair[1]].weight)


def run_all(
    world: World,
    pairs: list[tuple[Client, str]],
    *,
    workers: int = 3,
    steps: Mapping[str, Iterable[str]] | None = None,
    limit: float = 240,
    control: bool = False,
    progress: Callable[[str, Outcomes], None] = lambda _cell, _outcomes: None,
) -> dict[str, Outcomes]:
    """Outcomes by "client/agent".

    ``steps``: for each of them, only these; all by default. ``limit``: seconds for each step; long, for a machine with
    other load. ``control`` tries failed steps without podbot. ``progress`` is called for each cell.
    """
    clients = installed()
    aimock()
    world.podbot("doctor", check=True)  # the engine's service is started once, not by each worker

    def one(pair: tuple[Client, str]) -> tuple[str, Outcomes]:
        client, agent = pair
        cell = f"{client.name}/{agent}"
        tried = [*BASE, *(steps[cell] if steps is not None else STEPS)]
        outcomes = run_cell(world, clients, client, agent, tried, limit=limit, control=control)
        progress(cell, outcomes)
        return cell, outcomes

    with ThreadPoolExecutor(workers) as pool:
        try:
            return dict(pool.map(one, pairs))
        except BaseException:  # an interrupt waits for running cells, not for those that have not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_cell(
    world: World, clients: Clients, client: Client, agent: str, steps: Iterable[str], *, limit: float, control: bool
) -> Outcomes:
    """One client with one agent. Its files are kept below .e2e/matrix."""
    kept = os.path.join(KEPT, f"{client.name}-{agent}")
    shutil.rmtree(kept, ignore_errors=True)
    with scenario(world, agent, aimock(), f"matrix-{client.name}-{agent}", client.mode, logs=False) as run:
        with open(run.path("fixtures.json"), "w", encoding="utf-8") as file:
            json.dump({"fixtures": fixtures(run.kind, run.workspace, run.name)}, file, indent=1)
        try:
            cell = Cell(run, clients, client, limit)
            found = cell.through_podbot(set(steps))
            failed = [step for step, outcome in found.items() if outcome.result == FAILS]
            if control and failed:
                direct = cell.directly(failed)
                found |= {step: replace(found[step], control=direct[step].result) for step in failed if step in direct}
        finally:
            shutil.copytree(run.out, kept)
    return found


@dataclass(frozen=True)
class Cell:
    """A client and an agent, prepared."""

    run: Scenario
    clients: Clients
    client: Client
    limit: float

    def through_podbot(self, steps: set[str]) -> Outcomes:
        """These steps, through ``podbot host``."""
        run = self.run
        command = [*PODBOT, *run.host_command()]
        plan = self._plan(command, [*PODBOT, *run.host_command("--ask")], {**run.world.env, **run.secrets}, steps)
        found = self._drive(plan, "driver")
        self._check(found)
        self._check_nothing_left(found)
        return found

    def _check(self, found: Outcomes) -> None:
        """Remains that the client cannot see; then remove them, for the next run of the same cell."""
        self._check_files(found)
        self._check_model(found)
        with contextlib.suppress(FileNotFoundError):
            seen = self.run.path(f"requests-{len(os.listdir(self.run.out))}.jsonl")
            os.replace(self.run.path("requests.jsonl"), seen)

    def _plan(self, command: list[str], ask: list[str], env: Mapping[str, str], steps: set[str]) -> Plan:
        extra = {
            "modules": self.clients.modules,
            "node": self.clients.node,
            "home": os.path.join(self.run.out, "client-home"),
            "by_minute": "yes" if self.run.kind.by_minute else "",
            "runs_before_cancel": str(RUNS_BEFORE_CANCEL),
            "ends_after_cancel": str(ENDS_AFTER_CANCEL),
        }
        os.makedirs(extra["home"], exist_ok=True)
        log = self.run.path("podbot-stderr")
        ordered = [step for step in STEPS if step in steps]
        return Plan(
            command, ask, dict(env), self.run.workspace, self.run.name, words(), ordered, self.limit, log, extra
        )

    def _drive(self, plan: Plan, name: str) -> Outcomes:
        """Run the client's driver; all processes that it started have ended when this returns."""
        path = self.run.path(f"{name}-plan.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(asdict(plan), file, indent=1)
        began = time.monotonic()
        with open(self.run.path(f"{name}-stderr"), "wb") as errors, open(self.run.path(f"{name}-stdout"), "w+b") as out:
            child = subprocess.Popen(
                [*self._driver(), path], stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=ROOT,
                env=self._driver_env(), start_new_session=True,
            )  # fmt: skip
            try:
                code: object = child.wait(CELL_LIMIT)
            except subprocess.TimeoutExpired:
                code = f"ended after {CELL_LIMIT} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                _end_all_of(plan.extra["home"])
            out.seek(0)
            lines = [json.loads(line) for line in out.read().decode().splitlines() if line.startswith("{")]
        took = time.monotonic() - began
        found = {line["step"]: Outcome(line["result"], line["detail"], seconds=took) for line in lines}
        why = f"the driver did not come to it (status {code})"
        return {step: found.get(step, Outcome(FAILS, why)) for step in plan.steps}

    def _driver(self) -> list[str]:
        if self.client.name == "typescript":
            return [self.clients.node, os.path.join(ROOT, "e2e", "matrix", "drive_typescript.mjs")]
        return [sys.executable, "-m", f"e2e.matrix.drive_{self.client.name}"]

    def _driver_env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, self.clients.packages])}

    def _check_files(self, found: Outcomes) -> None:
        for step, name in (("edit", FILE), ("permission", ASKED_FILE)):
            path = os.path.join(self.run.workspace, name)
            with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
                made = file.read().strip() == CONTENT and os.fstat(file.fileno()).st_uid == os.getuid()
                os.unlink(path)
                if made:
                    continue
            _fail(found, step, f"{name} is not on the host as it should be")

    def _check_model(self, found: Outcomes) -> None:
        """The model's input is in the provider's record, whatever the client reports."""
        entries = [json.loads(line) for line in self.run.read("requests.jsonl").splitlines()]
        bodies = [str(entry["body"]) for entry in entries]
        if not any(IMAGE in body for body in bodies if LOOK in body):
            _fail(found, "images", "the image did not reach the model")
        if not any(SAID in body for body in bodies if RECALL in body):
            _fail(found, "resume", "the model did not receive the earlier messages")
        for step, prompt in PROMPTS.items():
            refused = any(entry["status"] >= 400 and prompt in str(entry["body"]) for entry in entries)
            if refused and step in found:
                found[step] = replace(found[step], unanswered=True)

    def _check_nothing_left(self, found: Outcomes) -> None:
        world, end = self.run.world, time.monotonic() + 15
        while left := self._left():
            if time.monotonic() > end:
                _fail(found, "KILL", f"left behind: {' '.join(left)}")
                break
            world.podbot("ps")
            time.sleep(0.2)
        for name in left:
            world.podbot("stop", "--rm", "--time", "0", name)

    def _left(self) -> list[str]:
        """Containers and session directories of this cell."""
        world, path = self.run.world, self.run.workspace
        listed = world.podman("ps", "-a", "--filter", f"label=io.podbot.path={path}", "--format", "{{.Names}}")
        ours = (self.run.name, os.path.basename(path))
        directories = [name for name in world.sessions() if any(our in name for our in ours)]
        return sorted({*listed.stdout.split(), *directories})

    def directly(self, steps: list[str]) -> Outcomes:
        """The same client and agent in the same kind of container, with Podman alone between them."""
        run, name = self.run, f"{self.run.name}-control"
        # The steps that they depend on run as well; KILL concerns only podbot.
        wanted = {*BASE, "restart", *steps} - {"KILL"}
        plain, ask = (self._podman(name, self._planned(*flags)) for flags in ((), ("--ask",)))
        container = self._planned()["container"]
        there = [each for each in container["mounts"] if os.path.exists(each["source"])]
        mounts = [f"-v={each['source']}:{each['target']}" for each in there]
        env = [f"-e={key}={value}" for key, value in container["env"].items()]
        flags = ["--name", name, "--init", "--network=none", *mounts, *env]
        started = run.world.podman("run", "-d", *flags, run.world.image, "sleep", "infinity")
        assert started.returncode == 0, started.stderr
        try:
            found = self._drive(self._plan(plain, ask, run.world.podman_env(), wanted), "control")
        finally:
            run.world.podman("rm", "-f", "-t", "0", name)
        self._check(found)
        return found

    def _planned(self, *flags: str) -> dict[str, Any]:
        command = self.run.host_command("--dry-run", "--json", *flags)
        shown = self.run.world.podbot(*command, env=self.run.secrets, check=True)
        return dict(json.loads(shown.stdout))

    def _podman(self, name: str, planned: Mapping[str, Any]) -> list[str]:
        agent = planned["agent"]
        values = {each["name"]: each.get("value", self.run.secrets.get(each["name"], "")) for each in agent["env"]}
        env = [f"-e={key}={value}" for key, value in values.items()]
        return ["podman", "exec", "-i", *env, "-w", agent["workdir"], name, *agent["command"]]


def _end_all_of(home: str) -> None:
    """acpx leaves a process of its own behind; its home is this cell's. Its podbot ends with its input."""
    mark = f"HOME={home}".encode()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
            if mark in file.read().split(b"\0"):
                os.kill(int(entry), signal.SIGKILL)


def _fail(found: Outcomes, step: str, why: str) -> None:
    if step in found and found[step].result == WORKS:
        found[step] = replace(found[step], result=FAILS, detail=why)
