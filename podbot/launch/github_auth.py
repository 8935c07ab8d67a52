"""Where a session's GitHub token comes from: an App, the operator's `gh` login, a variable, or nowhere. Pure."""

from __future__ import annotations

from podbot.config.models import AppConfig
from podbot.frozen import Frozen

APP, GH, NONE, VARIABLE = "app", "gh", "none", "env:"
_KEYS = ("app_id", "installation_id", "private_key_path")
WAYS = (
    'set github.auth = "gh" for the token of your `gh` login, "env:NAME" for one in a variable, or set up a GitHub App'
    " (page how-to/clone-from-github of the documentation)"
)


class Source(Frozen):
    """What ``github.auth`` selects. ``chosen``: it was set; otherwise an App is used if one is configured."""

    auth: str
    chosen: bool

    @property
    def variable(self) -> str:
        """The name of the variable that has the token; empty for another source."""
        return variable_of(self.auth)


def source_of(config: AppConfig) -> Source:
    """The source of tokens. A single key of an App selects it, so that a forgotten one is reported."""
    if config.github.auth is not None:
        return Source(config.github.auth, chosen=True)
    return Source(APP if any(getattr(config.github, name) for name in _KEYS) else NONE, chosen=False)


def variable_of(auth: str) -> str:
    """The variable that ``env:NAME`` names; empty for another value of ``github.auth``."""
    return auth.removeprefix(VARIABLE) if auth.startswith(VARIABLE) else ""


def owner_of(auth: str) -> str:
    """Whose token it is, in words for a message."""
    if auth == GH:
        return "your `gh` login"
    return f"the token in {variable_of(auth)}" if variable_of(auth) else "the App"
