"""Removal, by the next podbot command, of a session whose podbot or helper process was killed.

A sandbox that is not kept ends by itself soon after its podbot (``resources.guest``); what it leaves is removed here. A
hosted one is removed even if it runs: editors routinely end podbot with KILL, and such a session has no
client any more. A clone with unsaved work is kept.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import PodbotError
from podbot.events import Emit, Event
from podbot.frozen import replace
from podbot.launch.names import LABEL, keep_of
from podbot.places import runtime_root
from podbot.session.directory import SessionDirectory, left_session
from podbot.session.disposal import STOP_SECONDS, kept_event
from podbot.session.flags import ENDING, ORPHANED, flagged
from podbot.session.guarding import SCANNER, Scanner, report_left
from podbot.session.kept_reports import reporting
from podbot.session.login_copies import withdraw_copies
from podbot.session.network import remove_sandbox
from podbot.session.own_files import forget_files
from podbot.session.stuck_servers import end_stuck

if TYPE_CHECKING:
    from podbot.session.record import SessionRecord

LIVES = ("running", "paused", "stopping")


def is_over(container: ContainerInfo, *, never_ran: bool) -> bool:
    """Whether what a killed podbot left of a session can be removed; an operator may still want one that runs.

    ``never_ran``: see ``SessionRecord``.
    """
    has_ended = keep_of(container.labels) != "always" and container.state not in LIVES
    return is_hosted(container) or never_ran or has_ended


def is_hosted(container: ContainerInfo) -> bool:
    """Whether the container is a session of ``podbot host``: its client was a program that has since exited."""
    return container.labels.get(f"{LABEL}.mode", "podbot") != "podbot"


def remove_abandoned(
    engine: Engine,
    environ: Mapping[str, str],
    container: ContainerInfo,
    emit: Emit,
    *,
    scanner: Scanner = SCANNER,
) -> None:
    """Remove the session, or keep it when it has unsaved work. ``scanner``: the guard's.

    Raises SessionExists when another podbot is doing so already, and ContainerError and FilesystemError subclasses.
    """
    path = os.path.join(runtime_root(environ), container.name)
    with flagged(path, ENDING), flagged(path, ORPHANED), left_session(path) as directory:
        if directory is None or directory.record.state != "orphaned":
            return  # another podbot has removed or kept both already, and reported it
        with reporting(environ, directory.record, emit) as told:
            end_abandoned(engine, environ, container, directory, told, scanner=scanner)


def end_abandoned(
    engine: Engine,
    environ: Mapping[str, str],
    container: ContainerInfo,
    directory: SessionDirectory,
    emit: Emit,
    *,
    scanner: Scanner = SCANNER,
) -> None:
    """As :func:`remove_abandoned`, for a caller who holds the session's ``directory``."""
    unsaved = _worth_keeping(engine, directory, container)
    if unsaved is not None:
        directory.move("stopped")
        _remove_token(directory)  # again: a token-daemon may have seen that it was missing
        withdraw_copies(environ, container.name, container.labels.get(f"{LABEL}.created", ""))
        emit(kept_event(container.name, unsaved))
        report_left(directory.path, emit, scanner=scanner)
        return
    remove_sandbox(engine, container.id, container.name, ended=lambda: end_stuck(directory.record, emit))
    if container.state == "created" or directory.never_ran:
        clear_unlisted(engine, replace(directory.record, container=container.id))
    forget_files(environ, container.name, container.labels.get(f"{LABEL}.created", ""))
    directory.move("gone")
    text = f"removed the sandbox {container.name}, which was left behind when its podbot was killed"
    emit(Event("notice", "session.removed", text, {"session": container.name}))
    report_left(directory.path, emit, scanner=scanner)


def clear_unlisted(engine: Engine, record: SessionRecord) -> None:
    """Remove what the engine has, and does not list, of a session that was killed while it started.

    Raises ContainerError subclasses.
    """
    try:
        since = datetime.fromisoformat(record.created).timestamp()
    except ValueError:  # an older podbot's: its container is known by its id alone
        since = math.inf
    engine.clear(record.session, record.container, since)


def _worth_keeping(engine: Engine, directory: SessionDirectory, container: ContainerInfo) -> str | None:
    """Why the container is to be kept, or None to remove it; as in ``disposal``, but the agent may still be running."""
    keep = keep_of(container.labels)
    if keep == "never" or container.state == "created" or directory.never_ran:
        return None
    if container.state == "running":
        engine.stop(container.id, seconds=STOP_SECONDS)
    _remove_token(directory)
    if keep == "always":
        return ""
    from podbot.session.unsaved_stop import look

    return str(look(engine, container)) or None


def _remove_token(directory: SessionDirectory) -> None:
    from podbot.github.keeper import remove_token
    from podbot.github.token_file import SECRETS

    if not os.path.lexists(os.path.join(directory.path, SECRETS)):
        return
    try:
        remove_token(directory.path)
    except PodbotError:
        return  # an App's token expires within an hour; another one goes with the directory
