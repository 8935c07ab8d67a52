"""The names of the methods that an agent may send to its client. Data only; any other method is refused.

Sources, as of November 2026. ACP: the public schema, stable and unstable, versions 1 and 2
(``@agentclientprotocol/sdk`` 2.4.0, ``schema/``; ``agent-client-protocol`` 0.12.1 for Python, ``acp.meta``).
``tests/protocol/test_methods.py`` compares this with the installed Python SDK, ``e2e/test_host_methods.py`` with the
agents' own packages in the sandbox image. Codex App Server: ``codex app-server generate-json-schema --experimental`` of
``@openai/codex`` 0.169, ``ServerRequest.json``; the same test compares it with the Codex of the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from podbot.config.models import Delegation

#: What a method acts on in the client.
Part = Literal["fs", "terminal", "mcp"]

#: ACP: method -> what it acts on; None: it shows something or asks the user.
ACP: Mapping[str, Part | None] = {
    "session/update": None,
    "session/request_permission": None,
    "elicitation/create": None,
    "elicitation/complete": None,
    "$/cancel_request": None,
    "auth/status_update": None,
    # The name that claude-agent-acp 0.100 and codex-acp 2.6 use for the same, without negotiation.
    "_auth/status_update": None,
    "fs/read_text_file": "fs",
    "fs/write_text_file": "fs",
    "terminal/create": "terminal",
    "terminal/output": "terminal",
    "terminal/wait_for_exit": "terminal",
    "terminal/kill": "terminal",
    "terminal/release": "terminal",
    "mcp/connect": "mcp",
    "mcp/message": "mcp",
    "mcp/disconnect": "mcp",
}

#: Codex App Server: the server's request -> whether it is forwarded. Those that are show something or ask the user;
#: the others run a tool of the client, or obtain a token, a signature or data from it. Notifications are forwarded.
CODEX: Mapping[str, bool] = {
    "item/commandExecution/requestApproval": True,
    "item/fileChange/requestApproval": True,
    "item/permissions/requestApproval": True,
    "item/tool/requestUserInput": True,
    "applyPatchApproval": True,
    "execCommandApproval": True,
    "item/tool/call": False,
    "mcpServer/elicitation/request": False,
    "account/chatgptAuthTokens/refresh": False,
    "attestation/generate": False,
    "currentTime/read": False,
}

_DELEGATED: Mapping[Delegation, frozenset[Part]] = {
    "none": frozenset(),
    "fs": frozenset({"fs"}),
    "terminal": frozenset({"terminal"}),
    "all": frozenset({"fs", "terminal", "mcp"}),
}


def delegated(delegation: Delegation) -> frozenset[Part]:
    """What the agent may use of the client."""
    return _DELEGATED[delegation]


def acp_methods(delegation: Delegation) -> frozenset[str]:
    """The methods that are forwarded from the agent to the client."""
    parts = _DELEGATED[delegation]
    return frozenset(method for method, part in ACP.items() if part is None or part in parts)


def codex_requests() -> frozenset[str]:
    """The requests that are forwarded from the Codex App Server to the client."""
    return frozenset(method for method, passes in CODEX.items() if passes)
