"""The configurations that `sandbox="podbot"` takes: a model of podbot's own, a Compose file, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspect_ai.util import ComposeConfig, is_compose_yaml, parse_compose_yaml
from inspect_ai.util._sandbox.compose import is_dockerfile
from pydantic import BaseModel, ConfigDict, Field

from podbot.errors import InvalidValue
from podbot.integrations.compose_subset import services_of
from podbot.integrations.sample_settings import SampleSettings

COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")


class PodbotSandboxConfig(BaseModel):
    """One sandbox: ``SandboxEnvironmentSpec("podbot", PodbotSandboxConfig(image="localhost/mine", memory="1g"))``.

    ``image``: unset, the one of podbot's configuration, which `podbot setup` builds. ``user``: of commands and files;
    empty is the image's. ``working_dir``: absolute; made if it is missing; unset, the image's. ``memory`` ("512m",
    "50%"), ``cpus`` (cores) and ``pids``: limits; unset, those of podbot's configuration. ``network``: "none",
    "default" (the engine's own), or the name of an engine network. ``env``: variables of every command; no secrets.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str | None = None
    user: str = ""
    working_dir: str | None = None
    memory: str | None = None
    cpus: float | None = None
    pids: int | None = None
    network: str = "none"
    env: dict[str, str] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def settings(self) -> SampleSettings:
        """As podbot's own value. Raises InvalidValue."""
        return SampleSettings(**self.model_dump())


def settings_of(config: Any) -> dict[str, SampleSettings]:
    """The sandboxes of a sample by name, the default one first. Raises InvalidValue, FileNotFoundError, ValueError."""
    if config is None:
        return {"default": SampleSettings()}
    if isinstance(config, PodbotSandboxConfig):
        return {"default": config.settings()}
    if isinstance(config, ComposeConfig):
        return _services(config, "the Compose configuration")
    if isinstance(config, str) and is_compose_yaml(config):
        return _services(parse_compose_yaml(config), f"file {config}")
    shown = Path(config).name if isinstance(config, str) else type(config).__name__
    hint = f"Pass a PodbotSandboxConfig, or a Compose file ({', '.join(COMPOSE_FILES)}) whose services name images."
    if isinstance(config, str) and is_dockerfile(config):
        hint = "Build it first (`podman build -t NAME .`), and pass PodbotSandboxConfig(image='localhost/NAME')."
    reason = f"podbot does not take {shown[:80]!r} as a sandbox's configuration"
    raise InvalidValue(field="sandbox", origin="the task", reason=reason, hint=hint)


def _services(config: Any, origin: str) -> dict[str, SampleSettings]:
    return services_of(config.model_dump(by_alias=True, exclude_none=True), origin)
