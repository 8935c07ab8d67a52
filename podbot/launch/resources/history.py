"""Plans the store in which an agent's conversations outlive a sandbox (ADR 0018). Pure.

``Conversations`` in ``podbot.agents`` says where each agent keeps them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from typing import Any

from podbot.agents.registry import agent
from podbot.config.models import AppConfig
from podbot.container_spec import Mount
from podbot.launch.names import HISTORY
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, ResourcePlan, SandboxPlan

DIRECTORY = "history"  # in podbot's state directory
_KEY_DIGITS = 32


class HistoryPlan(ResourcePlan):
    """The store of one project's conversations with one agent.

    ``directory``: the project's directory on the host. ``project``: a host path, or server and repository. ``resume``:
    the command line that continues the latest conversation.
    """

    key: str
    directory: str
    project: str
    store: Mount  # the only part of it that the sandbox can write
    resume: tuple[str, ...]

    def described(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"project": self.project, "store": self.store.source, "resume": shlex.join(self.resume)}

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """See ResourcePlan."""
        del sandbox
        stores = os.path.join(facts.state_dir, DIRECTORY)
        return os.path.dirname(self.directory) == stores and os.path.dirname(self.store.source) == self.directory


def plan(context: Context) -> Part:
    """The store, mounted where the agent keeps its conversations, and the variables that the agent needs."""
    workspace = context.workspace
    kept = agent(context.config.agent.kind).conversations
    found = None
    if context.command is not None:
        found = plan_history(context.config, context.facts, workspace.code, workspace.clone)
    if found is None or kept is None:
        return Part(labels={HISTORY: ""})
    return Part(
        found,
        mounts=(found.store,),
        env=kept.env,
        labels={HISTORY: found.key},
    )


def plan_history(config: AppConfig, facts: HostFacts, code: str, clone: ClonePlan | None) -> HistoryPlan | None:
    """The store of this project and agent; None when it is switched off, or podbot does not know the agent's store.

    The project is ``code``, its resolved directory on the host, or the server and repository of a clone.
    """
    kind = config.agent.kind
    found = agent(kind).conversations
    if not config.session.history or found is None:
        return None
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
    """Options to repeat: those set for this session only that select the agent and its permissions."""
    words: tuple[str, ...] = ("--config", config.file) if config.file is not None else ()
    for key, option in (("engine_socket", "--engine-socket"), ("image", "--image")):
        if _set_for_this_session(config, key):
            words += (option, getattr(config, key) or "")
    ask = config.agent.permissions == "ask" and _set_for_this_session(config, "agent.permissions")
    return (*words, "--ask") if ask else words


def _set_for_this_session(config: AppConfig, key: str) -> bool:
    """Whether an option or a Python caller set it; such a value does not apply to the next session."""
    return config.origin(key).kind in ("flag", "override")


def project_key(source: str, project: str) -> str:
    """The name of a project's directory. Case is ignored in a repository's name, but not in a path."""
    spelled = project.lower() if source == "github_clone" else project
    text = json.dumps([source, spelled])
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]
