"""A plan as plain values, for ``--dry-run --json``. Only the names of secrets appear, and of what looks like one."""

from __future__ import annotations

import dataclasses
from typing import Any

from podbot.config.public_values import without_secrets
from podbot.container_spec import ContainerSpec
from podbot.exec_spec import ExecSpec
from podbot.launch.resources.every import EVERY
from podbot.launch.types import AgentPlan, LaunchPlan, SandboxPlan


def describe(plan: LaunchPlan) -> dict[str, Any]:
    """The plan as values for JSON: strings, numbers, booleans, None, lists and dicts."""
    sandbox, agent = plan.sandbox, plan.agent
    return {
        "session": sandbox.session,
        "subcommand": plan.subcommand,
        "kind": agent.kind,
        "mode": agent.mode,
        "source": sandbox.source,
        "keep": sandbox.keep,
        "runtime_dir": sandbox.runtime_dir,
        **{name: _resource(sandbox, name) for name in EVERY},
        "container": _container(sandbox.container),
        "agent": _command(agent.command),
        "agent_login": agent.login.described() if agent.login is not None else None,
        **(_protocol(agent) if plan.subcommand == "host" else {}),
        "notes": list(sandbox.notes),
    }


def _resource(sandbox: SandboxPlan, name: str) -> object:
    found = sandbox.resources.get(name)
    return found.described() if found is not None else None


def _protocol(agent: AgentPlan) -> dict[str, Any]:
    return {
        "delegation": agent.delegation,
        "mcp_servers": agent.mcp_servers,
        "extra_methods": list(agent.extra_methods),
        "frame_limit": agent.frame_limit,
    }


def _container(spec: ContainerSpec) -> dict[str, Any]:
    security, limits = spec.security, spec.limits
    return {
        "image": spec.image,
        "image_origin": spec.image_origin,
        "network": spec.network,
        "ports": [dataclasses.asdict(port) for port in spec.ports],
        "runtime": spec.runtime,
        "mounts": [
            {"source": m.source, "target": m.target, "read_only": m.read_only} for m in (*spec.mounts, *spec.files)
        ],
        "guest": spec.guest,
        "link": None if spec.link is None else {"path": spec.link[0], "target": spec.link[1]},
        "security": {
            "privileged": security.privileged,
            "no_new_privileges": security.no_new_privileges,
            "devices": list(security.devices),
            "capabilities": list(security.capabilities),
            "dropped": list(security.dropped),
            "selinux_disable": security.selinux_disable,
            "seccomp": security.seccomp,
            "read_only_root": security.read_only_root,
            "tmpfs": list(security.tmpfs),
            "user": security.user,
            "own_user_ids": security.own_ids,
        },
        "limits": {
            "memory": limits.memory,
            "cpus": limits.cpus,
            "pids": limits.pids,
            "nofile": limits.nofile,
            "by_default": list(limits.by_default),
        },
        "shm": spec.shm,
        "env": without_secrets(spec.env),
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
