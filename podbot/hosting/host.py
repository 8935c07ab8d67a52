"""``host``: one agent behind a protocol, from a plan to its status."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from podbot.agents.registry import agent
from podbot.engine.port import Engine
from podbot.errors import ClientBroken
from podbot.events import Emit, Event
from podbot.execution.hosted import HostedEnd
from podbot.execution.runner import ExecIO, ExecSession, ExecStatus
from podbot.guard.marks import GuardReport
from podbot.hosting.handover import Handover
from podbot.hosting.reporting_filter import ReportingFilter
from podbot.hosting.transcript import Transcript
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.resources.streams import pipes_of
from podbot.launch.types import LaunchPlan
from podbot.protocol.paths import PathScope
from podbot.session.session import opened_sandbox
from podbot.session.sessions import SessionDirectory
from podbot.streams.channel import Channel, Counts
from podbot.streams.wake import Interrupted, Wake

_NOT_STARTED = (126, 127)  # the engine's status for a program that it could not start, or did not find

_DELEGATED = {
    "fs": "files",
    "terminal": "terminals and login commands",
    "all": "files, terminals, login commands and MCP servers",
}


@dataclass(frozen=True, slots=True)
class HostResult:
    """A hosted session that ran to its end. ``statistics``: what passed."""

    session: str
    status: ExecStatus
    kept: bool
    statistics: Counts
    credentials: tuple[str, ...] = ()  # in-container paths of the families that were copied
    guard: GuardReport | None = None  # what the session left that acts on the host; None: not looked at


def channel_for(plan: LaunchPlan) -> Channel:
    """The filter of the plan's protocol."""
    mount, extra, servers = _path_scope(plan), plan.agent.extra_methods, plan.agent.mcp_servers
    if plan.agent.mode != "acp":
        from podbot.protocol.codex import CodexChannel

        return CodexChannel(mount=mount, limit=plan.agent.frame_limit, extra_methods=extra, mcp_servers=servers)
    from podbot.protocol.acp import AcpChannel
    from podbot.protocol.logins import ANY_LOGIN, Logins

    login = agent(plan.agent.kind).login
    return AcpChannel(
        delegation=plan.agent.delegation,
        mount=mount,
        limit=plan.agent.frame_limit,
        logins=ANY_LOGIN if login is None else Logins(login.methods, login.advice),
        extra_methods=extra,
        mcp_servers=servers,
    )


def _path_scope(plan: LaunchPlan) -> PathScope:
    """Where the client's directories are inside."""
    link = plan.sandbox.container.link
    others = tuple(mount.target for mount in plan.sandbox.container.mounts if mount != plan.sandbox.workspace)
    others += (link[0],) if link is not None else ()
    if plan.sandbox.workspace is not None:
        return PathScope(inside=plan.sandbox.workspace.target, outside=plan.sandbox.workspace.source, others=others)
    return PathScope(inside=plan.agent.command.workdir or "/", outside="", others=others)


def run_hosted(
    engine: Engine,
    plan: LaunchPlan,
    io: ExecIO,
    wake: Wake,
    emit: Emit,
    *,
    channel: Channel,
    transcript: str | None = None,
    helper: str | None = None,
) -> HostResult:
    """Carry out ``plan`` between the client on ``io`` and the agent; what it made is unwound, whatever happens.

    ``io.stderr`` None: the agent's stderr and its noise become events. ``helper``: path of the program to which what
    takes longer than a moment is left when the client has left; None: the call ends it all itself. Raises
    ContainerError, FilesystemError, GitHubError, CloneError and StreamError subclasses; the agent's own failure is a
    status.
    """
    secrets = [plan.agent.command.env[name] for name in plan.agent.command.secrets]
    with contextlib.ExitStack() as stack:
        record = None
        if transcript is not None:
            record = Transcript(transcript, session=plan.sandbox.session, secrets=secrets, emit=emit)
            stack.callback(record.close)
        bridge = ReportingFilter(channel, emit, events=io.stderr is None, transcript=record)
        stack.callback(bridge.close)
        end = HostedEnd(emit)
        session = ExecSession(
            engine,
            plan.sandbox.session,
            spec=plan.agent.command,
            io=io,
            wake=wake,
            policy=end,
            through=bridge,
            sandbox_ends=True,
            pipes=pipes_of(plan.sandbox),
        )
        try:
            status, directory = _carried_out(engine, plan, session, end, emit, helper=helper)
        except Interrupted as exc:  # told to end before the agent ran
            status = ExecStatus(code=128 + exc.number, signal=exc.number)
            return HostResult(plan.sandbox.session, status, kept=False, statistics=channel.counts)
    _check_started(plan, status, channel.counts, emit)
    if channel.client_broken and status == ExecStatus(0):
        raise ClientBroken(reason=channel.client_broken)
    credentials = plan.sandbox.find(CredentialsPlan)
    copied = tuple(found.target for found in credentials.sources) if credentials is not None else ()
    return HostResult(
        plan.sandbox.session, status, directory.kept, channel.counts, credentials=copied, guard=directory.guard
    )


def _carried_out(
    engine: Engine, plan: LaunchPlan, execution: ExecSession, end: HostedEnd, emit: Emit, *, helper: str | None
) -> tuple[ExecStatus, SessionDirectory]:
    if plan.agent.mode == "acp" and plan.agent.delegation != "none":
        what = _DELEGATED[plan.agent.delegation]
        key = f"agent.delegation = {plan.agent.delegation}"
        text = f"the trust boundary is moved: the agent may use {what} of the client's own machine ({key})"
        emit(Event("notice", "host.delegation", text, {"delegation": plan.agent.delegation}))
    if plan.agent.extra_methods:
        text = (
            f"the trust boundary is moved: the agent may also call {', '.join(plan.agent.extra_methods)} at the client"
        )
        text += " (agent.extra_methods)"
        emit(Event("notice", "host.extra_methods", text, {"methods": list(plan.agent.extra_methods)}))
    session, secrets = plan.sandbox.session, plan.agent.command.secrets
    with opened_sandbox(engine, plan.sandbox, execution.wake, emit, subcommand="host", secrets=secrets) as box:
        directory = box.directory
        emit(Event("info", "agent.start", f"starting {plan.agent.kind} in {session}", {"session": session}))
        successor = Handover(engine, plan.sandbox, directory, emit, helper=helper) if helper is not None else None
        end.successor = successor
        status = execution.run()
        if not end.left_running:
            emit(
                Event("debug", "agent.end", f"{plan.agent.kind} ended with status {status.code}", {"code": status.code})
            )
        if successor is not None and end.client_left is not None and not directory.handed_over:
            successor.clean_up_unless_soon(time.monotonic() - end.client_left)
    return status, directory


def _check_started(plan: LaunchPlan, status: ExecStatus, counts: Counts, emit: Emit) -> None:
    """An image without podbot's label is not checked before: the engine's own words are on stderr by now."""
    if status.code in _NOT_STARTED and status.signal is None and not counts.frames_to_client:
        program, image = plan.agent.command.command[0], plan.sandbox.container.image
        advice = "correct the command, or build the agent in (`podbot setup --agents …`)"
        text = f"{program} could not be started in {image}: the image lacks it, or the working directory; {advice}"
        emit(Event("warning", "agent.missing", text, {"program": program, "image": image, "code": status.code}))
