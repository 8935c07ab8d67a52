"""``podbot inspect``: all that is known of a session, and how its container is confined."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import PodbotError
from podbot.launch.names import keep_of
from podbot.management.manage import SessionInfo, info_of
from podbot.places import runtime_root
from podbot.session.directory import sessions
from podbot.session.plan_json import NotAPlan, plan_from
from podbot.session.record import SessionRecord, read_record
from podbot.session.restore import lasting_record
from podbot.session.seccomp_filter import seccomp_mode
from podbot.session.session_names import session_meant
from podbot.tokens.token_info import token_info

_SECCOMP = {0: "none", 1: "strict", 2: "filter"}


@dataclass(frozen=True)
class Inspection:
    """A session. ``session``: as `podbot ps` lists it. ``record``: what podbot has recorded of it.

    ``plan``: what was decided at its start, without secrets and the texts of podbot's own files; None if the record has
    none. ``confinement``: what the engine reports, ``unmet``: the parts of the plan that it has not applied, and
    ``seccomp``: what the kernel reports of the first process, None if it does not run on this machine.
    """

    session: SessionInfo
    record: dict[str, Any] | None
    plan: dict[str, Any] | None
    confinement: dict[str, Any]


def inspect_session(engine: Engine, environ: Mapping[str, str], given: str) -> Inspection:
    """What is known of a session. Raises ContainerNotFound, AmbiguousName, NotOurs and other ContainerErrors."""
    container = session_meant(engine, given)
    record, reason = _record(engine, environ, container)
    return Inspection(
        _info(environ, container),
        {"unreadable": reason} if record is None and reason else _described(record, container),
        _public_plan(record),
        _confinement(engine, container, record),
    )


def _info(environ: Mapping[str, str], container: ContainerInfo) -> SessionInfo:
    here = next((found for found in sessions(environ) if found.session == container.name), None)
    token = token_info(os.path.join(runtime_root(environ), container.name)) if here is not None else None
    info = info_of(container, orphan=here is not None and here.left_behind, token=token)
    return replace(info, detached=here is not None and here.state == "detached" and container.state == "running")


def _record(engine: Engine, environ: Mapping[str, str], container: ContainerInfo) -> tuple[SessionRecord | None, str]:
    """The record, which may be the copy that outlives a reboot; or why it cannot be read."""
    try:
        found = read_record(os.path.join(runtime_root(environ), container.name))
        return (lasting_record(engine, environ, container) if found is None else found), ""
    except PodbotError as exc:
        return None, exc.message


def _described(record: SessionRecord | None, container: ContainerInfo) -> dict[str, Any] | None:
    if record is None:
        return None
    return {
        "state": record.state,
        "subcommand": record.subcommand,
        "created": record.created,
        "container": record.container,
        "engine": record.engine,
        "endpoint": record.endpoint,
        "keep": keep_of(container.labels),
        "secrets": list(record.secrets),
    }


def _public_plan(record: SessionRecord | None) -> dict[str, Any] | None:
    if record is None or record.plan is None:
        return None
    plan = dict(record.plan)
    files = plan.get("files")
    if isinstance(files, list):
        plan["files"] = [{**file, "text": len(str(file.get("text")))} for file in files if isinstance(file, dict)]
    return plan


def _confinement(engine: Engine, container: ContainerInfo, record: SessionRecord | None) -> dict[str, Any]:
    mode = seccomp_mode(container.pid) if engine.local and container.pid > 0 else None
    mounts = sorted(container.mounts, key=lambda mount: (mount.source, mount.target))
    return {
        **asdict(engine.confinement(container.id)),
        "seccomp": None if mode is None else _SECCOMP.get(mode, str(mode)),
        "mounts": [asdict(mount) for mount in mounts],
        "unmet": _unmet(engine, container, record),
    }


def _unmet(engine: Engine, container: ContainerInfo, record: SessionRecord | None) -> list[dict[str, str]] | None:
    """None: there is no plan to compare with."""
    try:
        plan = plan_from(record.plan) if record is not None and record.plan is not None else None
    except NotAPlan:
        plan = None
    return None if plan is None else [asdict(found) for found in engine.unmet(container.id, plan.container)]
