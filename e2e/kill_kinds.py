"""The kinds of sessions that are opened to be killed: how each is started, on what network, and what stays of it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from e2e.harness import PODBOT, ROOTLESS
from e2e.host.pipe import AGENT

if TYPE_CHECKING:
    from e2e.kills import Target

# By whom a session is ended in the middle: see `Target.victim`.
VICTIMS = (
    "owner", "exec", "exec's terminal", "exec's shell", "editor", "guest", "init", "monitor", "gateway", "service",
    "command",
)  # fmt: skip
IN_EXEC = ("exec", "exec's terminal", "exec's shell")
# A rootless engine's own networks need a device that not every machine has.
NETWORKS = ("none", "filtered") if ROOTLESS else ("none", "default", "filtered")
_COMMIT = "git -c safe.directory='*' -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m more"
_LOOP = f"while :; do {_COMMIT}; sleep 0.5; done"
_LIBRARY = """
import json, os, sys, podbot
name, workspace, script, more = sys.argv[1:]
keys = {"workspace.source": "host_mount", "workspace.host_path": workspace, **json.loads(more)}
config = podbot.load_config(podbot.LoadOptions(environ=os.environ, overrides=keys))
request = podbot.LaunchRequest(name=name, trusted_workspace=True)
with podbot.sandbox(config, request, environ=os.environ) as box:
    box.shell.execute(["sh", "-c", script], timeout_seconds=600)
"""
# What a client of `podbot mcp` sends; then it keeps the connection.
CLIENT = """
import json, sys, time
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
call = {"name": "shell_execute", "arguments": {"command": ["sh", "-c", sys.argv[1]], "timeout_seconds": 600}}
sent = [{"id": 1, "method": "initialize", "params": hello}, {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call}]
print(*(json.dumps({"jsonrpc": "2.0", **message}) for message in sent), sep="\\n", flush=True)
time.sleep(600)
"""
# The same over HTTP: the server's URL is in its messages. The answer to the call is awaited for as long as it lasts.
HTTP_CLIENT = """
import json, re, sys, time, urllib.request
line, log, token = sys.argv[1:]
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
call = {"name": "shell_execute", "arguments": {"command": ["sh", "-c", line], "timeout_seconds": 600}}
while not (url := re.search(r"http://\\S+/mcp", open(log).read())):
    time.sleep(0.02)
headers = {"Authorization": "Bearer " + open(token).read().strip(), "Content-Type": "application/json",
           "Accept": "application/json, text/event-stream"}
