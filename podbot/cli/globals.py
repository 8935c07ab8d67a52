"""The global options as a value; without Typer, so that the fast path can use it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from podbot.config.models import LoadOptions
from podbot.errors import InvalidValue, UsageError
from podbot.frozen import Frozen

LOG_FORMATS = ("", "text", "json")


class Globals(Frozen):
    """``--config``, ``--engine-socket``, ``--image``, ``-v``, ``--log-format``, ``--log-file``, ``-q``.

    ``current`` has the options of the running command, so that ``main`` can use them to print its error; ``typed`` is
    its whole command line, for hints.
    """

    config: str | None = None
    engine_socket: str | None = None
    image: str | None = None
    verbose: int = 0
    log_format: str = ""
    log_file: str = ""
    quiet: bool = False

    current: ClassVar[Globals]
    typed: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.log_format not in LOG_FORMATS:
            from podbot.cli.repeating import shown_word

            reason = f"{shown_word(self.log_format)} is neither text nor json"
            raise InvalidValue(
                field="log-format", origin="flag --log-format", reason=reason, hint="Write one of the two."
            )

    def under(self, after: Globals) -> Globals:
        """These options, overridden by those of ``after``."""
        return Globals(
            config=after.config or self.config,
            engine_socket=after.engine_socket or self.engine_socket,
            image=after.image or self.image,
            verbose=self.verbose + after.verbose,
            log_format=after.log_format or self.log_format,
            log_file=after.log_file or self.log_file,
            quiet=after.quiet or self.quiet,
        )

    def load_options(
        self, environ: Mapping[str, str], overrides: Mapping[str, Any], flags: Mapping[str, str]
    ) -> LoadOptions:
        """The options for the library, with a command's own overrides. Raises UsageError."""
        if self.config is not None:
            _check_is_path(self.config)
        mine = {"engine_socket": self.engine_socket, "image": self.image}
        given = {key: value for key, value in mine.items() if value is not None}
        names = {"engine_socket": "--engine-socket", "image": "--image", "file": "--config"}
        named = [*given, *(() if self.config is None else ("file",))]
        return LoadOptions(
            file=self.config,
            overrides={**given, **overrides},
            flags={**{key: names[key] for key in named}, **flags},
            environ=environ,
        )


def _check_is_path(config: str) -> None:
    """Refuse what is meant for an agent: Codex has ``-c KEY=VALUE``, and Claude ``-c PROMPT``."""
    is_prompt = "/" not in config and any(map(str.isspace, config))
    if (is_prompt or "=" in config.partition("/")[0]) and not os.path.exists(config):
        from podbot.cli.repeating import repeated, shown_word

        typed = repeated(["-c", config], "-c PROMPT" if is_prompt else "-c KEY=VALUE")
        raise UsageError(
            command="podbot",
            reason=f"there is no configuration file {shown_word(config)}; -c is --config",
            hint=f"Options for the agent follow --: `podbot run [AGENT] [PATH] -- {typed}`.",
        )


Globals.current = Globals()
