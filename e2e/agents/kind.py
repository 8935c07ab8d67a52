"""The description of an agent's end-to-end scenario. Each agent of ``podbot.agents`` has one in
``e2e/agents/kinds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PORT = 4010
URL = f"http://127.0.0.1:{PORT}"  # of the model provider, which runs in the same sandbox
MODEL = "mock-model"


@dataclass(frozen=True)
class Kind:
    """``name``: of the agent. ``key``: the variable of the API key; empty for another login.
    ``words``: the arguments after ``--``, before the prompt.

    ``path``: of the model's requests. ``tool``: the agent's own tool that makes the file, with its arguments.
    ``shell``: its tool that runs a command, with its arguments; ``asks``: additional arguments, from a model that
    knows that the agent asks first. ``patches``: it writes files by a patch in a command of its shell. ``logs``: the
    agent's own log files, below its home. ``interactive``: arguments for its interactive screen, ``screen``: the text
    on it once it waits for a prompt. ``acp``, ``acp_env``: arguments and variables for the Agent Client Protocol.
    ``fs``: whether it then asks the client for its files, when the client offers them. ``lists``: whether it lists old
    sessions there. ``openai``: it uses one of OpenAI's protocols. ``own_model``: it requests a model of its own,
    whatever its settings. ``screen_first``: its screen continues only conversations that were begun on a screen.
    ``suspends``: the text, if any, that it shows after the first Ctrl-Z of two; None: one is enough. ``by_minute``: it
    names a conversation's file by the minute and the session, so that it overwrites a conversation that is loaded
    within the minute in which it was opened, with podbot or without. Only a test does that. ``offers``: the login
    methods that an editor is offered without a login, and a part of podbot's advice; None: it has a model without a
    login. ``reasons``: step of the matrix -> why it fails, where the cause is known beyond the run's result.
    ``weight``: the relative duration of its cells of the matrix. ``key_text``: the text of the key, if it must have a
    form. ``names``: names of its provider's servers, which the model provider then answers for by HTTPS.
    """

    name: str
    version: str  # a pattern for the output of `--version`
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
    key_text: str = ""
    names: tuple[str, ...] = ()
