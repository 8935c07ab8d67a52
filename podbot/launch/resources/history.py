"""Where agents keep their conversations, and the plan that lets them outlive a sandbox (ADR 0018). Pure.

Only the directory with conversations is mounted, never the agent's whole home: logins and settings in it stay copies.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from podbot.config.models import AgentKind, AppConfig
from podbot.launch.labels import HISTORY
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, Mount, OwnFile

DIRECTORY = "history"  # in podbot's state directory
_KEY_DIGITS = 32
_OPENCODE = "/root/.local/share/opencode/history"
_GEMINI_DEFAULTS = "/run/podbot/gemini-defaults.json"


class Conversations(NamedTuple):
    """``target``: the directory inside the sandbox. ``resume``: the agent's words that continue the latest one.

    ``env`` and ``texts`` (target -> content of a file that is mounted read-only): what the agent needs for it.
    """

    target: str
    resume: tuple[str, ...]
    env: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}


CONVERSATIONS: Mapping[AgentKind, Conversations] = {
    "claude": Conversations("/root/.claude/projects", ("--continue",)),
    # Its databases beside this directory are an index, which it makes again from the files here (measured).
    "codex": Conversations("/root/.codex/sessions", ("resume", "--last", "--include-non-interactive")),
    # Its database lies beside auth.json by default; alone in a directory it is mounted without that.
    "opencode": Conversations(_OPENCODE, ("--continue",), env={"OPENCODE_DB": f"{_OPENCODE}/opencode.db"}),
    "gemini": Conversations(
        "/root/.gemini/tmp",
        ("--resume", "latest"),
        # session/load leaves an empty file with the conversation's id, and the clean-up at gemini's next start
        # deletes every file with that id (measured with 0.61): so there is none, unless the user's settings ask for it.
        env={"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": _GEMINI_DEFAULTS},
        texts={_GEMINI_DEFAULTS: '{"general": {"sessionRetention": {"enabled": false}}}\n'},
    ),
}


@dataclass(frozen=True)
class HistoryPlan:
    """The store of one project's conversations with one agent.

    ``directory``: the project's, on the host. ``project``: a host path, or server and repository. ``resume``: the
    command line that continues the latest conversation.
    """

    key: str
    directory: str
    project: str
    store: Mount  # the one thing of it that the sandbox can write
    resume: tuple[str, ...]

    def described(self) -> dict[str, Any]:
        """As plain values."""
        return {"project": self.project, "store": self.store.source, "resume": shlex.join(self.resume)}


def plan(context: Context) -> Part:
    """The store, mounted where the agent keeps its conversations, and what else the agent needs for it."""
    workspace = context.workspace
    found = None
    if context.command is not None:
        found = plan_history(context.config, context.facts, workspace.code, workspace.clone)
    if found is None:
        return Part(labels={HISTORY: ""})
    agent = CONVERSATIONS[context.config.agent.kind]
    return Part(
        found,
        mounts=(found.store,),
        files=tuple(OwnFile(target, text) for target, text in agent.texts.items()),
        env=agent.env,
        labels={HISTORY: found.key},
    )


def plan_history(config: AppConfig, facts: HostFacts, code: str, clone: ClonePlan | None) -> HistoryPlan | None:
    """The store of this project and agent; None when it is switched off, or the agent is one that podbot does not know.

    The project is ``code``, its resolved directory on the host, or the server and repository of a clone.
    """
    kind = config.agent.kind
    if not config.session.history or kind not in CONVERSATIONS:
        return None
    found = CONVERSATIONS[kind]
    if clone is not None:
        project = f"{clone.server}/{clone.repo}"
        where = ("--repo", clone.repo, *(("--branch", clone.branch) if clone.branch is not None else ()))
    else:
        project, where = code, ("--workspace", code)
    key = project_key(config.workspace.source, project)
    directory = os.path.join(facts.state_dir, DIRECTORY, key)
    return HistoryPlan(
        key=key,
        directory=directory,
        project=project,
        store=Mount(os.path.join(directory, kind), found.target),
        resume=("podbot", "run", *_options(config), *where, "--agent", kind, "--", *found.resume),
    )


def _options(config: AppConfig) -> tuple[str, ...]:
    """What was set for this session alone, and decides which agent continues, and how much it may do."""
    words: tuple[str, ...] = ("--config", config.file) if config.file is not None else ()
    for key, option in (("engine_socket", "--engine-socket"), ("image", "--image")):
        if _set_for_this_session(config, key):
            words += (option, getattr(config, key) or "")
    ask = config.agent.permissions == "ask" and _set_for_this_session(config, "agent.permissions")
    return (*words, "--ask") if ask else words


def _set_for_this_session(config: AppConfig, key: str) -> bool:
    """By an option or a Python caller: unlike the file and the variables, that is gone in the next session."""
    return config.origin(key).kind in ("flag", "override")


def project_key(source: str, project: str) -> str:
    """The name of a project's directory. Upper and lower case are one in a repository's name, and two in a path."""
    spelled = project.lower() if source == "github_clone" else project
    text = json.dumps([source, spelled])
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]
