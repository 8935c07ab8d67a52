"""``podbot mcp``: serves sandboxes with tools to agents, over stdin and stdout or over HTTP."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podbot.cli import stdio_guard
from podbot.cli.globals import Globals
from podbot.cli.repeating import shown_word
from podbot.cli.report import Reporter
from podbot.cli.signals import handled
from podbot.errors import ExtraUnusable, UsageError
from podbot.events import Event
from podbot.execution.codes import BY_SIGNAL
from podbot.places import home_dir, state_dir
from podbot.streams.terminal import is_terminal
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.mcp.serving import ServedTools

_COMMAND = "podbot mcp"
_BACKENDS = ("podman", "unsafe-local")


def invoke(
    g: Globals, *, backend: str, mounts: tuple[str, ...], read_only: bool, http: str | None, token_file: str | None
) -> int:
    """Serve until the client leaves or a signal comes; returns podbot's exit code.

    Raises UsageError, ExtraUnusable, AddressUnusable, TokenFileRefused, and FilesystemError subclasses.
    """
    if backend not in _BACKENDS:
        reason = f"--backend: {shown_word(backend)} is not one of {', '.join(_BACKENDS)}"
        raise UsageError(command=_COMMAND, reason=reason, hint="Leave it out for podman, the default.")
    if g.image and backend != "podman":
        raise UsageError(command=_COMMAND, reason="--image is only for --backend podman", hint="Leave one of them out.")
    if token_file is not None and http is None:
        raise UsageError(
            command=_COMMAND, reason="--token-file is only for --http", hint="Add `--http PORT`, or leave it out."
        )
    if importlib.util.find_spec("mcp") is None:
        hint = (
            "Install podbot with its extra, from a clone of it: `uv tool install --reinstall '.[mcp]'`, or"
            " `pipx install --force '.[mcp]'`."
        )
        raise ExtraUnusable(extra="mcp", reason="mcp is not installed", hint=hint)
    streams = stdio_guard.engage()
    if http is None and is_terminal(streams.stdin):
        hint = "Name it in an agent's settings (`podbot docs how-to/mcp`), or serve HTTP: `podbot mcp --http 8000`."
        raise UsageError(
            command=_COMMAND, reason="it talks to the agent that starts it, and its stdin is a terminal", hint=hint
        )
    emit = Reporter(g, beside_protocol=True)
    client: int | None = None
    try:
        if http is None:
            from podbot.mcp.client_process import client_process

            client = client_process(streams.stdin)  # before the SDK's slow import, during which it may end
        with handled(tty=False) as wake:
            tools = functools.partial(_tools, g, backend, mounts, emit, read_only=read_only)
            if http is None:
                from podbot.mcp.serving import serve_over_stdio

                number = serve_over_stdio(
                    tools(), stdin=streams.stdin, stdout=streams.stdout, wake=wake, emit=emit, client=client
                )
            else:
                number = _over_http(tools, http, token_file, wake, emit)
    finally:
        emit.close()
        if client is not None:
            os.close(client)
    return 0 if number is None else BY_SIGNAL + number


def _tools(
    g: Globals, backend: str, mounts: tuple[str, ...], emit: Reporter, *, read_only: bool, clients: int = 1
) -> ServedTools:
    from podbot.mcp.offered_mounts import offered_mounts
    from podbot.mcp.sandbox_registry import SandboxRegistry
    from podbot.mcp.serving import ServedTools
    from podbot.mcp.workspace_maker import WorkspaceMaker
    from podbot.suites import export_patch

    offered = offered_mounts(mounts, home_dir(os.environ))
    make = WorkspaceMaker(backend=backend, image=g.image, environ=_environ(g, os.environ), emit=emit)
    registry = SandboxRegistry(
        make, offered, emit=emit, read_only=read_only, code_chars=make.code_chars, clients=clients
    )
    return ServedTools(
        registry=registry,
        export=export_patch,
        read_only=read_only,
        code_chars=make.code_chars,
        sandboxed=make.sandboxed,
    )


def _over_http(
    make_tools: Callable[..., ServedTools], http: str, token_file: str | None, wake: Wake, emit: Reporter
) -> int | None:
    from podbot.mcp.bearer_tokens import BearerTokens, own_tokens, read_tokens
    from podbot.mcp.http_transport import PATH, Address, listening, parse_address
    from podbot.mcp.serving import serve_over_http

    address = parse_address(http)
    path = token_file or os.path.join(state_dir(os.environ), "mcp-token")
    words = read_tokens(path, "flag --token-file") if token_file else own_tokens(path)
    tools = make_tools(clients=len(words))
    with listening(address) as listener:
        authority = Address(address.host, listener.getsockname()[1]).authority
        message = f"serving MCP at http://{authority}{PATH}; clients need the token in {path}"
        emit(Event("notice", "mcp.listening", message, {"url": f"http://{authority}{PATH}", "token_file": path}))
        return serve_over_http(tools, tokens=BearerTokens(words), listener=listener, wake=wake, emit=emit)


def _environ(g: Globals, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with the command line's options, for workspaces that are started later."""
    given = {"PODBOT_CONFIG_PATH": g.config, "PODBOT_ENGINE_SOCKET": g.engine_socket}
    return {**environ, **{name: value for name, value in given.items() if value}}
