"""``host``: run one agent that speaks a protocol, from a plan to its status."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from podbot.agents.registry import agent
from podbot.config.models import DEFAULT_ORIGIN
from podbot.engine.port import Engine
from podbot.errors import ClientBroken
from podbot.events import Emit, Event
from podbot.execution.hosted_end import HOSTED_LIMITS, HostedEnd, HostedLimits
from podbot.execution.runner import ExecIO, ExecSession, ExecStatus
from podbot.execution.sandbox_start import SandboxStart
from podbot.frozen import Frozen
from podbot.guard.marks import GuardReport
from podbot.hosting.handover import Handover
from podbot.hosting.reporting_filter import ReportingFilter
from podbot.launch.resources.credentials import copied_targets
from podbot.launch.resources.guest import guest_of
from podbot.launch.types import LaunchPlan
from podbot.protocol.path_map import PathScope
from podbot.session.directory import SessionDirectory
from podbot.session.end_cause import OwnersWitness
from podbot.session.guarding import SCANNER, Scanner
from podbot.session.kill_watcher import HelperProgram
from podbot.session.limits_reached import tell_limits_reached
from podbot.session.opening import opened_sandbox
from podbot.streams.protocol_channel import Channel, Counts
from podbot.streams.wake import Interrupted, Wake

_NOT_STARTED = (126, 127)  # the engine's status for a program that it could not start or find

_DELEGATED = {
    "fs": "files",
    "terminal": "terminals and login commands",
    "all": "files, terminals, login commands and MCP servers",
}


class HostResult(Frozen):
    """A hosted session that ran to its end. ``statistics``: the traffic."""

    session: str
    status: ExecStatus
    kept: bool
    statistics: Counts
    credentials: tuple[str, ...] = ()  # in-container paths of the families that were copied
    guard: GuardReport | None = None  # findings of the guard; None if there was no comparison


def channel_for(plan: LaunchPlan) -> Channel:
    """The filter of the plan's protocol."""
    mount, extra, servers = _path_scope(plan), plan.agent.extra_methods, plan.agent.mcp_servers
    if plan.agent.mode != "acp":
        from podbot.protocol.app_server import CodexChannel

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
    """How the client's directories map to those inside."""
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
    killed_helper: HelperProgram | None = None,
    limits: HostedLimits = HOSTED_LIMITS,
    scanner: Scanner = SCANNER,
    origin: Callable[[str], object] = lambda _key: DEFAULT_ORIGIN,
) -> HostResult:
    """Carry out ``plan`` between the client on ``io`` and the agent; everything created is undone, whatever happens.

    With ``io.stderr`` None, the agent's diagnostics become events. ``helper``: path of the program that finishes a
    slow end after the client has left; None: this call ends the session itself. ``killed_helper``: see
    ``session.kill_watcher``; ``scanner``: the guard's; ``origin``: where a configuration key's value comes from. Raises
    ContainerError, SessionError, FilesystemError, GitHubError, CloneError and StreamError subclasses. A failure of the
    agent itself is a status.
    """
    secrets = [plan.agent.command.env[name] for name in plan.agent.command.secrets]
    with contextlib.ExitStack() as stack:
        record = None
        if transcript is not None:
            from podbot.hosting.transcript import Transcript  # imported here: few sessions have one

            record = Transcript(transcript, session=plan.sandbox.session, secrets=secrets, emit=emit)
            stack.callback(record.close)
        bridge = ReportingFilter(channel, emit, events=io.stderr is None, transcript=record)
        stack.callback(bridge.close)
        end = HostedEnd(emit, limits=limits)
        session = ExecSession(
            SandboxStart(
                engine,
                plan.sandbox.session,
                guest=guest_of(plan.sandbox),
                witness=OwnersWitness(plan.sandbox.runtime_dir),
            ),
            spec=plan.agent.command,
            io=io,
            wake=wake,
            policy=end,
            through=bridge,
            sandbox_ends=True,
        )
        try:
            status, directory = _carried_out(
                engine, plan, session, end, emit, helper=helper, killed_helper=killed_helper, scanner=scanner,
                origin=origin,
            )  # fmt: skip
        except Interrupted as exc:  # a signal arrived before the agent ran
            status = ExecStatus(code=128 + exc.number, signal=exc.number)
            return HostResult(plan.sandbox.session, status, kept=False, statistics=channel.counts)
    _check_started(plan, status, channel.counts, emit)
    if channel.client_broken and status.code == 0 and status.signal is None:
        raise ClientBroken(reason=channel.client_broken)
    copied = copied_targets(plan.sandbox)
    return HostResult(
        plan.sandbox.session, status, directory.kept, channel.counts, credentials=copied, guard=directory.guard
    )


def _carried_out(
    engine: Engine,
    plan: LaunchPlan,
    execution: ExecSession,
    end: HostedEnd,
    emit: Emit,
    *,
    helper: str | None,
    killed_helper: HelperProgram | None,
    scanner: Scanner,
    origin: Callable[[str], object],
) -> tuple[ExecStatus, SessionDirectory]:
    if plan.agent.mode == "acp" and plan.agent.delegation != "none":
        what = _DELEGATED[plan.agent.delegation]
        key = f"agent.delegation = {plan.agent.delegation}"
        text = f"reduced isolation: the agent may use {what} of the client's own machine ({key})"
        emit(Event("notice", "host.delegation", text, {"delegation": plan.agent.delegation}))
    if plan.agent.extra_methods:
        text = f"reduced isolation: the agent may also call {', '.join(plan.agent.extra_methods)} at the client"
        text += " (agent.extra_methods)"
        emit(Event("notice", "host.extra_methods", text, {"methods": list(plan.agent.extra_methods)}))
    session, secrets = plan.sandbox.session, plan.agent.command.secrets
    opening = opened_sandbox(
        engine, plan.sandbox, execution.wake, emit, subcommand="host", secrets=secrets, scanner=scanner,
        killed_helper=killed_helper,
    )  # fmt: skip
    with opening as box:
        directory = box.directory
        emit(Event("info", "agent.start", f"starting {plan.agent.kind} in {session}", {"session": session}))
        successor = Handover(engine, plan.sandbox, directory, emit, helper=helper) if helper is not None else None
        end.successor = successor
        status = execution.run()
        if not end.left_running:
            emit(
                Event("debug", "agent.end", f"{plan.agent.kind} ended with status {status.code}", {"code": status.code})
            )
            status = tell_limits_reached(box.engine, box.plan, status, origin, emit)
        if successor is not None and end.client_left is not None and not directory.handed_over:
            successor.clean_up_unless_soon(time.monotonic() - end.client_left)
    return status, directory


def _check_started(plan: LaunchPlan, status: ExecStatus, counts: Counts, emit: Emit) -> None:
    """Warn if the agent could not be started. An image without podbot's label is not checked beforehand."""
    if status.code in _NOT_STARTED and status.signal is None and not counts.frames_to_client:
        program, image = plan.agent.command.command[0], plan.sandbox.container.image
        advice = "correct the command, or build the agent in (`podbot setup --agents …`)"
        text = f"{program} could not be started in {image}: the image lacks it or the working directory; {advice}"
        emit(Event("warning", "agent.missing", text, {"program": program, "image": image, "code": status.code}))
