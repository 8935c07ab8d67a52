"""What an agent's end-to-end scenario says of it. Each agent of ``podbot.agents`` has one in ``e2e/agents/kinds``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PORT = 4010
URL = f"http://127.0.0.1:{PORT}"  # of the model provider, which runs beside the agent
MODEL = "mock-model"


@dataclass(frozen=True)
class Kind:
    """``name``: of the agent. ``key``: the variable that holds the API key. ``words``: what stands after ``--``, before
    the prompt.

    ``path``: of the model's requests. ``tool``: the agent's own tool that makes the file, with its arguments.
    ``shell``: its tool that runs a command, with its arguments; ``asks``: more of those, from a model that knows that
    the agent asks first. ``patches``: it writes files by a patch in a command of its shell.
    ``logs``: what the agent writes about itself, below its home. ``interactive``: words for its own screen, ``screen``
    what that shows once it waits for a prompt.
    ``acp``, ``acp_env``: words and variables for the Agent Client Protocol. ``fs``: whether it then asks the client for
    its files, when that offers them. ``lists``: whether it lists old sessions there.
    ``openai``: it speaks one of OpenAI's protocols. ``own_model``: it asks for a model of its own, whatever it is told.
    ``screen_first``: its screen continues nothing that was begun without one. ``suspends``: what it shows, if
    anything, after the first Ctrl-Z of two; None: it does not wait to be continued.
    ``by_minute``: it names a conversation's file by the minute and the session, so that one that is loaded within the
    minute in which it was opened is overwritten first, with podbot or without. Nobody does that but a test.
    ``offers``: the login methods that an editor is offered without a login, and a part of podbot's advice; None: it
    has a model without a login. ``reasons``: step of the matrix -> why it fails, where somebody has looked further
    than the run does. ``weight``: how long its cells of the matrix take, beside others.
    """

    name: str
    version: str  # what `--version` prints, as a pattern
    key: str
    words: tuple[str, ...]
    path: str
    tool: str
    arguments: Mapping[str, str]
    logs: tuple[str, ...]
    shell: tuple[str, Mapping[str, str]]
    screen: str
    asks: Mapping[str, str] = field(default_factory=dict)
    patches: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    interactive: tuple[str, ...] = ()
    acp: tuple[str, ...] = ()
    acp_env: Mapping[str, str] = field(default_factory=dict)
    fs: bool = False
    lists: bool = True
    openai: bool = False
    own_model: bool = False
    screen_first: bool = False
    suspends: str | None = None
    by_minute: bool = False
    offers: tuple[tuple[str, ...], str] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    weight: int = 1
