"""Tokens that the operator already has: that of their `gh` login, or one in a variable. Read anew for each renewal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from podbot.errors import TokenSourceFailed
from podbot.github.api_answers import shown
from podbot.github.token_file import is_token
from podbot.launch.github_auth import GH, variable_of

SECONDS = 10.0  # for gh, which may ask a keyring
LIFE = 3600.0  # seconds until the source is read again, 5 minutes earlier; podbot cannot know when the token expires
_LOG_IN = "Log in on this host with `gh auth login`, or choose another source of tokens (github.auth)."


class BorrowedToken(NamedTuple):
    """``expires_at``: epoch seconds of this machine's clock; the end of the time for which podbot uses what it read."""

    token: str
    expires_at: float

    def __repr__(self) -> str:
        return f"BorrowedToken(expires_at={self.expires_at!r})"


def reader(
    auth: str, server_url: str, environ: Mapping[str, str], *, seconds: float = SECONDS
) -> Callable[[], BorrowedToken]:
    """Reads the token that ``auth`` (gh or env:NAME) names. Each call raises TokenSourceFailed when there is none."""

    def read() -> BorrowedToken:
        name = variable_of(auth)
        token = _of_variable(name, environ) if name else _of_gh(server_url, environ, seconds)
        return BorrowedToken(token, time.time() + LIFE)

    return read


def _of_variable(name: str, environ: Mapping[str, str]) -> str:
    token = environ.get(name, "").strip()
    if not token:
        hint = f"Set it where podbot starts, or choose another source of tokens (github.auth = env:{name})."
        raise TokenSourceFailed(source=f"the variable {name}", reason="it is not set", hint=hint)
    if not is_token(token):
        hint = "It must contain the token alone, on one line."
        raise TokenSourceFailed(source=f"the variable {name}", reason="what it contains is not a token", hint=hint)
    return token


def _of_gh(server_url: str, environ: Mapping[str, str], seconds: float) -> str:
    """From the operator's own `gh`, wherever that keeps it. Its answer goes through a pipe, and is in no argv."""
    import subprocess

    host = urlsplit(server_url).hostname or ""
    source = f"your `gh` login for {host}"
    try:
        done = subprocess.run(
            [GH, "auth", "token", "--hostname", host],
            env=dict(environ),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError as exc:
        hint = "Install the GitHub CLI, or choose another source of tokens (github.auth)."
        raise TokenSourceFailed(source=source, reason="there is no program gh in PATH", hint=hint) from exc
    except subprocess.TimeoutExpired:  # its output is not part of the cause: it could contain the token
        hint = "`gh auth token` shows what it waits for, such as a locked keyring."
        raise TokenSourceFailed(source=source, reason=f"gh did not answer in {seconds:.0f} s", hint=hint) from None
    except OSError as exc:
        raise TokenSourceFailed(source=source, reason=exc.strerror or str(exc), hint=_LOG_IN) from exc
    token = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0 or not token:
        said = shown(done.stderr.decode("utf-8", "replace"))
        raise TokenSourceFailed(source=source, reason=said or f"gh ended with status {done.returncode}", hint=_LOG_IN)
    if not is_token(token):
        raise TokenSourceFailed(source=source, reason="what gh printed is not a token", hint=_LOG_IN)
    return token
