"""How a driver reports the result of a step: one JSON object for each line on stdout."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Self

from e2e.matrix.steps import ABSENT, FAILS, WORKS

# Seconds that a command runs before its turn is cancelled. Codex 0.169 ends a command at once or leaves it running,
# depending on whether it had reported its start when the turn was cancelled; after a second it always had.
RUNS_BEFORE_CANCEL = 1.0
ENDS_AFTER_CANCEL = 20.0  # seconds; agents that end the command do so within 3


class Absent(Exception):
    """The agent, or the client, does not support what the step needs. Its text says which."""


@dataclass(frozen=True)
class Plan:
    """A driver's input. ``command``: starts podbot; ``ask``: the same, with the agent's questions.

    ``say``: prompts and answers by name. ``steps``: only these, where a step can be skipped. ``limit``: seconds for
    each. ``log``: the file of podbot's stderr. ``extra``: text that only some of the clients need.
    """

    command: list[str]
    ask: list[str]
    env: dict[str, str]
    workspace: str
    name: str
    say: dict[str, str]
    steps: list[str]
    limit: float
    log: str
    extra: dict[str, str]

    @classmethod
    def load(cls, path: str) -> Self:
        with open(path, encoding="utf-8") as file:
            return cls(**json.load(file))

    def wait_for_the_minute(self) -> None:
        """Wait until a session that was just opened can be opened again: see Kind.by_minute."""
        if self.extra.get("by_minute"):
            time.sleep(61 - time.time() % 60)

    def wants(self, *steps: str) -> bool:
        """Whether one of them should be tried."""
        return bool(set(steps) & set(self.steps))


def say(step: str, result: str, detail: str = "") -> None:
    """One line."""
    print(json.dumps({"step": step, "result": result, "detail": detail[:600]}), flush=True)


@contextlib.contextmanager
def reported(plan: Plan, step: str) -> Iterator[None]:
    """A step: works when its block ends normally; is absent or fails depending on the exception. Never raises
    itself.
    """
    try:
        yield
    except Absent as exc:
        say(step, ABSENT, str(exc))
    except Exception as exc:  # noqa: BLE001 - whatever the client's library raises is the finding
        say(step, FAILS, f"{type(exc).__name__}: {exc}".strip())
    else:
        say(step, WORKS)


@contextlib.asynccontextmanager
async def limited(plan: Plan, step: str) -> AsyncIterator[None]:
    """The same with the plan's time limit."""
    with reported(plan, step):
        try:
            async with asyncio.timeout(plan.limit):
                yield
        except TimeoutError:
            raise TimeoutError(f"not within {plan.limit:.0f} s") from None


def expect(condition: object, what: str, *evidence: Any) -> None:
    """Fails the step."""
    if not condition:
        raise AssertionError(": ".join([what, *(str(item)[:300] for item in evidence)]))
