"""The checks of ``podbot doctor`` for GitHub tokens: an App, from its keys to its permissions, or another source."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from podbot.config.models import AppConfig, GitHubConfig
from podbot.engine.check import Check
from podbot.errors import GitHubUnreachable, PodbotError
from podbot.launch.github_auth import APP, NONE, Source, owner_of, source_of

if TYPE_CHECKING:
    from podbot.github.installation import AppInfo, InstallationInfo
    from podbot.github.key import PrivateKey

PATIENCE = 5.0  # seconds for one response; there are two requests
KEYS = ("app_id", "installation_id", "private_key_path")
NO_CLONES = "`podbot run --repo` cannot clone."


class Client(Protocol):
    """The part of :class:`podbot.github.app_client.AppClient` that is used here."""

    def check_app(self) -> AppInfo: ...
    def check_installation(self, installation_id: int) -> InstallationInfo: ...


MakeClient = Callable[[int, "PrivateKey", str], Client]


def app_client(app_id: int, key: PrivateKey, api_url: str, *, timeout: float = PATIENCE) -> Client:
    """The real one."""
    from podbot.github.app_client import AppClient

    return AppClient(app_id, key, api_url, timeout=timeout)


def check_github(
    config: AppConfig, make: MakeClient = app_client, environ: Mapping[str, str] | None = None
) -> Iterator[Check]:
    """Every check up to the first that fails; none, and no request, if no github key is set.

    ``environ``: for a token that the operator already has; None: this process's.
    """
    if not _is_set(config):
        return
    source = source_of(config)
    if source.auth != APP:
        yield _token(config, source, environ)
        return
    github = config.github
    missing = [f"github.{name}" for name in KEYS if not getattr(github, name)]
    if missing:
        fix = "podbot docs clone-from-github explains them"
        yield Check("github-keys", "fail", f"not set: {', '.join(missing)}", NO_CLONES, fix)
        return
    yield Check("github-keys", "ok", f"App {github.app_id}, installation {github.installation_id}")
    key = yield from _key(github)
    if key is not None:
        yield from _app(github, key, make)


def _is_set(config: AppConfig) -> bool:
    return any(name.startswith("github.") and origin.kind != "default" for name, origin in config.origins.items())


def _token(config: AppConfig, source: Source, environ: Mapping[str, str] | None) -> Check:
    from podbot.github.borrowed import reader

    if source.auth == NONE:
        return Check("github-token", "ok", "none: only public repositories can be cloned, and nothing can be pushed")
    try:
        reader(source.auth, config.github.server_url, os.environ if environ is None else environ)()
    except PodbotError as exc:
        return _failed("github-token", exc)
    return Check("github-token", "ok", f"{owner_of(source.auth)}, for {config.github.server_url}")


def _key(github: GitHubConfig) -> Generator[Check, None, PrivateKey | None]:
    from podbot.github.key import load_private_key

    try:
        key = load_private_key(github.private_key_path or "")
    except PodbotError as exc:
        yield _failed("github-key", exc)
        return None
    yield Check("github-key", "ok", f"{key.path}, RSA with {key.rsa.key_size} bits")
    if key.warnings:
        meaning = "Anyone who has the key can act as the App."
        yield Check("github-key-mode", "warn", key.warnings[0], meaning, f"chmod 600 {shlex.quote(key.path)}")
    else:
        yield Check("github-key-mode", "ok", "only you can read it")
    return key


def _app(github: GitHubConfig, key: PrivateKey, make: MakeClient) -> Iterator[Check]:
    from podbot.github.api_url import api_url_for

    api_url = api_url_for(github.server_url, github.api_url)
    try:
        client = make(github.app_id or 0, key, api_url)
        info = client.check_app()
    except GitHubUnreachable as exc:
        yield _failed("github-api", exc)
        return
    except PodbotError as exc:
        yield Check("github-api", "ok", f"{api_url} answers")
        yield _failed("github-app", exc)
        return
    yield Check("github-api", "ok", f"{api_url} answers")
    yield Check("github-app", "ok", f"{info.name} ({info.slug}), of {info.owner}")
    yield from _installation(github, client)


def _installation(github: GitHubConfig, client: Client) -> Iterator[Check]:
    from podbot.github.installation import lacking

    try:
        info = client.check_installation(github.installation_id or 0)
    except PodbotError as exc:
        yield _failed("github-installation", exc)
        return
    where = f"on {info.account}, {'all repositories' if info.selection == 'all' else 'selected repositories'}"
    if info.suspended:
        fix = "unsuspend it in the owner's settings, GitHub Apps"
        yield Check("github-installation", "fail", f"{where}; it is suspended", NO_CLONES, fix)
        return
    yield Check("github-installation", "ok", where)
    short = lacking(github.permissions, info.permissions)
    if short:
        fix = "grant them in the App's settings (its owner must then accept), or request fewer in github.permissions"
        yield Check("github-permissions", "fail", f"not granted: {', '.join(short)}", NO_CLONES, fix)
        return
    asked = ", ".join(f"{name}: {level}" for name, level in sorted(github.permissions.items()))
    yield Check("github-permissions", "ok", asked)


def _failed(name: str, exc: PodbotError) -> Check:
    return Check(name, "fail", exc.message, NO_CLONES, exc.remedy)
