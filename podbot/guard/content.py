"""Reduces a file's content to a short value that changes when the relevant part changes. Pure.

The JSON and TOML parsers are imported only for such a file, because the import takes longer than most scans.
"""

from __future__ import annotations

from _blake2 import blake2b  # all that hashlib has of it, without OpenSSL

from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

MOST = 256 << 10
"""Bytes of a file that are read at most."""

_SCRIPTS = (
    "scripts", "husky", "lint-staged", "simple-git-hooks", "pre-commit", "ghooks", "gypfile", "bin", "pnpm",
    "packageManager", "workspaces", "overrides", "resolutions", "jest", "eslintConfig", "babel", "config", "prettier",
    "nodemonConfig", "mocha", "ava", "nyc", "c8", "stylelint", "commitlint", "imports",
)  # fmt: skip
_DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_TOOLS = (
    "build", "hooks", "scripts", "tasks", "cmdclass", "index", "sources", "envs", "poe", "taskipy", "pytest",
    "pixi", "cibuildwheel", "uv", "pip", "tox", "nox", "invoke", "hatch", "pdm", "pylint", "plugins",
)  # fmt: skip


def value(rule: str, name: str, data: bytes) -> str:
    """``data`` is the whole file. Of some files only a part runs: a new dependency or version is not a finding."""
    part: object = None
    if rule == "node.scripts":
        part = _package(data)
    elif name == "composer.json":
        part = _part_of_json(data, ("scripts", "config", "repositories", "autoload-dev"))
    elif rule == "python.project":
        part = _project(data)
    elif name == "Cargo.toml":
        part = _crate(data)
    if part is not None:
        import json

        data = json.dumps(part, sort_keys=True, default=str).encode()
    return digest(data)


def digest(data: bytes) -> str:
    """A hash of sixteen bytes, as hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest()


def _part_of_json(data: bytes, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """The members ``keys``; None if the data is not a JSON object, so that every byte counts."""
    import json

    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return {key: found[key] for key in keys if key in found} if isinstance(found, dict) else None


def _package(data: bytes) -> dict[str, Any] | None:
    """package.json: commands, and dependencies that are not from a registry, whose scripts run at an install."""
    part = _part_of_json(data, (*_SCRIPTS, *_DEPENDENCIES))
    if part is None:
        return None
    for name in _DEPENDENCIES:
        table = part.pop(name, {})
        if not isinstance(table, dict):
            return None
        if elsewhere := {key: spec for key, spec in table.items() if ":" in str(spec) or "/" in str(spec)}:
            part[name] = elsewhere
    return part


def _toml(data: bytes) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return None


def _table(found: object, key: str) -> dict[str, Any]:
    table = found.get(key) if isinstance(found, dict) else None
    return table if isinstance(table, dict) else {}


def _crate(data: bytes) -> dict[str, Any] | None:
    """Cargo.toml: a build script with another name, and sources that replace the registry's."""
    found = _toml(data)
    if found is None:
        return None
    return {
        "build": _table(found, "package").get("build"),
        "patch": found.get("patch"),
        "replace": found.get("replace"),
    }


def _project(data: bytes) -> dict[str, Any] | None:
    found = _toml(data)
    if found is None:
        return None
    tools = _table(found, "tool")
    kept = {name: part for name, part in tools.items() if name in _TOOLS or _some(part)}
    return {
        "build-system": found.get("build-system"),
        "entry-points": _table(found, "project").get("entry-points"),  # pytest loads its plugins by them
        "tool": {n: p if n in _TOOLS else _some(p) for n, p in kept.items()},
    }


def _some(part: object) -> dict[str, Any]:
    """The entries of a tool's table that contain commands."""
    return {key: value for key, value in part.items() if key in _TOOLS} if isinstance(part, dict) else {}
