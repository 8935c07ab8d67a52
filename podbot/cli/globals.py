"""The global options as a value; free of Typer, so that the fast lane can use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from podbot.config.models import LoadOptions
from podbot.errors import InvalidValue

LOG_FORMATS = ("", "text", "json")


@dataclass(frozen=True)
class Globals:
    """``--config``, ``--engine-socket``, ``--image``, ``-v``, ``--log-format``, ``--log-file``.

    ``current`` is what the running command was given, so that ``main`` can render its error with it.
    """

    config: str | None = None
    engine_socket: str | None = None
    image: str | None = None
    verbose: int = 0
    log_format: str = ""
    log_file: str = ""

    current: ClassVar[Globals]

    def __post_init__(self) -> None:
        if self.log_format not in LOG_FORMATS:
            raise InvalidValue(
                field="log-format", origin="flag --log-format", reason=f"{self.log_format!r} is neither text nor json"
            )

    def under(self, after: Globals) -> Globals:
        """These options with ``after``'s on top."""
        return Globals(
            config=after.config or self.config,
            engine_socket=after.engine_socket or self.engine_socket,
            image=after.image or self.image,
            verbose=self.verbose + after.verbose,
            log_format=after.log_format or self.log_format,
            log_file=after.log_file or self.log_file,
        )

    def load_options(
        self, environ: Mapping[str, str], overrides: Mapping[str, Any], flags: Mapping[str, str]
    ) -> LoadOptions:
        """As the library's options; a command's own overrides come on top."""
        mine = {"engine_socket": self.engine_socket, "image": self.image}
        given = {key: value for key, value in mine.items() if value is not None}
        names = {"engine_socket": "--engine-socket", "image": "--image"}
        return LoadOptions(
            file=self.config,
            overrides={**given, **overrides},
            flags={**{key: names[key] for key in given}, **flags},
            environ=environ,
        )


Globals.current = Globals()
