"""A plan as plain values, for ``--dry-run`` and ``--json``. Secrets appear by name only."""

from __future__ import annotations

import shlex
from typing import Any

from podbot.launch.types import (
    AgentPlan,
    ClonePlan,
    ContainerSpec,
    CredentialsPlan,
    ExecSpec,
    HistoryPlan,
    LaunchPlan,
    TokenPlan,
)


def describe(plan: LaunchPlan) -> dict[str, Any]:
    """JSON-able: strings, numbers, booleans, None, lists and dicts."""
    sandbox, agent = plan.sandbox, plan.agent
    guard = sandbox.guard
    return {
        "session": sandbox.session,
        "subcommand": plan.subcommand,
        "kind": agent.kind,
        "mode": agent.mode,
        "source": sandbox.source,
        "keep": sandbox.keep,
        "runtime_dir": sandbox.runtime_dir,
        "git_identity": dict(sandbox.git_identity),
        "credentials": _credentials(sandbox.credentials),
        "clone": _clone(sandbox.clone),
        "token": _token(sandbox.token),
        "history": _history(sandbox.history),
        "guard": None if guard is None else {"workspace": guard.workspace, "git": guard.git or None},
        "container": _container(sandbox.container),
        "agent": _command(agent.command),
        **(_protocol(agent) if plan.subcommand == "host" else {}),
        "notes": list(sandbox.notes),
    }


def _protocol(agent: AgentPlan) -> dict[str, Any]:
    return {
        "delegation": agent.delegation,
        "mcp_servers": agent.mcp_servers,
        "extra_methods": list(agent.extra_methods),
        "frame_limit": agent.frame_limit,
    }


def _credentials(plan: CredentialsPlan) -> list[dict[str, Any]]:
    """Where from and where to; what is in them is not read for a plan."""
    rows = [
        {"family": found.family, "source": found.source, "target": found.target, "reduced": False}
        for found in plan.sources
    ]
    if plan.first_run is not None:
        rows.append({"family": "claude", "source": plan.first_run, "target": "/root/.claude.json", "reduced": True})
    return rows


def _clone(clone: ClonePlan | None) -> dict[str, Any] | None:
    if clone is None:
        return None
    return {
        "repo": clone.repo,
        "branch": clone.branch,
        "url": clone.url,
        "directory": clone.directory,
        "depth": clone.depth,
        "submodules": clone.submodules,
    }


def _token(token: TokenPlan | None) -> dict[str, Any] | None:
    """What it will be made from; a plan has none."""
    if token is None:
        return None
    return {
        "repo": token.repo,
        "permissions": dict(token.permissions),
        "app_id": token.app_id,
        "installation_id": token.installation_id,
        "private_key_path": token.private_key_path,
        "api_url": token.api_url,
    }


def _history(history: HistoryPlan | None) -> dict[str, Any] | None:
    if history is None:
        return None
    return {"project": history.project, "store": history.store.source, "resume": shlex.join(history.resume)}


def _container(spec: ContainerSpec) -> dict[str, Any]:
    security, limits = spec.security, spec.limits
    return {
        "image": spec.image,
        "image_origin": spec.image_origin,
        "network": spec.network,
        "runtime": spec.runtime,
        "mounts": [
            {"source": m.source, "target": m.target, "read_only": m.read_only} for m in (*spec.mounts, *spec.files)
        ],
        "link": None if spec.link is None else {"path": spec.link[0], "target": spec.link[1]},
        "security": {
            "privileged": security.privileged,
            "no_new_privileges": security.no_new_privileges,
            "devices": list(security.devices),
            "capabilities": list(security.capabilities),
            "dropped": list(security.dropped),
            "selinux_disable": security.selinux_disable,
            "seccomp": security.seccomp,
        },
        "limits": {
            "memory": limits.memory,
            "cpus": limits.cpus,
            "pids": limits.pids,
            "by_default": list(limits.by_default),
        },
        "env": dict(spec.env),
        "labels": dict(spec.labels),
    }


def _command(spec: ExecSpec) -> dict[str, Any]:
    return {
        "command": list(spec.command),
        "workdir": spec.workdir,
        "tty": spec.tty,
        "env": [
            {"name": name, "secret": True} if name in spec.secrets else {"name": name, "value": value}
            for name, value in sorted(spec.env.items())
        ],
    }
