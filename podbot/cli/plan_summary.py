"""A plan on one screen, for people; ``--json`` has all of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from podbot.agents.login_state import LoginState, iso
from podbot.cli.interaction import folded
from podbot.cli.remedies import with_pages
from podbot.container_spec import ContainerSpec, Limits, Security
from podbot.launch.mounts import mount_notes
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.gateway import GatewayPlan
from podbot.launch.resources.git_identity import GitIdentityPlan
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.resources.token import TokenPlan
from podbot.launch.types import LaunchPlan, SandboxPlan
from podbot.visible_text import printable

_LONGEST = 400  # characters of a command; a prompt may be one of its words
_MOUNTING = "mounting "
_IN_ROWS = (_MOUNTING, "cloning ")  # the beginnings of notes whose content the rows have
_ENDS = {
    "never": "the sandbox is removed",
    "always": "the sandbox is stopped and kept",
    "when_unsaved": "the sandbox is removed, unless the clone has work that is not pushed",
}
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_LOGINS = {"usable": "an account", "key": "a key or token", "cloud": "by another program or provider"}


def summary(plan: LaunchPlan, width: int | None) -> str:
    """The plan as lines: what the agent gets, and the notes. Only the names of secrets appear.

    ``width``: the columns of the terminal; None: lines are not folded, because folded paths cannot be searched for.
    """
    rows = [(label, printable(text)) for label, text in _rows(plan)]
    indent = max(len(label) for label, _ in rows) + 2
    lines = [f"{plan.sandbox.session}  (nothing was created; --json prints the whole plan)"]
    for label, text in rows:
        lines += folded(text, f"  {label:<{indent}}", width)
    return "".join(f"{line}\n" for line in lines)


def _rows(plan: LaunchPlan) -> Iterator[tuple[str, str]]:
    sandbox, agent, container = plan.sandbox, plan.agent, plan.sandbox.container
    command = shlex.join(agent.command.command)
    yield "agent", agent.kind if plan.subcommand == "run" else f"{agent.kind} over {agent.mode}"
    yield "command", command if len(command) <= _LONGEST else f"{command[:_LONGEST]}…"
    yield "image", f"{container.image} ({container.image_origin})"
    yield from _workspace(sandbox)
    yield from _network(sandbox)
    if agent.login is not None:
        yield "login", _login(agent.login)
    yield from _github(sandbox)
    names = sorted({*agent.command.env, *container.env})
    yield "variables", ", ".join(f"{name} (secret)" if name in agent.command.secrets else name for name in names)
    if (identity := sandbox.find(GitIdentityPlan)) is not None and identity.identity:
        yield "commits by", f"{identity.identity.get('user.name', '')} <{identity.identity.get('user.email', '')}>"
    history = sandbox.find(HistoryPlan)
    yield "conversations", f"kept for {history.project}" if history is not None else "not kept"
    yield "limits", _limits(container)
    yield "confinement", _confinement(container.security)
    if plan.subcommand == "host" and (agent.delegation != "none" or agent.mcp_servers != "strip"):
        servers = "removed" if agent.mcp_servers == "strip" else "passed to the agent"
        yield "the editor's", f"capabilities that the agent may use: {agent.delegation}; MCP servers: {servers}"
    if (guard := sandbox.find(GuardPlan)) is not None:
        yield "guard", f"reports what the agent leaves in {guard.workspace} that acts on this machine"
    yield "at the end", _ENDS[sandbox.keep]
    yield from (("note", with_pages(note)) for note in sandbox.notes if not note.startswith(_IN_ROWS))


def _workspace(sandbox: SandboxPlan) -> Iterator[tuple[str, str]]:
    if (clone := sandbox.find(ClonePlan)) is not None:
        branch = f", branch {clone.branch}" if clone.branch else ""
        depth = f", the last {clone.depth} commits" if clone.depth else ""
        yield "clone", f"{clone.url} in {clone.directory}{branch}{depth}"
    for note in mount_notes(sandbox.container.mounts, sandbox.container.link):
        yield "mounts", note.removeprefix(_MOUNTING)


def _network(sandbox: SandboxPlan) -> Iterator[tuple[str, str]]:
    if (gateway := sandbox.find(GatewayPlan)) is not None:
        private = f"; private: {', '.join(gateway.private)}" if gateway.private else ""
        denied = f"; denied: {', '.join(gateway.deny)}" if gateway.deny else ""
        yield "network", f"filtered: {', '.join(gateway.allow) or 'no host'}{private}{denied}"
    else:
        yield "network", sandbox.container.network
    for port in sandbox.container.ports:
        yield "port", f"{port.address}:{port.host_port} of this host is port {port.port} of the sandbox"


def _login(state: LoginState) -> str:
    if not state.works:
        return "none that works"
    until = f", until {iso(state.at)}" if state.at is not None else ""
    return f"{_LOGINS[state.state]} ({state.where}{until})"


def _github(sandbox: SandboxPlan) -> Iterator[tuple[str, str]]:
    if (token := sandbox.find(TokenPlan)) is not None:
        scope = ", ".join(f"{name} {access}" for name, access in token.permissions.items())
        yield "GitHub", f"a token for {token.repo} ({scope or token.auth})"


def _limits(container: ContainerSpec) -> str:
    found: Limits = container.limits
    parts = [f"memory {_size(found.memory)}" if found.memory else "memory: no limit"]
    parts += [f"{found.cpus:g} processors"] if found.cpus else []
    parts += [f"{found.pids:,} processes"] if found.pids else []
    parts += [f"{found.nofile:,} open files of a process"] if found.nofile else []
    parts += [f"shared memory {_size(container.shm)}"] if container.shm else []
    return ", ".join(parts)


def _size(size: int) -> str:
    """In the largest unit of which there is one, with at most one decimal."""
    unit, called = next(((unit, called) for unit, called in _UNITS if size >= unit), (1, "bytes"))
    return f"{f'{size / unit:,.1f}'.removesuffix('.0')} {called}"


def _confinement(found: Security) -> str:
    if found.privileged:
        return "privileged: root's powers over this host's devices"
    parts = ["no new privileges"] if found.no_new_privileges else ["new privileges are possible"]
    parts += [f"capabilities added: {', '.join(found.capabilities)}"] if found.capabilities else []
    parts += [f"devices: {', '.join(found.devices)}"] if found.devices else []
    parts += [f"{len(found.dropped)} capabilities dropped" if found.dropped != ("ALL",) else "no capability"]
    parts += ["podbot's filter of system calls" if found.seccomp else "the engine's filter of system calls"]
    parts += ["read-only system"] if found.read_only_root else []
    parts += ["user ids of its own"] if found.own_ids else []
    return ", ".join(parts)
