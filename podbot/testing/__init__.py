"""Public fakes: run podbot's calls, or your own code that uses them, without an engine.

>>> from podbot.testing import FakeEngine, ScriptedExec
>>> engine = FakeEngine()
>>> engine.on("my-agent", ScriptedExec(stdout=b"done\\n", code=3))
"""

from __future__ import annotations

from podbot.testing.engine import IMAGE, FakeContainer, FakeEngine
from podbot.testing.fake_github import FakeGitHub
from podbot.testing.memory_files import MemoryFiles
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
    "MemoryFiles",
    "ScriptedExec",
]