for message in ({"id": 1, "method": "initialize", "params": hello}, {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": call}):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with urllib.request.urlopen(urllib.request.Request(url[0], data, headers)) as answer:
        if session := answer.headers.get("Mcp-Session-Id"):
            headers["Mcp-Session-Id"] = session
        print(answer.read(), file=sys.stderr)
time.sleep(600)
"""
REPO = "octo/shop"


def _begin(session: Target) -> str:
    """Start its marked processes."""
    return f"setsid {session.marks[0]} & {session.marks[1]} & "


def _agent(session: Target) -> list[str]:
    return ["--name", session.name, "--agent", "custom", "--", "sh", "-c", f"touch up; {_begin(session)}{_LOOP}"]


def _run(session: Target, *flags: str) -> list[str]:
    return [*PODBOT, "run", *flags, "--workspace", session.workspace, *_agent(session)]


def _host(session: Target, *flags: str) -> list[str]:
    words = [*PODBOT, "--config", session.config, "host", *flags, "--workspace", session.workspace]
    words += ["--name", session.name, "--agent", "custom", "--agent-mode", "acp"]
    return [*words, "--", "sh", "-c", f"touch up; {_begin(session)}exec python3 {AGENT} puppet"]


def _library(session: Target, keys: Mapping[str, str] | None = None) -> list[str]:
    script = f"touch up; {_begin(session)}{_LOOP}"
    return [sys.executable, "-c", _LIBRARY, session.name, session.workspace, script, json.dumps(keys or {})]


def _sealed(session: Target) -> list[str]:
    """Only a program's own word gives a sealed sandbox a network."""
    return _library(session, {"sandbox.profile": "sealed", "sandbox.network": session.network})


def _started(session: Target) -> list[str]:
    """A kept session that is started again, and a command in it: podbot after podbot, in one shell."""
    kept = [*PODBOT, "run", "--keep", "--workspace", session.workspace, "--name", session.name, "--agent", "custom"]
    start, run = [*PODBOT, "start", session.name], [*PODBOT, "exec", session.name, "--", *_agent(session)[-3:]]
    line = f"{shlex.join([*kept, '--', 'true'])} && {shlex.join(start)} && exec {shlex.join(run)}"
    return ["sh", "-c", line]


def _clone(session: Target, script: str) -> list[str]:
    return [*PODBOT, "run", "--repo", REPO, "--name", session.name, "--agent", "custom", "--", "sh", "-c", script]


def _mcp(session: Target, *words: str) -> list[str]:
    del session
    return [*PODBOT, "mcp", *words]


class Kind(NamedTuple):
    """``words``: the owner's command. ``but``: victims that it does not have.

    ``kept``: whether its container stays: ``always``; or ``unsaved``, with the commits in its clone, once its agent has
    run; or ``in doubt``, where a sandbox that was killed cannot be asked for unsaved work. ``mounts``: its workspace is
    the directory of this host. ``outlasts``: it goes on without its editor. ``serves``: it belongs to an MCP server,
    which names it.
    """

    words: Callable[[Target], list[str]]
    but: tuple[str, ...] = ("editor", "exec's terminal")
    networks: tuple[str, ...] = NETWORKS
    kept: Literal["", "always", "unsaved", "in doubt"] = ""
    mounts: bool = True
    outlasts: bool = False
    serves: bool = False

    def has(self, victim: str) -> bool:
        """Whether ``victim`` can be one of its."""
        return victim not in self.but and (victim != "gateway" or "filtered" in self.networks)


_HOST = ("host",)  # the forge listens on this machine's loopback
KINDS: Mapping[str, Kind] = {
    "run": Kind(_run),
    "host": Kind(_host, but=("exec's terminal",)),
    "library": Kind(_library),
    "terminal": Kind(_run, but=()),
    "keep": Kind(lambda session: _run(session, "--keep"), kept="always"),
    "keep host": Kind(lambda session: _host(session, "--keep"), but=("exec's terminal",), kept="always"),
    "start": Kind(_started, kept="always"),
    "user": Kind(_library),  # of an image with a user that is not root
    "sealed": Kind(_sealed),
    "clone": Kind(
        lambda session: _clone(session, f"{_begin(session)}wait"), networks=_HOST, kept="in doubt", mounts=False
    ),
    "unsaved": Kind(
        lambda session: _clone(session, f"{_COMMIT}; {_begin(session)}{_LOOP}"),
        networks=_HOST,
        kept="unsaved",
        mounts=False,
    ),
    "mcp": Kind(_mcp, but=("exec's terminal",), networks=("none",), mounts=False, serves=True),
    "mcp http": Kind(
        lambda session: _mcp(session, "--http", "0"),
        but=("exec's terminal",),
        networks=("none",),
        mounts=False,
        outlasts=True,
        serves=True,
    ),
}
# Those that an ordinary session has, and the others.
USUAL = ("run", "host", "library")
FURTHER = tuple(name for name in KINDS if name not in USUAL)


def client_words(session: Target) -> list[str]:
    """The program at the other end of the owner's input."""
    if session.kind == "mcp":
        return [sys.executable, "-c", CLIENT, f"{_begin(session)}wait"]
    if session.kind == "mcp http":
        token = os.path.join(session.world.env["HOME"], ".local", "state", "podbot", "mcp-token")
        return [sys.executable, "-c", HTTP_CLIENT, f"{_begin(session)}wait", session.log, token]
    return ["sleep", session.client_seconds]
