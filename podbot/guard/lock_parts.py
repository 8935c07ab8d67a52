"""What the lock files that are JSON say of where packages come from. Pure.

As in ``manifests``, what is known to be harmless is left out, and everything else counts.
"""

from __future__ import annotations

import json

from podbot.guard.manifests import is_plain
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_NPM = frozenset((
    "name", "version", "integrity", "dev", "optional", "devOptional", "peer", "license", "engines", "os", "cpu", "libc",
    "bin", "funding", "deprecated", "hasInstallScript", "hasShrinkwrap", "bundled", "inBundle", "link", "extraneous",
    "bundleDependencies", "workspaces", "resolved", "dependencies", "devDependencies", "optionalDependencies",
    "peerDependencies", "peerDependenciesMeta", "requires", "packages", "lockfileVersion",
))  # fmt: skip
_NPM_NEEDS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "requires")
_PIPENV = frozenset(("hashes", "version", "index", "markers", "extras"))


def npm_part(found: object) -> Iterator[str]:
    """package-lock.json, of every version of its form."""
    if not isinstance(found, dict):
        yield _text(found)
        return
    yield from _others(found, _NPM)
    version = found.get("version", "")
    if not is_plain(version):
        yield _text(version)
    if "resolved" in found:
        yield _text(found["resolved"])
    for name in _NPM_NEEDS:
        needs = found.get(name)
        if isinstance(needs, dict):
            for need in needs.values():
                yield from _npm_need(need)
        elif needs is not None and not isinstance(needs, bool):
            yield _text(needs)
    packages = found.get("packages", {})
    for package in packages.values() if isinstance(packages, dict) else [packages]:
        yield from npm_part(package)


def _npm_need(need: object) -> Iterator[str]:
    """A version; in the first version of the form, the package itself."""
    if isinstance(need, dict):
        yield from npm_part(need)
    elif not is_plain(need):
        yield _text(need)


def composer_part(found: object) -> Iterator[str]:
    """composer.lock. A package of Packagist comes from the repository of its own name on GitHub, as a rule."""
    for name in ("packages", "packages-dev"):
        for package in _list(found, name):
            if not isinstance(package, dict):
                yield _text(package)
                continue
            own = str(package.get("name", "")).lower()
            for kind in ("source", "dist"):
                place = package.get(kind)
                url = place.get("url") if isinstance(place, dict) else place
                if url is not None and not _is_of(own, url):
                    yield _text(url)


def pipenv_part(found: object) -> Iterator[str]:
    """Pipfile.lock."""
    meta = found.get("_meta") if isinstance(found, dict) else found
    for source in _list(meta, "sources"):
        yield _text(source.get("url") if isinstance(source, dict) else source)
    for name in ("default", "develop"):
        packages = found.get(name, {}) if isinstance(found, dict) else {}
        for package in packages.values() if isinstance(packages, dict) else [packages]:
            if isinstance(package, dict):
                yield from _others(package, _PIPENV)
            else:
                yield _text(package)


def _is_of(own: str, url: object) -> bool:
    """Whether an address is that of the repository ``own`` on GitHub."""
    begins = (f"https://github.com/{own}.git", f"https://api.github.com/repos/{own}/zipball/")
    return isinstance(url, str) and "/" in own and "/../" not in url and url.lower().startswith(begins)


def _list(found: object, name: str) -> list[Any]:
    value = found.get(name, []) if isinstance(found, dict) else [found]
    return value if isinstance(value, list) else [value]


def _others(found: dict[str, Any], known: frozenset[str]) -> Iterator[str]:
    yield from (f"{name}: {_text(value)}" for name, value in found.items() if name not in known)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
