"""client -> agent: mask capabilities in ``initialize`` that act on the client's machine, and check directories."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.config.models import Delegation
from podbot.protocol.jsontext import BadFrame, Part, alike, fold_key, members
from podbot.protocol.logins import Cuts, member_cuts, meta_cuts
from podbot.protocol.message import CLIPPED, Message, Refuse, error_answer
from podbot.protocol.methods import delegated
from podbot.protocol.path_map import PathScope
from podbot.protocol.policy import Rule
from podbot.protocol.servers import Servers

INVALID_PARAMS = -32602
CAPABILITIES = ("clientCapabilities", "capabilities")  # version 1 and 2; both are masked in either version
_OPENING = frozenset(map(fold_key, ("session/new", "session/load", "session/resume", "session/fork")))
LOOKED_INTO = _OPENING | {"initialize"}  # the rule ignores all other methods


def client_rule(delegation: Delegation, mount: PathScope | None, servers: Servers) -> Rule:
    """The verdict on one message from the client; it raises Refuse or BadFrame."""
    kept = delegated(delegation)

    def rule(message: Message) -> tuple[Cuts, str]:
        name = "" if message.method is None else fold_key(message.method)
        if name == "initialize":
            return _mask(message, kept), "masked_capabilities"
        if name in _OPENING:
            return _opened(message, mount, servers), "stripped_servers"
        return [], ""

    return rule


def _opened(message: Message, mount: PathScope | None, servers: Servers) -> Cuts:
    params = message.fields.get("params")
    if params is None or not isinstance(params.value, dict):
        return []
    parts, _ = members(message.text, params.place)
    if mount is not None:
        check_place(message, parts, mount)
    return servers.in_session(parts)


def _mask(message: Message, kept: frozenset[str]) -> Cuts:
    params = message.fields.get("params")
    cuts: Cuts = []
    if params is None or not is_object(params):
        return cuts
    inside, _ = members(message.text, params.place)
    for name in CAPABILITIES:
        part = alike(inside, name)
        if part is not None and is_object(part):
            cuts += _in_capabilities(message.text, part, kept)
    return cuts


def is_object(part: Part) -> bool:
    """Whether the part is an object; false for null. Raises BadFrame otherwise, such as for positional parameters."""
    if part.value is not None and not isinstance(part.value, dict):
        raise BadFrame("bad_params")
    return part.value is not None


def _in_capabilities(text: str, capabilities: Part, kept: frozenset[str]) -> Cuts:
    parts, _ = members(text, capabilities.place)
    cuts = member_cuts(parts, *(name for name in ("fs", "terminal") if name not in kept))
    if "terminal" in kept:
        return cuts
    auth = alike(parts, "auth")
    if auth is not None and isinstance(auth.value, dict):
        cuts += member_cuts(members(text, auth.place)[0], "terminal")
    return cuts + meta_cuts(text, parts)


def check_place(message: Message, params: Sequence[Part], mount: PathScope, *, versioned: bool = True) -> None:
    """Raise Refuse when the parameter ``cwd`` is outside the workspace."""
    cwd = alike(params, "cwd")
    if cwd is None or message.text[cwd.place] != '"' or mount.holds(cwd.value):
        return
    path = cwd.value[: 20 * CLIPPED]
    host = f" ({mount.outside} on the host)" if mount.outside not in ("", mount.inside) else ""
    advice = "start podbot with a workspace that holds it" if mount.outside else "it is a clone: open the session there"
    text = f"the working directory {path} is outside this sandbox's workspace {mount.inside}{host}; {advice}"
    places = {"workspace": mount.inside, "host_path": mount.outside or None}
    data = {"cwd": path, **places, "reason": "podbot_outside_mount"}
    answer = None if message.id is None else error_answer(message.id, INVALID_PARAMS, text, data, versioned=versioned)
    raise Refuse("outside_mount", answer)
