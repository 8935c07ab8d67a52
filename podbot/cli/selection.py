"""The part that ``run`` and ``host`` share: choosing workspace, agent and session, and showing the plan."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, TypedDict

from podbot.cli.repeating import repeated, shown_word
from podbot.cli.variables import session_variables
from podbot.config.coerce import from_text
from podbot.config.models import Origin
from podbot.config.schema import KEYS
from podbot.errors import InvalidValue, UsageError
from podbot.frozen import Frozen, field, replace
from podbot.launch.types import LaunchPlan, LaunchRequest
from podbot.visible_text import printable

_LONGEST = 80  # characters of a command line that a message repeats
_PORTS = r"\d[\d-]*(?:/\w+)?"  # a port, a range of them, or one with a protocol: no prompt
# Fields of a request whose values an error can be about, and their options.
_REQUEST_FLAGS = {
    "name": "--name",
    "repo": "--repo",
    "branch": "--branch",
    "github_access": "--github-access",
    "mounts": "--mount",
    "publish": "--publish",
    "allow": "--allow",
}


class Selection(Frozen):
    """A parsed command line. ``overrides`` and ``flags``: see LoadOptions. ``env``: may hold secrets."""

    words: tuple[str, ...] = ()
    name: str | None = None
    trusted_workspace: bool = False
    repo: str | None = None
    branch: str | None = None
    github_access: str | None = None
    follow_links: bool = False
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: tuple[str, ...] = ()
    publish: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    dry_run: bool = False
    as_json: bool = False
    guard_exit: bool = False
    overrides: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)

    def request(self, *, tty: bool) -> LaunchRequest:
        return LaunchRequest(
            name=self.name,
            words=self.words,
            tty=tty,
            trusted_workspace=self.trusted_workspace,
            repo=self.repo,
            branch=self.branch,
            github_access=self.github_access,
            follow_links=self.follow_links,
            env=self.env,
            mounts=self.mounts,
            publish=self.publish,
            allow=self.allow,
            flags=_REQUEST_FLAGS,
        )

    def works_on(self, directory: str, flag: str) -> Selection:
        """The same with the workspace ``directory``, as if it had been typed; ``flag`` is its name in messages."""
        values = {"workspace.host_path": directory, "workspace.source": "host_mount"}
        return replace(
            self,
            trusted_workspace=True,
            overrides={**self.overrides, **values},
            flags={**self.flags, **dict.fromkeys(values, flag)},
        )


class Given(TypedDict):
    """The values of the options that ``run`` and ``host`` share, and the words after ``--``."""

    words: tuple[str, ...]
    workspace: str | None
    follow_links: bool
    repo: str | None
    branch: str | None
    depth: int | None
    submodules: bool | None
    github_access: str | None
    github_auth: str | None
    agent: str | None
    agent_mode: str | None
    ask: bool
    name: str | None
    keep: bool | None
    no_history: bool
    no_guard: bool
    env: tuple[str, ...]
    env_file: tuple[str, ...]
    mounts: tuple[str, ...]
    publish: tuple[str, ...]
    network: str | None
    allow: tuple[str, ...]
    memory: str | None
    cpus: str | None
    profile: str | None
    read_only: bool
    no_creds: bool
    dry_run: bool
    as_json: bool


def selected(
    given: Given,
    others: Mapping[str, tuple[str, str | bool | None]],
    *,
    agent_flag: str = "--agent",
    workspace_flag: str = "--workspace",
    line: str,
) -> Selection:
    """``others``: flag -> (configuration key, value or None). ``*_flag``: how agent and workspace were named.

    ``line``: what was typed before --, without an option -p, or a form of it.

    Raises InvalidValue for a variable that cannot be passed and for a number that is none.
    """
    keys: dict[str, tuple[str, Any]] = {
        workspace_flag: ("workspace.host_path", given["workspace"]),
        "--github-auth": ("github.auth", given["github_auth"]),
        "--depth": ("workspace.depth", given["depth"]),
        "--submodules" if given["submodules"] else "--no-submodules": ("workspace.submodules", given["submodules"]),
        "--keep" if given["keep"] else "--rm": ("session.keep", given["keep"]),
        "--no-history": ("session.history", False if given["no_history"] else None),
        "--no-guard": ("workspace.guard", "off" if given["no_guard"] else None),
        agent_flag: ("agent.kind", given["agent"]),
        "--agent-mode": ("agent.mode", given["agent_mode"]),
        "--ask": ("agent.permissions", "ask" if given["ask"] else None),
        "--network": ("sandbox.network", given["network"]),
        "--memory": ("sandbox.memory", given["memory"]),
        "--cpus": ("sandbox.cpus", _number("sandbox.cpus", "--cpus", given["cpus"])),
        "--profile": ("sandbox.profile", given["profile"]),
        "--read-only": ("workspace.read_only", given["read_only"] or None),
        **others,
    }
    overrides = {key: value for key, value in keys.values() if value is not None}
    flags = {key: flag for flag, (key, value) in keys.items() if value is not None}
    if given["no_creds"]:
        copied = [key for key in KEYS if key.startswith("creds.copy_")]
        overrides |= dict.fromkeys(copied, False)
        flags |= dict.fromkeys(copied, "--no-creds")
    if given["repo"] is not None:
        overrides["workspace.source"], flags["workspace.source"] = "github_clone", "--repo"
    elif given["workspace"] is not None:
        overrides["workspace.source"], flags["workspace.source"] = "host_mount", workspace_flag
    return Selection(
        words=given["words"],
        name=given["name"],
        trusted_workspace=given["workspace"] is not None,
        repo=given["repo"],
        branch=given["branch"],
        github_access=given["github_access"],
        follow_links=given["follow_links"],
        env=session_variables(_values(given["env"]), given["env_file"], os.environ),
        mounts=given["mounts"],
        publish=_ports(_values(given["publish"]), line, given["words"]),
        allow=given["allow"],
        dry_run=given["dry_run"],
        as_json=given["as_json"],
        overrides=overrides,
        flags=flags,
    )


def _values(words: tuple[str, ...]) -> tuple[str, ...]:
    """Values of an option with a short spelling: podman and docker read ``-p=1:2`` as ``-p 1:2``."""
    return tuple(word.removeprefix("=") for word in words)


def _ports(ports: tuple[str, ...], line: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """``ports``, if none was meant for the agent: ``-p`` is also Claude's and Gemini's option for a prompt.

    ``words``: those behind --.
    """
    for word in ports:
        if ":" not in word and not re.fullmatch(_PORTS, word):
            typed = repeated(["-p", word, *words], "-p PROMPT", _LONGEST)
            raise InvalidValue(
                field="sandbox.publish",
                origin="flag --publish",
                reason=f"{shown_word(word)} is not a port",
                hint=f"Options for the agent follow --: `{line} -- {typed}`.",
            )
    return ports


def has_option(given: Given, *, but: str = "") -> bool:
    """Whether an option was typed, also ``--rm`` and its kind, whose value is false. ``but``: not this one."""
    switched_off = given["keep"] is False or given["submodules"] is False
    return switched_off or any(value for name, value in given.items() if name not in ("words", but))


def _number(key: str, flag: str, text: str | None) -> Any:
    """The flag's text as a number. A blank one is an error, because an unset variable of a script is no limit."""
    if text is None:
        return None
    origin = Origin("flag", flag)
    if not text.strip():
        raise InvalidValue(field=key, origin=str(origin), reason="it is blank", hint="Leave the option out.")
    return from_text(KEYS[key], text, origin)


