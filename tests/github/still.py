"""GitHub on loopback whose clock stands still, and an App's client of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from podbot.errors import GitHubError
from podbot.github import installation
from podbot.github.app_client import AppClient
from podbot.github.key import PrivateKey
from podbot.testing import FakeGitHub
from podbot.testing.github_shapes import pem_of, rsa_key
from tests.waiting import HANG

PERMISSIONS = {"contents": "write", "pull_requests": "write", "metadata": "read"}
REPO = "octo/shop"


class StillGitHub(FakeGitHub):
    """Its clock and its clients' stand still, so that the duration of a request does not count.

    ``clock_offset``: how far its clock is ahead of theirs.
    """

    def __init__(self, **options: Any) -> None:
        self.started = float(int(time.time()))  # a Date header has whole seconds
        super().__init__(**options)

    def now(self) -> float:
        return self.started + self.clock_offset


def private_key(number: int = 0) -> PrivateKey:
    return PrivateKey("/k.pem", pem_of(rsa_key(number)), rsa_key(number))


def client(github: StillGitHub, **options: Any) -> AppClient:
    app_id, key = options.pop("app_id", github.app_id), options.pop("key", private_key())
    return AppClient(app_id, key, github.url, **{"timeout": HANG, "clock": lambda: github.started, **options})


def mint(github: StillGitHub, **options: Any) -> installation.InstallationToken:
    return client(github, **options).mint(github.installation_id, REPO, PERMISSIONS)


def failure(github: StillGitHub, **options: Any) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        mint(github, **options)
    return caught.value
