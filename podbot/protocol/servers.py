"""client -> agent: the editor's MCP servers, which include tokens: removed or forwarded, and reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podbot.config.models import McpServers
from podbot.events import Event
from podbot.protocol.jsontext import Part, alike, cuts_for, fold_key, members
from podbot.protocol.logins import Cuts
from podbot.protocol.refusal import shown

MOST_NAMES = 64  # names that are reported and remembered in one session
CODEX_KEY = "mcp_servers"  # in Codex's configuration, which ``thread/start`` may contain
UNNAMED = "a server without a name"

_KEPT = "they run inside, with the tokens that the editor has for them"
_LEFT_OUT = "they include the editor's tokens"


class Servers:
    """Applies the policy; ``report`` gets an event for new names, at most MOST_NAMES in all."""

    def __init__(self, policy: McpServers, report: Callable[[Event], None]) -> None:
        self._strips = policy == "strip"
        self._report = report
        self._reported: set[str] = set()

    def in_session(self, params: Sequence[Part]) -> Cuts:
        """Cuts in the parameters of ACP's ``session/new`` and similar methods. Raises BadFrame."""
        found = alike(params, "mcpServers")
        if found is None or not found.value:  # null and [] are left as they are
            return []
        servers = found.value if isinstance(found.value, list) else [found.value]
        self._say([_name(server) for server in servers])
        return [(found.place, found.end, "[]")] if self._strips else []

    def in_thread(self, text: str, params: Sequence[Part]) -> Cuts:
        """The same for the Codex App Server: a table in ``config``, or dotted names. Raises BadFrame."""
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
        """Report the names only: addresses, commands, variables and headers may contain tokens."""
        new = [name for name in dict.fromkeys(names) if name not in self._reported][: MOST_NAMES - len(self._reported)]
        if not new:
            return
        self._reported.update(new)
        named = ", ".join(str(shown(name)) for name in new)
        if self._strips:
            text = f"the editor's MCP servers are not passed to the agent: {named}; {_LEFT_OUT}"
        else:
            text = f"the editor's MCP servers are passed to the agent: {named}; {_KEPT}"
        text += f" (agent.mcp_servers = {'strip' if self._strips else 'pass'})"
        fields = {"servers": [shown(name) for name in new], "passed": not self._strips}
        self._report(Event("notice", "host.mcp_servers", text, fields))


def _name(server: object) -> str:
    name = server.get("name") if isinstance(server, dict) else None
    return name if isinstance(name, str) and name else UNNAMED
