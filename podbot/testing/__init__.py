"""Public fakes: run podbot's own calls, or your own on top of them, without an engine.

>>> from podbot.testing import FakeEngine, ScriptedExec
>>> engine = FakeEngine()
>>> engine.on("my-agent", ScriptedExec(stdout=b"done\\n", code=3))
"""

from __future__ import annotations

from podbot.testing.engine import IMAGE, FakeContainer, FakeEngine
from podbot.testing.github import FakeGitHub
from podbot.testing.peer import STDERR, STDOUT, Command, ExecPeer, ScriptedExec

__all__ = [
    "IMAGE",
    "STDERR",
    "STDOUT",
    "Command",
    "ExecPeer",
    "FakeContainer",
    "FakeEngine",
    "FakeGitHub",
    "ScriptedExec",
]
