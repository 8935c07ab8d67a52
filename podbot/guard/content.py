"""What of a file's content matters, as a short value that changes when that does. Pure."""

from __future__ import annotations

import json
from typing import Any

MOST = 256 << 10
"""Bytes of a file that are read."""

_SCRIPTS = (
    "scripts", "husky", "lint-staged", "simple-git-hooks", "pre-commit", "ghooks", "gypfile", "bin", "pnpm",
    "packageManager", "workspaces", "overrides", "resolutions", "jest", "eslintConfig", "babel", "config",
)  # fmt: skip
_TOOLS = (
    "build", "hooks", "scripts", "tasks", "cmdclass", "index", "sources", "envs", "poe", "taskipy", "pytest",
    "pixi", "cibuildwheel", "uv", "pip", "tox", "nox", "invoke", "hatch", "pdm",
)  # fmt: skip


def value(rule: str, name: str, data: bytes) -> str:
    """``data``: the whole file. Of some only a part runs: a new dependency or version is no finding."""
    part: object = None
    if rule == "node.scripts":
        part = _part_of_json(data, _SCRIPTS)
    elif name == "composer.json":
        part = _part_of_json(data, ("scripts", "config", "repositories", "autoload-dev"))
    elif rule == "python.project":
        part = _project(data)
    if part is not None:
        data = json.dumps(part, sort_keys=True, default=str).encode()
    return digest(data)


def digest(data: bytes) -> str:
    """Sixteen bytes, as hexadecimal digits."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).hexdigest()


def _part_of_json(data: bytes, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """None for what is no JSON object: then every byte counts."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return {key: found[key] for key in keys if key in found} if isinstance(found, dict) else None


def _project(data: bytes) -> dict[str, Any] | None:
    import tomllib

    try:
        found = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    tools = found.get("tool")
    tools = tools if isinstance(tools, dict) else {}
    kept = {name: part for name, part in tools.items() if name in _TOOLS or _some(part)}
    return {
        "build-system": found.get("build-system"),
        "tool": {n: p if n in _TOOLS else _some(p) for n, p in kept.items()},
    }


def _some(part: object) -> dict[str, Any]:
    """Of a tool's table those that hold commands."""
    return {key: value for key, value in part.items() if key in _TOOLS} if isinstance(part, dict) else {}
