"""Values of ``sandbox.env`` that look like secrets: everything that shows a sandbox can show them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.config.models import AppConfig
from podbot.frozen import replace

# Ends of names whose values are secrets. Every user of a machine can read the arguments of its processes.
_SECRETS = ("_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "COOKIE")


def looks_secret(name: str, value: str) -> bool:
    """Whether the value of the variable ``name`` is probably a secret, by that name or by a known form of tokens."""
    from podbot.config.secret_shapes import SHAPES  # its expressions are compiled only where there is a value

    return name.upper().endswith(_SECRETS) or SHAPES.search(value) is not None


def without_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` as it is shown: what looks like a secret is replaced."""
    if not env:
        return {}
    from podbot.config.secret_shapes import HIDDEN

    return {name: HIDDEN if value and looks_secret(name, value) else value for name, value in env.items()}


def shown_config(config: AppConfig) -> AppConfig:
    """``config`` as it is shown."""
    return replace(config, sandbox=replace(config.sandbox, env=without_secrets(config.sandbox.env)))


def secret_notices(config: AppConfig) -> tuple[str, ...]:
    """A line for each variable of ``sandbox.env`` that looks like a secret; none repeats its value.

    It is not refused: a name may only look like that of a secret, and a key for tests may be public.
    """
    origin = config.origin("sandbox.env")
    return tuple(
        f"sandbox.env.{_shown(name)} ({origin}) looks like a secret, and whoever inspects the container can read it."
        " Take it out, and name the variable in agent.env_allowlist, which passes your own value to the agent alone"
        for name, value in config.sandbox.env.items()
        if value and looks_secret(name, value)
    )


def _shown(name: str) -> str:
    from podbot.config.secret_shapes import SHAPES

    return "NAME" if SHAPES.search(name) else name[:80]
