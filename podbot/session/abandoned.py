"""What a hosted session left whose podbot, or helper process, was killed: removed by the next command.

Editors end podbot with KILL as a matter of course, and nobody comes back to such a session: its client is gone.
A clone with unsaved work is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import PodbotError
from podbot.events import Emit, Event
from podbot.launch.labels import LABEL, keep_of
from podbot.places import runtime_root
from podbot.session.disposal import STOP_SECONDS, kept_event
from podbot.session.flags import ENDING, flagged
from podbot.session.guarding import report_left
from podbot.session.network import remove_sandbox
from podbot.session.own_files import forget_files
from podbot.session.sessions import SessionDirectory, left_session


def is_hosted(container: ContainerInfo) -> bool:
    """A session of ``podbot host``: its client was a program, and is gone."""
    return container.labels.get(f"{LABEL}.mode", "podbot") != "podbot"


def remove_abandoned(engine: Engine, environ: Mapping[str, str], container: ContainerInfo, emit: Emit) -> None:
    """Raises SessionExists when another podbot does it, ContainerError and FilesystemError subclasses."""
    path = os.path.join(runtime_root(environ), container.name)
    with flagged(path, ENDING), left_session(path) as directory:
        if directory is None or directory.record.state != "orphaned":
            return  # another podbot has removed or kept both already, and reported it
        unsaved = _worth_keeping(engine, directory, container)
        if unsaved is not None:
            directory.move("stopped")
            emit(kept_event(container.name, unsaved))
            report_left(path, emit)
            return
        remove_sandbox(engine, container.id, container.name)
        forget_files(environ, container)
        directory.move("gone")
        text = f"removed the sandbox {container.name}, which was left behind when its podbot was killed"
        emit(Event("notice", "session.removed", text, {"session": container.name}))
        report_left(path, emit)


def _worth_keeping(engine: Engine, directory: SessionDirectory, container: ContainerInfo) -> str | None:
    """As in ``disposal``, of a container in which the agent may still be at work."""
    keep = keep_of(container.labels)
    if keep == "never" or container.state == "created":  # no agent ever ran in it
        return None
    if container.state == "running":
        engine.stop(container.id, seconds=STOP_SECONDS)
    _remove_token(directory)
    if keep == "always":
        return ""
    from podbot.session.unsaved_stop import look

    return str(look(engine, container)) or None


def _remove_token(directory: SessionDirectory) -> None:
    from podbot.github.token_file import SECRETS, TokenFile

    try:
        TokenFile(os.path.join(directory.path, SECRETS)).remove()
    except PodbotError:
        return  # it lasts for an hour at most
