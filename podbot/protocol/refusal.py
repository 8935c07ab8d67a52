"""The filter's report on a frame that it refused or changed; it never includes the contents."""

from __future__ import annotations

import json

from podbot.frozen import Frozen
from podbot.streams.protocol_channel import Side

SHOWN = 100  # characters of a method or an id in a log line; the peer chooses both

#: Every reason, and its text for a log line. The keys are the stable interface.
REASONS = {
    "over_limit": "longer than the frame limit (agent.frame_limit)",
    "not_utf8": "not UTF-8",
    "carriage_return": "a carriage return inside the line",
    "unparseable": "not valid JSON",
    "too_deep": "nested too deeply",
    "too_many_values": "more JSON values than the frame limit allows (agent.frame_limit)",
    "bad_batch": "an empty batch, or one with too many messages",
    "not_object": "an element of a batch is not an object",
    "not_jsonrpc": "neither a method, nor an id with a result or an error",
    "duplicate_key": "a relevant member occurs twice",
    "ambiguous_key": "a member is spelled like a relevant one",
    "bad_method": "the method is not a string",
    "bad_id": "the id is not a string, a number or null",
    "bad_params": "parameters or capabilities that are not an object",
    "denied_method": "the capability policy denies this method",
    "denied_address": "the user would be asked in an unknown way, or to open what is no web address of another machine",
    "too_many_marks": "a question with too many characters that hide or reorder text",
    "overlapping_changes": "podbot could not make its changes to it",
    "outside_mount": "the working directory is outside the workspace",
    "masked_capabilities": "capabilities of the client were masked",
    "marked_question": "a question to the user was marked, because its text is misleading",
    "stripped_servers": "the editor's MCP servers were removed",
    "removed_address": "an address that is no web address of another machine was removed",
    "removed_login": "login methods that cannot work inside the sandbox were removed",
    "advised_login": "the agent needs a login; what to do on the host was added to its error",
}
NOT_JSONRPC = "not_jsonrpc"
REWRITTEN = frozenset(
    {"masked_capabilities", "stripped_servers", "marked_question", "removed_address", "removed_login", "advised_login"}
)
POLICY = frozenset({"denied_method", "denied_address", "outside_mount"}) | REWRITTEN  # although the frame is valid


class Refusal(Frozen):
    """One frame, or one message of a batch, that was refused or rewritten.

    ``direction``: who sent it. ``method`` and ``id`` (JSON text): clipped and printable, or None if they could not be
    read. ``size`` in bytes. ``reason``: a key of ``REASONS``.
    """

    direction: Side
    method: str | None
    id: str | None
    size: int
    reason: str

    @property
    def text(self) -> str:
        return REASONS[self.reason]


def shown(text: str | None) -> str | None:
    """``text`` for a log line: printable ASCII, clipped."""
    if text is None:
        return None
    clipped = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    if clipped.isascii() and clipped.isprintable():
        return clipped
    return json.dumps(clipped)[1:-1]
