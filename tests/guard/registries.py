"""Hosts of public registries, from podbot's own set, for lock files in tests."""

from __future__ import annotations

from podbot.gateway.sets import SETS


def _serving(what: str) -> str:
    return next(rule for rule, serves in SETS["registries"].hosts.items() if serves == what)


HOSTS = {
    "<npm>": _serving("npm, pnpm, Yarn 2 and later").replace("*", "registry"),
    "<yarn>": _serving("Yarn 1"),
    "<pypi>": _serving("pip's and uv's index"),
    "<files of pypi>": _serving("its files"),
    "<rubygems>": _serving("gem and bundler"),
}


def with_hosts(text: str) -> str:
    """``text`` with the hosts in place of their names, such as ``<npm>``."""
    for name, host in HOSTS.items():
        text = text.replace(name, host)
    return text
