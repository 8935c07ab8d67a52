"""What ``run`` and ``host`` share: which workspace, which agent, which session, and showing the plan."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

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


class CloneFlags(NamedTuple):
    """``--repo`` and what goes with it, and ``--github-access``, as they were given."""

    repo: str | None = None
    branch: str | None = None
    depth: int | None = None
    submodules: bool | None = None
    access: str | None = None


def selected(
    *,
    words: list[str] | None,
    name: str | None,
    workspace: str | None,
    clone: CloneFlags,
    keep: bool | None,
    history: bool,
    guard: bool,
    dry_run: bool,
    as_json: bool,
    others: dict[str, tuple[str, str | None]],
    workspace_flag: str = "--workspace",
    follow_links: bool = False,
) -> Selection:
    """``others``: flag -> (configuration key, value or None)."""
    given: dict[str, tuple[str, Any]] = {
        workspace_flag: ("workspace.host_path", workspace),
        "--depth": ("workspace.depth", clone.depth),
        "--submodules" if clone.submodules else "--no-submodules": ("workspace.submodules", clone.submodules),
        "--keep" if keep else "--rm": ("session.keep", keep),
        "--no-history": ("session.history", None if history else False),
        "--no-guard": ("workspace.guard", None if guard else "off"),
        **others,
    }
    overrides = {key: value for key, value in given.values() if value is not None}
    flags = {key: flag for flag, (key, value) in given.items() if value is not None}
    if clone.repo is not None:
        overrides["workspace.source"], flags["workspace.source"] = "github_clone", "--repo"
    elif workspace is not None:
        overrides["workspace.source"], flags["workspace.source"] = "host_mount", workspace_flag
    return Selection(
        words=tuple(words or ()),
        name=name,
        trusted_workspace=workspace is not None,
        repo=clone.repo,
        branch=clone.branch,
        github_access=clone.access,
        follow_links=follow_links,
        dry_run=dry_run,
        as_json=as_json,
        overrides=overrides,
        flags=flags,
    )


def agent_keys(
    agent: str | None, agent_mode: str | None, *, ask: bool, flag: str = "--agent"
) -> dict[str, tuple[str, str | None]]:
    """``others`` of ``run``, and the first of ``host``. ``flag``: how the agent was named."""
    return {
        flag: ("agent.kind", agent),
        "--agent-mode": ("agent.mode", agent_mode),
        "--ask": ("agent.permissions", "ask" if ask else None),
    }


def host_keys(delegation: str | None, frame_limit: str | None) -> dict[str, tuple[str, str | None]]:
    """More ``others`` of ``host``."""
    return {
        "--acp-delegation": ("agent.delegation", delegation),
        "--frame-limit": ("agent.frame_limit", frame_limit),
    }


def check_plan_json(command: str, *, dry_run: bool, as_json: bool) -> None:
    """Raise UsageError for ``--json`` where nothing is to be shown: it would start a session."""
    if as_json and not dry_run:
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
