"""agent -> client: which requests would act on the client's machine, and are refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from podbot.config.models import Delegation
from podbot.protocol.jsontext import BadFrame, Cut
from podbot.protocol.logins import ANY_LOGIN, Logins, login_cuts
from podbot.protocol.message import CLIPPED, Message, Refuse, error_answer

CODE = -32001
Rule = Callable[[Message], tuple[list[Cut], str]]  # what to cut out of a message, and the reason

# What a method may be made of. No space, control or escape character, nothing that folds or decodes to another.
_PLAIN = re.compile(r"[!#$&()*+,./:;<=>?@A-Z\[\]^_a-z0-9{|}~-]+")
_DENIED = re.compile(r"[^a-z0-9]*(?:(fs|terminal)(?![a-z0-9])|(mcp)[^a-z0-9]*connect)")
_PARTS = {"none": frozenset[str](), "fs": frozenset({"fs"}), "terminal": frozenset({"terminal"}),
          "all": frozenset({"fs", "terminal", "mcp"})}  # fmt: skip


def delegated(delegation: Delegation) -> frozenset[str]:
    """Which of "fs", "terminal" and "mcp" the agent may use on the client's side."""
    return _PARTS[delegation]


def agent_rule(delegation: Delegation, logins: Logins = ANY_LOGIN) -> Rule:
    """The verdict on one message from the agent; it raises Refuse, or BadFrame when there is nobody to tell."""
    allowed = delegated(delegation)
    commands_stay = "terminal" in allowed
    nothing_to_do = commands_stay and logins == ANY_LOGIN

    def rule(message: Message) -> tuple[list[Cut], str]:
        method = message.method
        if method is not None:
            if not _PLAIN.fullmatch(method):
                raise _denied(message, method, "bad_method", delegation)
            found = _DENIED.match(method.lower())
            if found and (found[1] or found[2]) not in allowed:
                raise _denied(message, method, "denied_method", delegation)
        if nothing_to_do or ("result" not in message.fields and "error" not in message.fields):
            return [], ""
        return login_cuts(message, logins, commands_stay=commands_stay)

    return rule


def _denied(message: Message, method: str, reason: str, delegation: Delegation) -> BadFrame:
    text = (
        "refused by podbot's capability policy: the agent may not use the client's files, terminals or servers"
        f" (agent.delegation = {delegation})"
    )
    data = {"method": method[:CLIPPED], "reason": "podbot_capability_policy"}
    return Refuse(reason, error_answer(message.id, CODE, text, data))
