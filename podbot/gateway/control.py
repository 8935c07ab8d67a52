"""The gateway's control socket, by which `podbot net` shows and changes the policy of a running sandbox.

One line of JSON asks, one answers. The socket lies in a directory that only the operator's user can enter.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Callable
from typing import Any

from podbot.frozen import replace
from podbot.gateway.gateway_server import Gateway
from podbot.gateway.host_rules import BadRule, check_open, expand, policy_from

LIMIT = 1 << 16  # bytes of a line
_SECONDS = 10.0


def bound(path: str) -> socket.socket:
    """A listening socket at ``path``, whose directory exists. Raises OSError."""
    directory, name = os.path.split(path)
    holder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=holder)
        listener.bind(f"/proc/self/fd/{holder}/{name}")  # the address of a unix socket has at most 107 bytes
        os.chmod(name, 0o600, dir_fd=holder)
        listener.listen(8)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(holder)
    return listener


async def served(gateway: Gateway, listener: socket.socket) -> asyncio.AbstractServer:
    """Answer on the control socket until the server is closed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):  # ValueError: the line is too long
            async with asyncio.timeout(_SECONDS):
                line = await reader.readline()
                if line:
                    writer.write(json.dumps(answer(gateway, line)).encode() + b"\n")
                    await writer.drain()
        writer.close()

    return await asyncio.start_unix_server(serve, sock=listener, limit=LIMIT)


def answer(gateway: Gateway, line: bytes) -> dict[str, Any]:
    """Do what the line asks, and answer. An ``error`` in the answer says why nothing was done."""
    try:
        asked = json.loads(line)
        do = _ACTIONS[asked["do"]]
    except (ValueError, KeyError, TypeError):
        return {"error": "the request is malformed"}
    if any(not isinstance(rules, list) for name, rules in asked.items() if name != "do"):
        return {"error": "the request is malformed"}
    try:
        do(gateway, asked)
    except BadRule as exc:
        return {"error": str(exc), "hint": exc.hint}
    except (KeyError, TypeError, AttributeError):
        return {"error": "the request is malformed"}
    return {"policy": gateway.described(), "counts": dict(gateway.log.counts)}


def _show(gateway: Gateway, asked: dict[str, Any]) -> None:
    del gateway, asked


def _allow(gateway: Gateway, asked: dict[str, Any]) -> None:
    """Allow more hosts. A denial of exactly that rule is withdrawn, because the operator has decided anew."""
    rules, policy = expand(asked["rules"]), gateway.policy
    check_open(rules, policy.private)
    denied = tuple(rule for rule in policy.deny if rule not in rules)
    gateway.replace(replace(policy, allow=tuple(dict.fromkeys((*policy.allow, *rules))), deny=denied))


def _deny(gateway: Gateway, asked: dict[str, Any]) -> None:
    rules, policy = expand(asked["rules"]), gateway.policy
    gateway.replace(replace(policy, deny=tuple(dict.fromkeys((*policy.deny, *rules)))))


def _policy(gateway: Gateway, asked: dict[str, Any]) -> None:
    policy = policy_from(asked["allow"], asked["deny"], asked["private"])
    check_open(policy.allow, policy.private)
    gateway.replace(policy)


_ACTIONS: dict[str, Callable[[Gateway, dict[str, Any]], None]] = {
    "show": _show,
    "allow": _allow,
    "deny": _deny,
    "policy": _policy,
}