def check_plan_json(command: str, given: Given) -> None:
    """Raise UsageError for ``--json`` without ``--dry-run``, which would start a session."""
    if given["as_json"] and not given["dry_run"]:
        hint = "Add --dry-run to print the plan. For messages in JSON write --log-format json instead."
        raise UsageError(command=command, reason="--json works only with --dry-run", hint=hint)


def show(plan: LaunchPlan, *, as_json: bool) -> None:
    """Print the plan on stdout, for ``--dry-run``: a summary, or all of it as JSON."""
    if as_json:
        import json

        from podbot.launch.describe import describe

        sys.stdout.write(json.dumps(describe(plan), indent=2) + "\n")
        return
    import shutil

    from podbot.cli.plan_summary import summary

    sys.stdout.write(summary(plan, shutil.get_terminal_size().columns if sys.stdout.isatty() else None))


def print_tree(title: str, remark: str, described: Mapping[str, Any]) -> None:
    """Print plain values on stdout as a tree."""
    from rich.console import Console
    from rich.markup import escape
    from rich.tree import Tree

    tree = Tree(f"[bold]{escape(printable(title))}[/bold]{escape(remark)}")
    _grow(tree, described)
    # Lines are folded on a terminal only, because folded paths cannot be searched for.
    Console(width=None if sys.stdout.isatty() else 10_000).print(tree)


def _grow(tree: Any, value: Any) -> None:
    from rich.markup import escape

    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        label = f"[cyan]{escape(str(key))}[/cyan]"
        if isinstance(item, (dict, list, tuple)) and item:
            _grow(tree.add(label), item)
        else:
            tree.add(f"{label}: {escape(printable(str(item)))}")
