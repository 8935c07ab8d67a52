"""A session's way to a new token: one plain call that can be made again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from podbot.github.app import TIMEOUT, AppClient, InstallationToken
from podbot.github.key import load_private_key

Minter = Callable[[], InstallationToken]
"""One new token; raises GitHubError (or InvalidValue for a record that cannot be right), and never retries."""


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
    """A minter for ``grant``. The key is read for each token, so one that is replaced meanwhile counts at once.

    Before its first token it asks whose the installation is: GitHub takes the repository's name alone, and would
    give a token for a repository of the same name that belongs to somebody else.
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
