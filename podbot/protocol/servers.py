"""client -> agent: the editor's MCP servers, which come with tokens, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podbot.config.models import McpServers
from podbot.events import Event
from podbot.protocol.jsontext import Part, alike, cuts_for, fold_key, members
from podbot.protocol.logins import Cuts
from podbot.protocol.refusal import shown

MOST_NAMES = 64  # that are said, and remembered, in one session
CODEX_KEY = "mcp_servers"  # of Codex's configuration, which ``thread/start`` may bring along
UNNAMED = "a server without a name"

_KEPT = "they run inside, with the tokens that the editor has for them"
_LEFT_OUT = "they come with the editor's tokens"


class Servers:
    """The policy, and what was said of it. ``tell`` gets an event for names that are new, at most MOST_NAMES in all."""

    def __init__(self, policy: McpServers, tell: Callable[[Event], None]) -> None:
        self._strips = policy == "strip"
        self._tell = tell
        self._told: set[str] = set()

    def in_session(self, params: Sequence[Part]) -> Cuts:
        """What to cut out of the parameters of ACP's ``session/new`` and its like. Raises BadFrame."""
        found = alike(params, "mcpServers")
        if found is None or not found.value:  # null and [] are the client's to say
            return []
        servers = found.value if isinstance(found.value, list) else [found.value]
        self._say([_name(server) for server in servers])
        return [(found.place, found.end, "[]")] if self._strips else []

    def in_thread(self, text: str, params: Sequence[Part]) -> Cuts:
        """The same for the Codex App Server: in ``config`` as a table, or with a dotted name. Raises BadFrame."""
        config = alike(params, "config")
        if config is None or not isinstance(config.value, dict):
            return []
        parts, _ = members(text, config.place)
        drop = set()
        for number, part in enumerate(parts):
            head, _, rest = part.key.partition(".")
            if fold_key(head) != fold_key(CODEX_KEY) or not part.value:
                continue
            names = list(part.value) if isinstance(part.value, dict) else []
            self._say([rest.partition(".")[0]] if rest else names or [UNNAMED])
            drop.add(number)
        return cuts_for(parts, drop) if self._strips else []

    def _say(self, names: Sequence[str]) -> None:
        """Never what is in them: addresses, commands, variables and headers hold the tokens."""
        new = [name for name in dict.fromkeys(names) if name not in self._told][: MOST_NAMES - len(self._told)]
        if not new:
            return
        self._told.update(new)
        named = ", ".join(str(shown(name)) for name in new)
        if self._strips:
            text = f"the editor's MCP servers are not handed to the agent: {named}; {_LEFT_OUT}"
        else:
            text = f"the editor's MCP servers are handed to the agent: {named}; {_KEPT}"
        text += f" (agent.mcp_servers = {'strip' if self._strips else 'pass'})"
        fields = {"servers": [shown(name) for name in new], "passed": not self._strips}
        self._tell(Event("notice", "host.mcp_servers", text, fields))


def _name(server: object) -> str:
    name = server.get("name") if isinstance(server, dict) else None
    return name if isinstance(name, str) and name else UNNAMED
