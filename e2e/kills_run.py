"""Batches of sessions that are killed at random moments, and what is measured of each kill."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from e2e.harness import World
from e2e.kill_kinds import IN_EXEC, KINDS, USUAL, VICTIMS
from e2e.kills import Target, kill, make_template, marked, opened, until
from e2e.kills_kept import brought_to_its_end, is_settled
from e2e.patience import patient

BATCH = 10  # sessions at a time
CLEAN = 10.0  # seconds from a kill until nothing is left
_START = 1.5  # seconds: about the time that one of ten starts at once takes
_APPEARS = 20.0  # for a victim that is still to be started
_ENDS = 40.0  # for an owner that was asked to end: the agent of a hosted session has its grace


@dataclass
class Outcome:
    """One kill. ``seconds``: until nothing was left of the session, or of the command if only that had to end."""

    victim: str
    kind: str
    session: str
    seconds: float | None = None
    problems: list[str] = field(default_factory=list)


class RandomKills:
    """``wanted`` kills; ``seed`` repeats the choices. ``limit``: seconds from a kill until nothing is left.

    ``kinds``: of the sessions. ``images``: see Target.
    """

    def __init__(
        self,
        world: World,
        config: str,
        *,
        seed: int,
        wanted: int,
        limit: float = CLEAN,
        kinds: Sequence[str] = USUAL,
        images: Mapping[str, str] | None = None,
    ) -> None:
        self.world, self.config, self.wanted, self.limit = world, config, wanted, patient(limit)
        self.kinds, self.images = kinds, images
        self.rng = random.Random(seed)
        self.template = os.path.join(world.root, "template")
        self.whole = make_template(self.template)
        self.outcomes: list[Outcome] = []
        self.lock = threading.Lock()
        self.service_dies = False  # and with it, soon, all sessions of this batch

    def run(self) -> None:
        """All batches."""
        while len(self.outcomes) < self.wanted:
            known = [
                name for name in VICTIMS if name != "service" and any(KINDS[kind].has(name) for kind in self.kinds)
            ]
            victims = [self.rng.choice(known) for _ in range(BATCH)]
            if self.rng.random() < 0.5:  # all sessions of the batch share the service
                victims[0] = "service"
            self.service_dies = victims[0] == "service"
            threads = [
                threading.Thread(target=self._one, args=(victim, random.Random(self.rng.random())))
                for victim in victims[: self.wanted - len(self.outcomes)]
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def _one(self, victim: str, rng: random.Random) -> None:
        kind = rng.choice([name for name in self.kinds if KINDS[name].has(victim)])
        network = "filtered" if victim == "gateway" else ""
        with opened(lambda: Target(self.world, kind, self.template, self.config, rng, network, self.images)) as session:
            try:
                self._killed(session, victim)
            except BaseException as exc:  # noqa: BLE001 - a thread's failure is the test's
                self._note(Outcome(victim, kind, session.given, problems=[repr(exc)]))
            shutil.rmtree(session.workspace, ignore_errors=True)
            if os.path.exists(session.workspace):  # with files of another user's inside, of a rootless engine
                self.world.podman("unshare", "rm", "-rf", session.workspace)

    def _note(self, outcome: Outcome) -> Outcome:
        with self.lock:
            self.outcomes.append(outcome)
        return outcome

    def _killed(self, session: Target, victim: str) -> None:
        pid = self._awaited(session, victim)
        struck = time.monotonic()
        hit = bool(pid) and kill(pid)
        outcome = Outcome(victim, session.kind, session.given)
        if hit:  # otherwise the kill of the service ended it first
            self._note(outcome)
        if hit and victim in IN_EXEC:
            self._await_command(session, outcome)
        measured = [] if victim in IN_EXEC or not hit else [outcome]
        # Without its editor it ends by itself.
        ends = victim == "owner" or (hit and victim == "editor" and not session.rules.outlasts)
        if not ends and session.owner.poll() is None:
            struck = self._ended(session, measured)
        elif ends and session.rules.serves:  # a server that starts a sandbox completes that before it ends
            until(lambda: session.owner.poll() is not None, patient(_ENDS))
            struck = time.monotonic()
        self._await_clean(session, measured or [outcome], struck)
        if session.rules.kept:
            outcome.problems += brought_to_its_end(session, victim, self.limit)
        outcome.problems += session.damage(self.whole)
        if outcome.problems and not hit:
            self._note(outcome)

    @staticmethod
    def _awaited(session: Target, victim: str) -> int:
        """The victim's pid at a random moment, or as soon as there is one; 0 if the session ends before."""
        rng, owner = session.rng, session.owner
        time.sleep(rng.uniform(0, _START))
        if victim in (*IN_EXEC, "command") or rng.random() < 0.4:
            until(lambda: session.up or owner.poll() is not None, patient(_APPEARS), 0.02)
        if victim in IN_EXEC and owner.poll() is None:
            session.exec_begun()
            time.sleep(rng.uniform(0, 0.6))
        pids = [0]

        def found() -> bool:
            pids[0] = session.victim(victim)
            return pids[0] > 0 or owner.poll() is not None

        until(found, patient(_APPEARS), 0.005)
        return pids[0]

    def _await_command(self, session: Target, outcome: Outcome) -> None:
        """Of an exec whose client was killed all processes end; the sandbox stays.

        One whose terminal was closed sends TERM to its command's process group, and one whose shell was killed ends.
        """
        client = session.exec_client
        ends = {"exec": session.marks[2:4], "exec's terminal": session.marks[3:4]}.get(outcome.victim, [])

        def over() -> bool:
            return client is not None and client.poll() is not None and not marked(ends)

        outcome.seconds = until(over, self.limit)
        if outcome.seconds is None:
            outcome.problems.append("the exec runs on")
        elif session.owner.poll() is None and not self.service_dies and not self._agent_lives(session):
            outcome.problems.append("the agent ended with the exec")

    def _agent_lives(self, session: Target) -> bool:
        """Whether its process runs, or is started soon: one that was ended does not come back."""
        return until(lambda: marked(session.marks[1:2]), self.limit) is not None

    def _ended(self, session: Target, measured: list[Outcome]) -> float:
        """End a session whose owner lives: kill that as well, or have it end. Returns when."""
        time.sleep(session.rng.uniform(0, 1))
        struck = time.monotonic()
        if session.rng.random() < 0.5:
            if (pid := session.owner_pid) and kill(pid):
                measured.append(self._note(Outcome("owner", session.kind, session.given)))
                return struck
        elif pid := session.owner_pid:
            kill(pid, signal.SIGTERM)
        until(lambda: session.owner.poll() is not None, patient(_ENDS))
        return time.monotonic()

    def _await_clean(self, session: Target, measured: Sequence[Outcome], struck: float) -> None:
        """Wait until nothing is left of the session, and note how long that took since ``struck``."""
        seen: dict[str, float] = {}  # what was left, and when it was seen last

        owner_killed = any(outcome.victim == "owner" for outcome in measured)

        def clean() -> bool:
            if session.rules.kept and is_settled(session, owner_killed):
                return True
            left = session.left()
            seen.update(dict.fromkeys(left, round(time.monotonic() - struck, 1)))
            return not left

        gone = until(clean, patient(_ENDS))
        seconds = time.monotonic() - struck
        for outcome in measured:
            outcome.seconds = outcome.seconds if outcome.victim in IN_EXEC else seconds
        if gone is None or seconds > self.limit:
            with open(session.log, encoding="utf-8", errors="replace") as log:
                measured[-1].problems += [f"{seconds:.1f} s", str(seen), log.read()[-1500:]]

    def table(self) -> str:
        """Kills by victim and by kind: how many, the median and the longest time until clean, failures."""
        groups: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in self.outcomes:
            groups[outcome.victim].append(outcome)
        for outcome in self.outcomes:
            groups[f"kind {outcome.kind}"].append(outcome)
        lines = [f"{'victim':16}{'kills':>7}{'median s':>10}{'longest s':>11}{'failed':>8}"]
        for victim in (*VICTIMS, *(f"kind {kind}" for kind in self.kinds)):
            group = groups[victim]
            times = sorted(outcome.seconds for outcome in group if outcome.seconds is not None)
            middle, longest = (times[len(times) // 2], times[-1]) if times else (0.0, 0.0)
            failed = sum(bool(outcome.problems) for outcome in group)
            lines.append(f"{victim:16}{len(group):7}{middle:10.1f}{longest:11.1f}{failed:8}")
        return "\n".join(lines)

    def problems(self) -> Sequence[str]:
        """What was left or damaged, a line for each session."""
        failed = (item for item in self.outcomes if item.problems)
        return [f"{item.victim} of {item.kind} {item.session}: {item.problems}" for item in failed]
