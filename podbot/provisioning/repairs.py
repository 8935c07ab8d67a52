"""Runs the commands that the operator agreed to: packages that setup installs, and what doctor repairs."""

from __future__ import annotations

import collections
import contextlib
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podbot.engine.check import Repair
from podbot.errors import RepairFailed
from podbot.events import Emit, Event
from podbot.machine import MachineFacts, find_programs

_LAST_LINES = 5
_FOR_APT = "DEBIAN_FRONTEND=noninteractive"  # sudo passes on no variable, so it is a word of the command


class Root(NamedTuple):
    """How a command is run as root. ``prefix``: the words before it. ``asks``: sudo will ask for a password first."""

    prefix: tuple[str, ...] = ()
    asks: bool = False


def way_to_root(facts: MachineFacts, environ: Mapping[str, str], *, may_ask: bool) -> Root | None:
    """The way of this user; None if there is none. ``may_ask``: a person at a terminal can type a password."""
    if not facts.rootless:
        return Root()
    sudo = find_programs(environ, ("sudo",)).get("sudo")
    if sudo is None:
        return None
    quiet = (sudo, "-n")
    if _succeeds((*quiet, "true"), environ):
        return Root(quiet)
    # Without -n: where sudo remembers no password (timestamp_timeout=0), it asks again at each command.
    return Root((sudo,), asks=True) if may_ask else None


@dataclass(frozen=True)
class Runner:
    """Runs repairs. ``root``: None where there is no way to root. ``environ``: for the commands, with their PATH."""

    root: Root | None
    environ: Mapping[str, str]
    emit: Emit

    def run(self, repairs: Iterable[Repair]) -> None:
        """Run each command, and report its output line by line. Raises RepairFailed at the first that fails."""
        wanted = tuple(repairs)
        if self.root is not None and self.root.asks and any(repair.root for repair in wanted):
            self._authenticate(self.root.prefix[0])
        for repair in wanted:
            fields = {"command": repair.line, "root": repair.root}
            self.emit(Event("info", "repair.run", f"running {repair.line}", fields))
            prefix = self.root.prefix if repair.root and self.root is not None else ()
            self._run(repair.line, (*prefix, "env", _FOR_APT, "sh", "-c", repair.line))

    def _authenticate(self, sudo: str) -> None:
        self.emit(Event("notice", "repair.password", "sudo may ask for your password, to run these commands as root"))
        if not _succeeds((sudo, "-v"), self.environ, terminal=True):
            raise RepairFailed(command="sudo -v", reason="sudo did not accept you")

    def _run(self, line: str, words: tuple[str, ...]) -> None:
        last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        try:
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                env=self.environ, text=True, errors="replace",
            )  # fmt: skip
        except OSError as exc:
            raise RepairFailed(command=line, reason=f"{words[0]}: {exc.strerror or exc}") from exc
        with child:
            try:
                for text in child.stdout or ():
                    if text.strip():
                        last.append(text.strip()[:300])
                        self.emit(Event("debug", "repair.line", last[-1]))
            except BaseException:
                with contextlib.suppress(PermissionError):  # sudo is root's; at Ctrl-C the terminal ends it as well
                    child.terminate()
                raise
        if child.returncode != 0:
            raise RepairFailed(command=line, reason=" / ".join(last) or f"it ended with status {child.returncode}")


def _succeeds(words: tuple[str, ...], environ: Mapping[str, str], *, terminal: bool = False) -> bool:
    """Whether the command ends with 0. ``terminal``: it may read from the terminal and write to it."""
    stream = None if terminal else subprocess.DEVNULL
    try:
        done = subprocess.run(words, stdin=stream, stdout=stream, stderr=stream, cwd="/", env=environ, check=False)
    except OSError:
        return False
    return done.returncode == 0
