"""The Agent Client Protocol: which frames of a hosted session are forwarded, and how they are changed."""

from __future__ import annotations

from collections.abc import Iterable

from podbot.config.models import Delegation, McpServers
from podbot.events import Event
from podbot.protocol.filter import LIMIT, Direction, FilterChannel
from podbot.protocol.logins import ANY_LOGIN, Logins
from podbot.protocol.mask import LOOKED_INTO, client_rule
from podbot.protocol.path_map import PathScope
from podbot.protocol.policy import LOOKED_INTO as QUESTIONS
from podbot.protocol.policy import agent_rule, may_be_tool_call
from podbot.protocol.servers import Servers


class AcpChannel(FilterChannel):
    """See ``FilterChannel``.

    ``mount``: where the workspace is; None: paths are not checked. ``logins``: the agent's known login methods.
    ``extra_methods``: methods of the agent that are forwarded in addition to the known ones. ``mcp_servers``: whether
    the client's MCP servers are removed.
    """

    def __init__(
        self,
        *,
        delegation: Delegation = "none",
        mount: PathScope | None = None,
        limit: int = LIMIT,
        logins: Logins = ANY_LOGIN,
        extra_methods: Iterable[str] = (),
        mcp_servers: McpServers = "strip",
    ) -> None:
        notices: list[Event] = []
        servers = Servers(mcp_servers, notices.append)
        client = Direction(client_rule(delegation, mount, servers), LOOKED_INTO, answers=True)
        rule = agent_rule(delegation, logins, extra=frozenset(extra_methods), mount=mount)
        agent = Direction(rule, QUESTIONS, watch=may_be_tool_call)
        super().__init__(client, agent, limit=limit, salvage=True, notices=notices)
