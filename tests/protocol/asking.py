"""An agent's question for permission, and what the filter makes of it."""

from __future__ import annotations

from podbot.protocol.acp import AcpChannel
from podbot.protocol.path_map import PathScope
from tests.protocol.drive import Outcome, from_agent

MOUNT = PathScope("/ws", "/home/me/shop", others=("/more",))
FRAME = '{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s",%s}}\n'
OPTIONS = (
    '"options":[{"optionId":"a","name":"Allow","kind":"allow_once"},{"optionId":"r","name":"No","kind":"reject_once"}]'
)
UPDATE = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n'


def asked(inside: str, mount: PathScope | None = MOUNT) -> Outcome:
    return from_agent((FRAME % inside).encode("utf-8", "surrogatepass"), channel=AcpChannel(mount=mount))


def marked(inside: str, expected: str, mount: PathScope | None = MOUNT) -> None:
    """The parameters come out as ``expected``, and unchanged a second time."""
    result = asked(inside, mount)
    assert result.to_client.decode() == FRAME % expected
    assert result.reasons == ([] if inside == expected else ["marked_question"])
    assert result.to_agent == b""
    assert asked(expected, mount) == asked(expected, mount)._replace(said=[]), "once is enough"


def option(name: str, kind: str = "allow_once") -> str:
    return f'"options":[{{"optionId":"x","name":"{name}","kind":"{kind}"}}]'
