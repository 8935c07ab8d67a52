"""The steps of each cell of the matrix, and the prompts for which a mock model gives the answers. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from e2e.agents.kind import Kind
from e2e.agents.kinds import KINDS
from e2e.agents.scenario import CONTENT, FILE
from podbot.agents.registry import agent

# In the order of the table. The descriptions in docs/reference/clients.md come from here.
STEPS = {
    "initialize": "the client and the agent agree on a version of the protocol",
    "new": "a session starts on the workspace, at the host's own path",
    "prompt": "a prompt is answered with the model's words",
    "permission": "with `--ask` the agent asks, the client allows, and the file exists; without it nothing is asked",
    "edit": "the agent writes a file: it is on the host, and the client receives the change with its path",
    "terminal output": "the agent runs a command, and its output reaches the client",
    "cancel": "a turn that runs a command is cancelled: the turn ends as cancelled, and the command ends, too",
    "load": "a new podbot opens an earlier session, and the client gets the conversation",
    "resume": "a new podbot continues an earlier session, and the model gets the earlier conversation",
    "modes": "the client changes the session's mode",
    "images": "an image in the prompt reaches the model",
    "two sessions": "two sessions at once each get their own answer",
    "restart": "the client ends podbot in its usual way; a new podbot under the same `--name` works at once",
    "KILL": "podbot is killed; a new one under the same name works at once, and nothing is left behind",
}  # fmt: skip

BASE = ("initialize", "new", "prompt")  # every other step depends on these

WORKS, FAILS, ABSENT = "works", "fails", "absent"

SAY, SAID = "say-the-word", "podbot-mock-answer"
EDIT, EDITED = "write-the-file", "podbot-file-written"
ALLOW, ALLOWED = "ask-before-you-write", "podbot-was-allowed"
RUN, PRINTED, RAN = "run-the-command", "printed-42", "podbot-command-ran"
WAIT = "run-for-ever"
LOOK, SEEN = "look-at-the-image", "podbot-image-seen"
FIRST, SECOND = ("who-is-first", "i-am-first"), ("who-is-second", "i-am-second")
RECALL, RECALLED = "what-was-said", "podbot-recalled"
ASKED_FILE = "asked.txt"
# One red pixel.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class Client:
    """``mode``: of ``podbot host``. ``agents``: that it runs with. ``packages``: whose versions the page names."""

    name: str
    title: str
    mode: str
    agents: tuple[str, ...]
    package: str


_ALL = tuple(name for name in KINDS if "acp" in agent(name).commands)
_APP_SERVER = tuple(name for name in KINDS if "codex_app_server" in agent(name).commands)
CLIENTS = {
    client.name: client
    for client in (
        Client("python", "ACP SDK for Python", "acp", _ALL, "agent-client-protocol"),
        Client("typescript", "ACP SDK for TypeScript", "acp", _ALL, "@agentclientprotocol/sdk"),
        Client("acpx", "acpx", "acp", _ALL, "acpx"),
        Client(
            "openai",
            "OpenAI's SDK for the Codex App Server",
            "codex_app_server",
            _APP_SERVER,
            "openai-codex",
        ),
    )
}

# The prompt of each step to the model.
PROMPTS = {
    "prompt": SAY, "permission": ALLOW, "edit": EDIT, "terminal output": RUN, "cancel": WAIT, "resume": RECALL,
    "images": LOOK, "two sessions": FIRST[0],
}  # fmt: skip


def wait_mark(name: str) -> str:
    """Is in the command line of WAIT's command, and nowhere else: ``name`` is the session's."""
    return f"never-ends-{name}"


def fixtures(kind: Kind, workspace: str, name: str) -> list[dict[str, Any]]:
    """aimock's answers for one cell. ``name``: of the session."""
    endless = f"python3 -c 'import time; time.sleep(3600)' {wait_mark(name)}"
    return [
        _answer(RECALL, RECALLED),  # first: an agent may put it into one message with a prompt that was cancelled
        *_after_a_tool(EDIT, _write(kind, f"{workspace}/{FILE}", CONTENT), EDITED),
        *_after_a_tool(ALLOW, _write(kind, f"{workspace}/{ASKED_FILE}", CONTENT), ALLOWED),
        *_after_a_tool(RUN, _shell(kind, "printf 'printed-%d' 0x2a"), RAN),
        *_after_a_tool(WAIT, _shell(kind, endless), "podbot-waited"),
        *[_answer(*words) for words in ((SAY, SAID), (LOOK, SEEN), FIRST, SECOND)],
    ]


def _write(kind: Kind, path: str, content: str) -> dict[str, Any]:
    if kind.patches:
        patch = f"*** Begin Patch\n*** Add File: {path}\n+{content}\n*** End Patch"
        return _shell(kind, f"apply_patch <<'EOF'\n{patch}\nEOF\n")
    words = {"path": path, "content": content}
    return {"name": kind.tool, "arguments": {key: text.format(**words) for key, text in kind.arguments.items()}}


def _shell(kind: Kind, command: str) -> dict[str, Any]:
    tool, arguments = kind.shell
    return {"name": tool, "arguments": {key: text.format(command=command) for key, text in arguments.items()}}


def _answer(prompt: str, text: str) -> dict[str, Any]:
    return {"match": {"userMessage": prompt}, "response": {"content": text}}


def _after_a_tool(prompt: str, call: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
    return [
        {"match": {"userMessage": prompt, "hasToolResult": False}, "response": {"toolCalls": [call]}},
        {"match": {"userMessage": prompt, "hasToolResult": True}, "response": {"content": text}},
    ]


def words() -> dict[str, str]:
    """The prompts above by name, for a driver that is not written in Python."""
    return {
        "say": SAY, "said": SAID, "edit": EDIT, "edited": EDITED, "allow": ALLOW, "allowed": ALLOWED, "run": RUN,
        "printed": PRINTED, "ran": RAN, "wait": WAIT, "look": LOOK, "seen": SEEN, "first": FIRST[0],
        "isFirst": FIRST[1], "second": SECOND[0], "isSecond": SECOND[1], "recall": RECALL, "recalled": RECALLED,
        "image": IMAGE, "file": FILE,
    }  # fmt: skip
