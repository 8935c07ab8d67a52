"""How a session gets a new token: one call that can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from podbot.github.app import TIMEOUT, AppClient, InstallationToken
from podbot.github.key import load_private_key

Minter = Callable[[], InstallationToken]
"""One new token; raises GitHubError (or InvalidValue for an invalid record), and never retries."""


class Granted(Protocol):
    """What a minter needs of a grant."""

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


def minter(grant: Granted, *, timeout: float = TIMEOUT) -> Minter:
    """A minter for ``grant``. The key is read for each token, so a replaced key takes effect at once.

    Before the first token it asks who owns the installation: GitHub takes the repository's name alone, and would
    give a token for a repository of the same name with another owner.
    """
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
