"""A session cannot be had, or not be brought back."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.host import FilesystemError


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
