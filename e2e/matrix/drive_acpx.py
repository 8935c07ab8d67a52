"""Drives an agent with acpx, a command line for ACP agents: ``python -m e2e.matrix.drive_acpx PLAN``.

acpx starts podbot for ``sessions new`` and ends it. A prompt starts it again, for as long as acpx's own background
process runs, and resumes the session there. So each session of acpx is a sandbox, and podbot must keep conversations.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from e2e.matrix.drive_python import runs
from e2e.matrix.report import ENDS_AFTER_CANCEL, RUNS_BEFORE_CANCEL, Absent, Plan, expect, reported

Frames = list[dict[str, Any]]
IDLE = "90"  # seconds until acpx's background process ends by itself


class Acpx:
    """acpx with one command for its agent. ``home``: its own; podbot uses the operator's."""

    def __init__(self, plan: Plan, name: str, command: list[str]) -> None:
        self.plan = plan
        self.shim = os.path.join(plan.extra["home"], name)
        line = f"HOME={shlex.quote(plan.env.get('HOME', '/'))} exec {shlex.join(command)}"
        with open(self.shim, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{line} 2>>{shlex.quote(plan.log)}\n")
        os.chmod(self.shim, 0o755)

    def command(self, *words: str) -> list[str]:
        entry = os.path.join(self.plan.extra["modules"], "acpx", "dist", "cli.js")
        flags = ["--agent", self.shim, "--cwd", self.plan.workspace, "--format", "json", "--ttl", IDLE, "--approve-all"]
        return [self.plan.extra["node"], entry, *flags, *words]

    def __call__(self, *words: str, check: bool = True) -> Frames:
        """Run one command to its end: its output."""
        try:
            done = subprocess.run(
                self.command(*words), env={**self.plan.env, "HOME": self.plan.extra["home"]}, cwd=self.plan.workspace,
                capture_output=True, text=True, timeout=self.plan.limit, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{words[0]}: not within {self.plan.limit:.0f} s") from None
        frames = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if check:
            expect(done.returncode == 0, " ".join(words[:2]), _error(frames) or done.stderr.strip()[-300:])
        return frames

    def prompt(self, session: str, prompt: str, answer: str) -> Frames:
        """Run a prompt to its end, and check the agent's answer."""
        frames = self("prompt", "-s", session, self.plan.say[prompt])
        _answered(frames, self.plan.say[answer])
        return frames

    def status(self, session: str) -> dict[str, Any]:
        """``pid``: of acpx's background process."""
        return self("status", "-s", session)[0]

    def end(self, session: str) -> None:
        """As at the end of the user's own session: TERM for acpx's background process, which ends podbot in its
        usual way.
        """
        pid = self.status(session).get("pid")
        if pid is None:
            return  # it has exited by itself
        os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + self.plan.limit
        while os.path.exists(f"/proc/{pid}"):
            expect(time.monotonic() < end, "acpx's background process stays")
            time.sleep(0.05)


def _error(frames: Frames) -> str:
    return "; ".join(json.dumps(frame["error"]) for frame in frames if "error" in frame)


def _updates(frames: Frames, *kinds: str) -> Frames:
    updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    return [update for update in updates if update["sessionUpdate"] in kinds]


def _answered(frames: Frames, text: str) -> None:
    reasons = [frame["result"].get("stopReason") for frame in frames if isinstance(frame.get("result"), dict)]
    expect("end_turn" in reasons, "stop reason", reasons, _error(frames))
    chunks = _updates(frames, "agent_message_chunk")
    said = "".join(str(update["content"].get("text", "")) for update in chunks)
    expect(text in said, "answer", said)


def _calls(frames: Frames) -> str:
    return json.dumps(_updates(frames, "tool_call", "tool_call_update"))


def _methods(frames: Frames) -> set[str]:
    return {str(frame["method"]) for frame in frames if "id" in frame and "method" in frame}


class Driver:
    """The steps, first on one session, then on others."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.main = Acpx(plan, "agent", plan.command)
        self.ask = Acpx(plan, "agent-that-asks", plan.ask)
        bare = list(plan.command)
        if "--name" in bare:  # two sessions of acpx are two podbots, which cannot have the same name
            del bare[bare.index("--name") : bare.index("--name") + 2]
        self.unnamed = Acpx(plan, "agent-of-any-name", bare)
        self.opened: Frames = []
        self.again: Frames = []

    def run(self) -> None:
        with reported(self.plan, "initialize"), reported(self.plan, "new"):
            self.main("sessions", "new", "--name", "main")
        for step, what in self.steps():
            if self.plan.wants(step):
                with reported(self.plan, step):
                    what()

    def steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "prompt", self.first
        yield "edit", self.edit
        yield "terminal output", self.terminal
        yield "images", self.image
        yield "cancel", self.cancel
        yield "modes", self.modes
        yield "restart", self.restart
        yield "load", self.load
        yield "resume", self.resume
        yield "two sessions", self.two
        yield "permission", self.permission
        yield "KILL", self.kill

    def first(self) -> None:
        self.opened = self.main.prompt("main", "say", "said")

    def edit(self) -> None:
        frames = self.main.prompt("main", "edit", "edited")
        expect("session/request_permission" not in _methods(frames), "the agent asked for permission")
        expect(f"{self.plan.workspace}/{self.plan.say['file']}" in _calls(frames), "no path")

    def terminal(self) -> None:
        calls = _calls(self.main.prompt("main", "run", "ran"))
        expect(self.plan.say["printed"] in calls, "the output did not come", calls[-300:])

    def image(self) -> None:
        path = os.path.join(self.plan.extra["home"], "prompt.json")
        image = {"type": "image", "mimeType": "image/png", "data": self.plan.say["image"]}
        with open(path, "w", encoding="utf-8") as file:
            json.dump([{"type": "text", "text": self.plan.say["look"]}, image], file)
        _answered(self.main("prompt", "-s", "main", "-f", path), self.plan.say["seen"])

    def cancel(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            turn = pool.submit(self.main, "prompt", "-s", "main", self.plan.say["wait"])
            end = time.monotonic() + self.plan.limit
            while not runs(self.plan.name):
                expect(not turn.done(), "the turn ended before")
                expect(time.monotonic() < end, "the command did not start")
                time.sleep(0.05)
            time.sleep(RUNS_BEFORE_CANCEL)
            self.main("cancel", "-s", "main")
            frames = turn.result()
        reasons = [frame["result"].get("stopReason") for frame in frames if isinstance(frame.get("result"), dict)]
        expect("cancelled" in reasons, "stop reason", reasons)
        end = time.monotonic() + ENDS_AFTER_CANCEL
        while runs(self.plan.name):
            expect(time.monotonic() < end, "the command still runs")
            time.sleep(0.05)

    def modes(self) -> None:
        results = [frame["result"] for frame in self.opened if isinstance(frame.get("result"), dict)]
        offered = [found for result in results if (found := _modes(result))]
        if not offered:
            raise Absent("agent: it has no modes")
        now, every = offered[0]
        other = next(mode for mode in every if mode != now)
        done = self.main("set-mode", "-s", "main", other)
        expect(done[0]["modeId"] == other, "mode", done)
        self.main("set-mode", "-s", "main", now)

    def restart(self) -> None:
        self.plan.wait_for_the_minute()
        self.main.end("main")
        self.again = self.main("prompt", "-s", "main", self.plan.say["recall"], check=False)
        expect(
            any("protocolVersion" in (frame.get("result") or {}) for frame in self.again), "no answer", self.again[-1:]
        )

    def load(self) -> None:
        if "session/load" not in _methods(self.again):
            raise Absent("client: it resumes a session, and loads one only for an agent that cannot resume")
        self._kept()

    def resume(self) -> None:
        self._kept()
        _answered(self.again, self.plan.say["recalled"])

    def _kept(self) -> None:
        expect(self.again, "podbot did not start again")
        expect(not (failed := _error(self.again)), failed)
        expect("session/new" not in _methods(self.again), "a new session took its place")

    def two(self) -> None:
        for name in ("one", "two"):
            self.unnamed("sessions", "new", "--name", name)
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(self.unnamed.prompt, "one", "first", "isFirst")
            two = pool.submit(self.unnamed.prompt, "two", "second", "isSecond")
            one.result(), two.result()
        for name in ("one", "two"):
            self.unnamed.end(name)

    def permission(self) -> None:
        self._open_asking()
        frames = self.ask.prompt("asking", "allow", "allowed")
        expect("session/request_permission" in _methods(frames), "the agent did not ask")

    def _open_asking(self) -> None:
        with contextlib.suppress(AssertionError, IndexError, KeyError, TimeoutError):
            self.main.end("main")  # its podbot has the name
        self.ask("sessions", "ensure", "--name", "asking")

    def kill(self) -> None:
        """podbot's process is killed while acpx uses it; acpx starts it again with the next prompt."""
        self._open_asking()
        self.ask.prompt("asking", "say", "said")
        (shown,) = self.ask("sessions", "show", "asking")
        os.kill(int(shown["pid"]), signal.SIGKILL)
        self.ask.prompt("asking", "say", "said")
        self.ask.end("asking")


def _modes(result: dict[str, Any]) -> tuple[str, list[str]] | None:
    """(current mode, all modes) when a session opens."""
    if modes := result.get("modes"):
        return modes["currentModeId"], [mode["id"] for mode in modes["availableModes"]]
    for option in result.get("configOptions") or []:
        if option.get("category") == "mode":
            return option["currentValue"], [choice["value"] for choice in option["options"]]
    return None


if __name__ == "__main__":
    Driver(Plan.load(sys.argv[1])).run()
