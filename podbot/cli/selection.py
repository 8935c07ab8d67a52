"""What ``run`` and ``host`` share: which workspace, which agent, which session, and showing the plan."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from podbot.cli.report import printable
from podbot.errors import UsageError
from podbot.launch.types import LaunchPlan, LaunchRequest, Subcommand


@dataclass(frozen=True)
class Selection:
    """A command line, parsed. ``overrides`` and ``flags``: see LoadOptions."""

    words: tuple[str, ...] = ()
    name: str | None = None
    trusted_workspace: bool = False
    repo: str | None = None
    branch: str | None = None
    github_access: str | None = None
    follow_links: bool = False
    dry_run: bool = False
    as_json: bool = False
    guard_exit: bool = False
    overrides: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)

    def request(self, subcommand: Subcommand, *, tty: bool) -> LaunchRequest:
        return LaunchRequest(
            subcommand=subcommand,
            name=self.name,
            words=self.words,
            tty=tty,
            trusted_workspace=self.trusted_workspace,
            repo=self.repo,
            branch=self.branch,
            github_access=self.github_access,
            follow_links=self.follow_links,
        )

    def works_on(self, directory: str, flag: str) -> Selection:
        """The same on ``directory``, as if it had been typed; ``flag`` is what messages call it."""
        values = {"workspace.host_path": directory, "workspace.source": "host_mount"}
        return replace(
            self,
            trusted_workspace=True,
            overrides={**self.overrides, **values},
            flags={**self.flags, **dict.fromkeys(values, flag)},
        )


class Given(TypedDict):
    """The values of the options that ``run`` and ``host`` share, and the words behind ``--``."""

    words: tuple[str, ...]
    workspace: str | None
    follow_links: bool
    repo: str | None
    branch: str | None
    depth: int | None
    submodules: bool | None
    github_access: str | None
    agent: str | None
    agent_mode: str | None
    ask: bool
    name: str | None
    keep: bool | None
    no_history: bool
    no_guard: bool
    dry_run: bool
    as_json: bool


def selected(
    given: Given,
    others: Mapping[str, tuple[str, str | None]],
    *,
    agent_flag: str = "--agent",
    workspace_flag: str = "--workspace",
) -> Selection:
    """``others``: flag -> (configuration key, value or None). The flags: how the agent and the workspace were named."""
    keys: dict[str, tuple[str, Any]] = {
        workspace_flag: ("workspace.host_path", given["workspace"]),
        "--depth": ("workspace.depth", given["depth"]),
        "--submodules" if given["submodules"] else "--no-submodules": ("workspace.submodules", given["submodules"]),
        "--keep" if given["keep"] else "--rm": ("session.keep", given["keep"]),
        "--no-history": ("session.history", False if given["no_history"] else None),
        "--no-guard": ("workspace.guard", "off" if given["no_guard"] else None),
        agent_flag: ("agent.kind", given["agent"]),
        "--agent-mode": ("agent.mode", given["agent_mode"]),
        "--ask": ("agent.permissions", "ask" if given["ask"] else None),
        **others,
    }
    overrides = {key: value for key, value in keys.values() if value is not None}
    flags = {key: flag for flag, (key, value) in keys.items() if value is not None}
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
        dry_run=given["dry_run"],
        as_json=given["as_json"],
        overrides=overrides,
        flags=flags,
    )


def check_plan_json(command: str, given: Given) -> None:
    """Raise UsageError for ``--json`` where nothing is to be shown: it would start a session."""
    if given["as_json"] and not given["dry_run"]:
        hint = f"`{command} --dry-run --json` prints the plan; `--log-format json` makes messages JSON."
        raise UsageError(command=command, reason="--json without --dry-run", hint=hint)


def show(plan: LaunchPlan, *, as_json: bool) -> None:
    """The plan on stdout, for ``--dry-run``."""
    import json

    from podbot.launch.describe import describe

    described = describe(plan)
    if as_json:
        sys.stdout.write(json.dumps(described, indent=2) + "\n")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.tree import Tree

    tree = Tree(f"[bold]{escape(plan.sandbox.session)}[/bold]  (nothing was created)")
    _grow(tree, described)
    # Folded paths cannot be searched for: lines are broken on a terminal only.
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
