"""Drives Codex with OpenAI's own SDK, over the Codex App Server: ``python -m e2e.matrix.drive_openai PLAN``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from openai_codex import Codex, CodexConfig, ImageInput, Sandbox, TextInput
from openai_codex.client import CodexClient
from openai_codex.generated.v2_all import ThreadTurnsListResponse

from e2e.matrix.drive_python import runs
from e2e.matrix.report import ENDS_AFTER_CANCEL, RUNS_BEFORE_CANCEL, Plan, expect, reported


class Driver:
    """The steps with the SDK's defaults, except for the subject of a step."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.codex: Any = None
        self.thread: Any = None
        self.asking: Any = None
        self.asked: list[str] = []

    def config(self, command: list[str]) -> CodexConfig:
        # The shell separates stderr; otherwise the SDK would read it, and it would be missing in the artefacts.
        words = ("sh", "-c", f'exec "$@" 2>>"{self.plan.log}"', "sh", *command)
        return CodexConfig(launch_args_override=words, cwd=self.plan.workspace, env=self.plan.env)

    def tried(self, step: str, what: Callable[[], object]) -> None:
        """A step within the limit; a thread of the SDK that waits for ever is abandoned."""
        if not self.plan.wants(step):
            return
        with reported(self.plan, step):
            pool = ThreadPoolExecutor(1)
            try:
                call = pool.submit(what)
                expect(wait([call], self.plan.limit).done, f"not within {self.plan.limit:.0f} s")
                call.result()
            finally:
                pool.shutdown(wait=False)

    def start(self) -> None:
        self.codex = Codex(self.config(self.plan.command))
        expect(self.codex.metadata.userAgent, "no answer")

    def new(self) -> None:
        self.thread = self.codex.thread_start(cwd=self.plan.workspace)

    def ask(self, thread: Any, prompt: str, answer: str) -> str:
        """Run a turn to its end: its items, as JSON."""
        return _answered(thread.run(self.plan.say[prompt]), self.plan.say[answer])

    def run(self) -> None:
        self.tried("initialize", self.start)
        self.tried("new", self.new)
        for step, what in self.steps():
            self.tried(step, what)

    def steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "prompt", lambda: self.ask(self.thread, "say", "said")
        yield "edit", self.edit
        yield "terminal output", self.terminal
        yield "images", self.image
        yield "cancel", self.cancel
        yield "two sessions", self.two
        yield "modes", self.modes
        yield "restart", self.restart
        yield "load", self.load
        yield "resume", self.resume
        yield "permission", self.permission
        yield "KILL", self.kill

    def edit(self) -> None:
        items = self.ask(self.thread, "edit", "edited")
        expect(f"{self.plan.workspace}/{self.plan.say['file']}" in items, "no path", items)

    def terminal(self) -> None:
        items = self.ask(self.thread, "run", "ran")
        expect(self.plan.say["printed"] in items, "the output did not come", items)

    def image(self) -> None:
        image = ImageInput(f"data:image/png;base64,{self.plan.say['image']}")
        _answered(self.thread.run([TextInput(self.plan.say["look"]), image]), self.plan.say["seen"])

    def cancel(self) -> None:
        turn = self.thread.turn(self.plan.say["wait"])
        end = time.monotonic() + self.plan.limit
        while not runs(self.plan.name):
            expect(time.monotonic() < end, "the command did not start")
            time.sleep(0.05)
        time.sleep(RUNS_BEFORE_CANCEL)
        turn.interrupt()
        done = turn.run()
        expect(done.status.value == "interrupted", "status", done.status)
        end = time.monotonic() + ENDS_AFTER_CANCEL
        while runs(self.plan.name):
            expect(time.monotonic() < end, "the command still runs")
            time.sleep(0.05)

    def two(self) -> None:
        one, two = (self.codex.thread_start(cwd=self.plan.workspace) for _ in range(2))
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.ask, one, "first", "isFirst")
            second = pool.submit(self.ask, two, "second", "isSecond")
            expect(self.plan.say["isSecond"] not in first.result(), "answers are mixed")
            expect(self.plan.say["isFirst"] not in second.result(), "answers are mixed")

    def modes(self) -> None:
        thread = self.codex.thread_start(cwd=self.plan.workspace)
        _answered(thread.run(self.plan.say["say"], sandbox=Sandbox.full_access), self.plan.say["said"])

    def restart(self) -> None:
        self.plan.wait_for_the_minute()
        self.codex.close()  # end of input and TERM at once, KILL after 2 s
        self.start()

    def load(self) -> None:
        # The SDK's read requests all turns at once, which Codex no longer answers for a current thread.
        page = {"threadId": self.thread.id, "itemsView": "full"}
        client = self.codex._client  # noqa: SLF001 - the SDK has no call with other parameters
        answer = client.request("thread/turns/list", page, response_model=ThreadTurnsListResponse)
        answered = answer.model_dump_json()
        expect(self.plan.say["said"] in answered, "the conversation did not come", answered)

    def resume(self) -> None:
        thread = self.codex.thread_resume(self.thread.id)
        self.ask(thread, "recall", "recalled")

    def permission(self) -> None:
        """The SDK's lower level, where a client answers Codex's requests."""
        asking = self._open_asking()
        thread = asking.thread_start({"cwd": self.plan.workspace}).thread
        turn = asking.turn_start(thread.id, self.plan.say["allow"]).turn
        done = asking.wait_for_turn_completed(turn.id)
        expect(done.turn.status.value == "completed", "status", done.turn)
        expect(self.asked, "the agent did not ask")

    def _open_asking(self) -> CodexClient:
        for open_client in (self.codex, self.asking):
            if open_client is not None:
                open_client.close()
        self.asking = CodexClient(self.config(self.plan.ask), approval_handler=self._allow)
        self.asking.start()
        self.asking.initialize()
        return self.asking

    def _allow(self, method: str, params: object) -> dict[str, Any]:
        self.asked.append(method)
        return {"decision": "accept"}

    def kill(self) -> None:
        process = self._open_asking()._proc  # noqa: SLF001 - openai_codex has no other way to its process
        assert process is not None
        process.kill()
        process.wait()
        self.start()
        self.codex.close()


def _answered(result: Any, answer: str) -> str:
    expect(result.status.value == "completed", "status", result.status, result.error)
    expect(answer in (result.final_response or ""), "answer", result.final_response)
    return "\n".join(item.model_dump_json() for item in result.items)


if __name__ == "__main__":
    Driver(Plan.load(sys.argv[1])).run()
