"""What every command shares: the global options, before or after the command's name."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from podbot.cli.globals import Globals
from podbot.cli.grammar import behind
from podbot.config.models import LoadOptions
from podbot.errors import OutputClosed

ConfigOption = Annotated[str | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration file.")]
SocketOption = Annotated[
    str | None, typer.Option("--engine-socket", metavar="URI", help="Engine endpoint: unix:///path, tcp://, ssh://…")
]
ImageOption = Annotated[str | None, typer.Option("--image", metavar="REF", help="Image of the sandbox.")]
VerboseOption = Annotated[
    int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Say more; twice shows tracebacks.")
]
LogFileOption = Annotated[
    str, typer.Option("--log-file", metavar="FILE", help="Write messages there, and not to stderr.")
]
LogFormatOption = Annotated[str, typer.Option("--log-format", metavar="text|json", help="Form of messages on stderr.")]

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "config": (ConfigOption, None),
    "engine_socket": (SocketOption, None),
    "image": (ImageOption, None),
    "verbose": (VerboseOption, 0),
    "log_format": (LogFormatOption, ""),
    "log_file": (LogFileOption, ""),
}


def global_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the global options; its first parameter receives the merged :class:`Globals`.

    Options after the command's name win over the same ones before it; ``-v`` adds up. A parameter ``behind`` gets
    the words behind ``--`` of a :class:`SessionCommand`.
    """
    signature = inspect.signature(function, eval_str=True)
    takes_words = "behind" in signature.parameters
    own = [p for p in list(signature.parameters.values())[1:] if p.name != "behind"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in _OPTIONS.items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    @functools.wraps(function)
    def command(*args: Any, ctx: typer.Context, **kwargs: Any) -> None:
        after = Globals(**{name: kwargs.pop(name) for name in _OPTIONS})
        before = ctx.find_object(Globals) or Globals()
        merged = before.under(after)
        Globals.current = merged
        if takes_words:
            kwargs["behind"] = behind(ctx)
        try:
            function(merged, *args, **kwargs)
        except BrokenPipeError as exc:  # Typer would end with 1 and say nothing
            raise OutputClosed(stream="stdout") from exc

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    command.__signature__ = signature.replace(parameters=[*parameters, *added, context])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in [*parameters, *added, context]}
    return command


def load_options(
    g: Globals, overrides: Mapping[str, Any] | None = None, flags: Mapping[str, str] | None = None
) -> LoadOptions:
    """Global options and a command's own as the library's :class:`LoadOptions`."""
    return g.load_options(os.environ, overrides or {}, flags or {})
