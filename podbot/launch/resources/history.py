"""Where agents keep their conversations, and the plan that lets them outlive a sandbox (ADR 0018). Pure.

Only the directory with conversations is mounted, never the agent's whole home: logins and settings in it stay copies.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from podbot.config.models import AgentKind, AppConfig
from podbot.launch.own_file import own_file_mount
from podbot.launch.types import ClonePlan, HistoryPlan, HostFacts, Mount

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


def plan_history(
    config: AppConfig, facts: HostFacts, code: str, clone: ClonePlan | None, files: str
) -> HistoryPlan | None:
    """The store of this project and agent; None when it is switched off, or the agent is one that podbot does not know.

    The project is ``code``, its resolved directory on the host, or the server and repository of a clone. ``files``:
    the directory of the session's own files.
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
        env=found.env,
        texts={own_file_mount(files, target): text for target, text in found.texts.items()},
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


def history_mounts(history: HistoryPlan | None) -> tuple[Mount, ...]:
    """What the sandbox mounts for it."""
    return () if history is None else (history.store, *history.texts)
