"""What goes into podbot's images: pinned versions, package list, build arguments, the host's part."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podbot._version import __version__
from podbot.errors import InvalidValue, PathError

BASE_REPOSITORY = "localhost/podbot-base"
SANDBOX_REPOSITORY = "localhost/podbot-sandbox"
CONTAINERFILE = "sandbox/Containerfile"
DEFAULT_AGENTS = ("claude",)

LABEL_IMAGE = "io.podbot.image"
LABEL_VERSION = "io.podbot.version"
LABEL_AGENTS = "io.podbot.agents"
LABEL_RECIPE = "io.podbot.recipe"

# Which variables of the build machine a build step gets. Credentials for a private index are in none of them
# by convention; they are sourced from a file that is mounted for the step and never in the image's history.
PASSED_ON = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY", "npm_config_registry",
)  # fmt: skip
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)  # fmt: skip
CA_INSIDE = "/run/host/ca.crt"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that can be built in: its npm package, pinned version and size in the image."""

    package: str
    version: str
    megabytes: int

    @property
    def spec(self) -> str:
        """As npm wants it: ``package@version``."""
        return f"{self.package}@{self.version}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The files of ``images/``, read. ``base_digest`` and ``digest`` change when the images would."""

    directory: str
    node: str
    agents: Mapping[str, Agent]
    packages: tuple[str, ...]
    base_digest: str
    digest: str
    version: str = __version__

    @property
    def image(self) -> str:
        """The sandbox image's reference."""
        return f"{SANDBOX_REPOSITORY}:{self.version}"

    @property
    def base(self) -> str:
        """The base image's reference."""
        return f"{BASE_REPOSITORY}:{self.version}"

    def check_agents(self, names: Iterable[str], origin: str) -> tuple[str, ...]:
        """``names`` without repetition, in the table's order. Raises InvalidValue for one that is not in it."""
        wanted = set(names)
        if unknown := sorted(wanted - self.agents.keys()):
            raise InvalidValue(
                field="agents",
                origin=origin,
                reason=f"no agent {', '.join(map(repr, unknown))} can be built in",
                hint=f"Agents: {', '.join(self.agents)}.",
            )
        return tuple(name for name in self.agents if name in wanted)

    def agents_label(self, names: Iterable[str]) -> str:
        """The label ``io.podbot.agents``: ``claude=2.1.330,codex=0.169.0``."""
        return ",".join(f"{name}={self.agents[name].version}" for name in names)

    def build_args(self, base: str, names: Iterable[str]) -> dict[str, str]:
        """The Containerfile's arguments for these agents."""
        chosen = tuple(names)
        specs = {name.upper(): self.agents[name].spec if name in chosen else "" for name in self.agents}
        return {
            "BASE": base,
            "NODE_VERSION": self.node,
            **specs,
        }

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """The image's labels, by which a later setup and `podbot doctor` know what is in it."""
        return {
            LABEL_IMAGE: "sandbox",
            LABEL_VERSION: self.version,
            LABEL_AGENTS: self.agents_label(names),
            LABEL_RECIPE: self.digest,
        }


def images_dir() -> str:
    """Where ``images/`` is: inside the installed package, or beside it in a source tree."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "_images")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "images")


def load_recipe(directory: str | None = None) -> Recipe:
    """Read ``images/``. Raises PathError when the installation lacks it."""
    import tomllib

    from podbot.engine.images import context_files

    place = directory or images_dir()
    try:
        versions = tomllib.loads(_text(place, "sandbox/versions.toml"))
        packages = tuple(
            line.strip() for line in _text(place, "base/packages.txt").splitlines() if line.strip() and line[0] != "#"
        )
        rows = versions["agents"].items()
        agents = {name: Agent(row["package"], row["version"], row["megabytes"]) for name, row in rows}
        files = [name for name in context_files(place) if name.startswith(("base/", "sandbox/"))]
        digest = _digest(place, files)
        base_digest = _digest(place, ["base/packages.txt"])
    except (OSError, ValueError, KeyError) as exc:
        raise PathError(path=place, operation="read podbot's image recipe in", reason=str(exc)) from exc
    return Recipe(place, versions["node"]["version"], agents, packages, base_digest, digest)


def host_files(environ: Mapping[str, str], directory: str) -> dict[str, bytes]:
    """The files below ``sandbox/host/`` for a build on this machine: its proxies and its CA bundle."""
    lines = [f"export {name}={shlex.quote(environ[name])}" for name in PASSED_ON if environ.get(name, "").strip()]
    bundle = _ca_bundle(environ)
    if bundle:
        # pip, npm, curl and OpenSSL each look at a variable of their own.
        names = ("NODE_EXTRA_CA_CERTS", "PIP_CERT", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
        lines += [f"export {name}={CA_INSIDE}" for name in names]
    env = _text(directory, "sandbox/host/env") + "".join(f"{line}\n" for line in lines)
    files = {"sandbox/host/env": env.encode()}
    return {**files, "sandbox/host/ca.crt": bundle} if bundle else files


def _ca_bundle(environ: Mapping[str, str]) -> bytes:
    """The machine's CA bundle, with what the operator added for one program alone."""
    system = next((path for path in CA_BUNDLES if os.path.isfile(path)), "")
    named = (environ.get(name, "") for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"))
    parts: list[bytes] = []
    for path in dict.fromkeys([system, *named]):
        try:
            with open(path, "rb") as file:
                data = file.read()
        except (OSError, ValueError):
            continue
        if data not in parts:
            parts.append(data)
    return b"\n".join(parts)


def _text(directory: str, name: str) -> str:
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        return file.read()


def _digest(directory: str, names: Iterable[str]) -> str:
    total = hashlib.sha256()
    for name in names:
        total.update(f"{name}\0".encode() + hashlib.sha256(_text(directory, name).encode()).digest())
    return total.hexdigest()[:16]
