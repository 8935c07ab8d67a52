"""How a session gets a new token: one call that can be repeated."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol

from podbot.github.app_client import TIMEOUT, AppClient, InstallationToken
from podbot.github.borrowed import reader
from podbot.github.key import load_private_key
from podbot.github.renewer import Minted
from podbot.launch.github_auth import APP

Minter = Callable[[], Minted]
"""One new token; raises GitHubError (or InvalidValue for an invalid record), and never retries."""


class Granted(Protocol):
    """The part of a grant that a minter needs."""

    @property
    def auth(self) -> str: ...
    @property
    def server_url(self) -> str: ...
    @property
    def repo(self) -> str: ...
    @property
    def app_id(self) -> int: ...
    @property
    def installation_id(self) -> int: ...
    @property
    def private_key_path(self) -> str: ...
    @property
    def api_url(self) -> str: ...
    @property
    def permissions(self) -> Mapping[str, str]: ...


def minter(grant: Granted, *, timeout: float = TIMEOUT, environ: Mapping[str, str] | None = None) -> Minter:
    """A minter for ``grant``. The key is read for each token, so a replaced key takes effect at once.

    Before the first token it checks the installation's owner: GitHub's request contains only the repository's name, so
    the token could otherwise be for another owner's repository of that name. ``environ``: for a token that the operator
    already has (see ``borrowed``); None: this process's.
    """
    if grant.auth != APP:
        return reader(grant.auth, grant.server_url, os.environ if environ is None else environ)
    known_owner = False

    def mint() -> InstallationToken:
        nonlocal known_owner
        client = AppClient(grant.app_id, load_private_key(grant.private_key_path), grant.api_url, timeout=timeout)
        if not known_owner:
            client.check_access(grant.installation_id, grant.repo, grant.permissions)
        token = client.mint(grant.installation_id, grant.repo, grant.permissions, known_owner=known_owner)
        known_owner = True
        return token

    return mint
