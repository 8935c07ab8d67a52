"""A session cannot be had, or not be brought back."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.host import FilesystemError


class SessionKept(FilesystemError):
    """A session of that name was kept: its container is there, stopped."""

    session: str
    template: ClassVar[str] = "there is a kept session named {session}"
    advice: ClassVar[str] = (
        "`podbot start {session}` brings it back, `podbot stop --rm {session}` removes it; or choose another --name."
    )


class SessionNotRestorable(FilesystemError):
    """``podbot start``: the session cannot be brought back as it was."""

    session: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the session {session} cannot be started again: {reason}"
    advice: ClassVar[str] = "{hint}"


class SessionRecordUnknown(FilesystemError):
    """A session's record is not one that this podbot can read: a newer podbot's, or not podbot's at all."""

    session: str
    path: str
    reason: str
    template: ClassVar[str] = "the record {path} of the session {session} cannot be read: {reason}"
    advice: ClassVar[str] = (
        "Use the podbot that wrote it. If that is gone, `podbot stop --rm {session}` removes its container, and then"
        " the record's directory can be removed."
    )
