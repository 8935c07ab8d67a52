"""The Codex App Server's protocol: which frames of a hosted session are forwarded, and how they are changed.

Its messages have no "jsonrpc". The server may ask the user questions and send any notification; requests that the
client do something or hand something over are refused. What a client sends to enable such requests is removed, like
capabilities in ACP, so that the model is not offered a tool that would fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since 3.0, not in the stubs

from podbot.config.models import McpServers
from podbot.events import Event
from podbot.protocol.earlier import EarlierCalls
from podbot.protocol.filter import LIMIT, Direction, FilterChannel
from podbot.protocol.jsontext import ALIKE, TOKEN, BadFrame, Part, alike, fold_key, members, scan, skip
from podbot.protocol.logins import Cuts, member_cuts
from podbot.protocol.mask import check_place, is_object
from podbot.protocol.message import Message
from podbot.protocol.methods import CODEX, codex_requests
from podbot.protocol.path_map import PathScope
from podbot.protocol.policy import Rule, denied
from podbot.protocol.refusal import REASONS
from podbot.protocol.servers import Servers

#: Capabilities in ``initialize`` by which a client enables one kind of request.
CAPABILITIES: Mapping[str, tuple[str, ...]] = {
    "attestation/generate": ("requestAttestation",),
    "mcpServer/elicitation/request": ("mcpServerOpenaiFormElicitation", "extensions"),
}
TOOLS = "dynamicTools"  # of ``thread/start``: tools that the client runs
TOOL_CALL = "item/tool/call"

#: Members that a client opens in a browser, at any depth of a response and of two notifications.
ADDRESSES = (
    "authUrl",
    "authorizationUrl",
    "verificationUrl",
    "installUrl",
    "shareUrl",
    "websiteUrl",
    "privacyPolicyUrl",
    "termsOfServiceUrl",
)

_PLACED = frozenset(map(fold_key, ("thread/start", "thread/resume", "thread/fork", "turn/start")))
LOOKED_INTO = _PLACED | {"initialize"}
_LINKED = frozenset(map(fold_key, ("account/gatewayOAuth/changed", "app/list/updated")))
_QUESTIONS = frozenset(fold_key(method) for method, passes in CODEX.items() if passes)
_CHANGES = frozenset(
    map(
        fold_key,
        (
            *("item/started", "item/completed", "item/fileChange/patchUpdated"),
            *("turn/started", "turn/completed", "thread/started"),
        ),
    )
)
AGENT_LOOKED_INTO = _LINKED | _QUESTIONS | _CHANGES
_OPENED = frozenset(map(fold_key, ADDRESSES))
_BEGUN = fold_key("item/started")
_MAY_NAME = re.compile(r'(?i)"changes"|\\u')  # what a file change's item has, in a thread or a list
_REFUSED = frozenset(fold_key(method) for method, passes in CODEX.items() if not passes)


class CodexChannel(FilterChannel):
    """See ``FilterChannel``; for the arguments, see ``AcpChannel``."""

    def __init__(
        self,
        *,
        mount: PathScope | None = None,
        limit: int = LIMIT,
        extra_methods: Iterable[str] = (),
        mcp_servers: McpServers = "strip",
    ) -> None:
        notices: list[Event] = []
        extra = frozenset(extra_methods)
        servers = Servers(mcp_servers, notices.append)
        client = Direction(client_rule(mount, servers, extra), LOOKED_INTO, answers=True)
        agent = Direction(agent_rule(extra, mount), AGENT_LOOKED_INTO)
        super().__init__(client, agent, limit=limit, salvage=False, notices=notices, versioned=False)


def agent_rule(extra: frozenset[str] = frozenset(), mount: PathScope | None = None) -> Rule:
    """The verdict on one message from the server. ``extra``: more requests that are forwarded, spelled exactly."""
    known = codex_requests() | extra
    earlier = EarlierCalls()

    def rule(message: Message) -> tuple[Cuts, str]:
        method = message.method
        cuts = _address_cuts(message.text, message.fields.get("result"))
        if method is None:
            _noted(message, "result", mount, earlier)
            return cuts, "removed_address"
        # A listed method is refused even without an id, since a client might act before it checks for one.
        if method not in known and (message.id is not None or fold_key(method) in _REFUSED):
            raise denied(message, method, "it is not in agent.extra_methods", versioned=False)
        name = fold_key(method)
        if name in _LINKED:
            cuts += _address_cuts(message.text, message.fields.get("params"))
        elif name in _QUESTIONS:
            return cuts + _questioned(message, method, mount, earlier), "marked_question"
        elif name in _CHANGES:
            _noted(message, "params", mount, earlier)
        return cuts, "removed_address"

    return rule


def _noted(message: Message, holder: str, mount: PathScope | None, earlier: EarlierCalls) -> None:
    """Remember what items name: a notification has them, and the answer that gives a thread."""
    part = message.fields.get(holder)
    if mount is None or part is None:
        return
    begins = message.method is not None and fold_key(message.method) == _BEGUN  # what it runs and where, for one
    if not begins and not _MAY_NAME.search(message.text, part.place, part.end):
        return
    from podbot.protocol.approvals import note_items  # here as below

    note_items(message.text, part, mount, earlier)


def _questioned(message: Message, method: str, mount: PathScope | None, earlier: EarlierCalls) -> Cuts:
    # Imported here: it takes 4 ms, and many sessions have no questions.
    from podbot.protocol.approvals import approval_cuts

    try:
        return approval_cuts(message, mount, earlier)
    except BadFrame as exc:  # the server waits for a reply
        why = f"the question was not shown: {REASONS[exc.reason]}"
        raise denied(message, method, why, reason=exc.reason, versioned=False) from None


def _address_cuts(text: str, holder: Part | None) -> Cuts:
    """Replace every address that is not a web address by null, because a client opens whatever it gets."""
    cuts: Cuts = []
    if holder is None or not isinstance(holder.value, dict | list):
        return cuts
    key = ""
    around: list[str] = []  # the names of the enclosing objects and lists
    done = holder.place
    for found in TOKEN.finditer(text, holder.place, holder.end):
        piece = found[0]
        if found.start() < done:  # inside a range that is cut out
            continue
        if piece in ("[", "{"):
            around.append(key)
        elif piece in ("]", "}"):
            key = around.pop()
        elif found[1]:
            name = scanstring(piece, 1, True)[0]
            key = fold_key(name) if len(name) <= ALIKE else ""
            if key in _OPENED or (key == "url" and around[-1] == "action"):  # as in AccountSecuritySetupAction
                place = skip(text, found.end())
                value, end = scan(text, place)
                if not _may_be_opened(value):
                    cuts.append((place, end, "null"))
                    done = end
    return cuts


def _may_be_opened(value: object) -> bool:
    from podbot.protocol.web_addresses import is_web_address  # imported here, because few sessions log in

    return value is None or is_web_address(value)


def client_rule(mount: PathScope | None, servers: Servers, extra: frozenset[str] = frozenset()) -> Rule:
    """The verdict on one message from the client; it raises Refuse or BadFrame."""
    capabilities = tuple(name for method, names in CAPABILITIES.items() if method not in extra for name in names)
    tools = () if TOOL_CALL in extra else (TOOLS,)

    def rule(message: Message) -> tuple[Cuts, str]:
        name = "" if message.method is None else fold_key(message.method)
        params = message.fields.get("params") if name in LOOKED_INTO else None
        if params is None or not is_object(params):
            return [], ""
        parts, _ = members(message.text, params.place)
        if name == "initialize":
            return _capability_cuts(message.text, parts, capabilities), "masked_capabilities"
        if mount is not None:
            check_place(message, parts, mount, versioned=False)
        cuts, stripped = member_cuts(parts, *tools), servers.in_thread(message.text, parts)
        return cuts + stripped, "masked_capabilities" if cuts else "stripped_servers"

    return rule


def _capability_cuts(text: str, params: list[Part], names: tuple[str, ...]) -> Cuts:
    part = alike(params, "capabilities")
    if part is None or not is_object(part):
        return []
    return member_cuts(members(text, part.place)[0], *names)
