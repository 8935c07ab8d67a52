"""What goes into podbot's images: pinned versions, package list, build arguments, the host's part."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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
SLOTS = 4  # agents that the Containerfile has room for
# The Containerfile splits package specifications at blanks.
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}")


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that can be built in: its npm package, pinned version, size in the image and ACP adapter.

    ``acp``: ``package@version``; empty where the agent speaks the Agent Client Protocol itself.
    """

    package: str
    version: str
    megabytes: int
    acp: str = ""

    @property
    def specs(self) -> str:
        """What npm installs, with blanks between: ``package@version`` of the agent and of its adapter."""
        return f"{self.package}@{self.version} {self.acp}".strip()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The files of ``images/``, read. ``base_digest`` and ``digest`` change when the images would."""

    directory: str
    node: str
    agents: Mapping[str, Agent]
    packages: tuple[str, ...]
    left_out: tuple[str, ...]
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
                hint=f"{_near(unknown[0], self.agents)}Agents: {', '.join(self.agents)}.",
            )
        return tuple(name for name in self.agents if name in wanted)

    def changed(self, args: Mapping[str, str], origin: str) -> Recipe:
        """This recipe with other versions: ``NODE_VERSION`` and ``<AGENT>_VERSION``. Raises InvalidValue."""
        known = ["NODE_VERSION", *(f"{name.upper()}_VERSION" for name in self.agents)]
        for name, value in args.items():
            if name not in known:
                reason = f"the image has no build argument {name!r}"
                hint = f"{_near(name, known)}Arguments: {', '.join(known)}, and {', '.join(PASSED_ON)}."
                raise InvalidValue(field="build-arg", origin=origin, reason=reason, hint=hint)
            if not _VERSION.fullmatch(value):
                raise InvalidValue(field="build-arg", origin=origin, reason=f"{name}: {value!r} is not a version")
        agents = {
            name: replace(agent, version=args.get(f"{name.upper()}_VERSION", agent.version))
            for name, agent in self.agents.items()
        }
        return replace(self, node=args.get("NODE_VERSION", self.node), agents=agents)

    def agents_label(self, names: Iterable[str]) -> str:
        """The label ``io.podbot.agents``: ``claude=2.1.330,codex=0.169.0``."""
        return ",".join(f"{name}={self.agents[name].version}" for name in names)

    def build_args(self, base: str, names: Iterable[str]) -> dict[str, str]:
        """The Containerfile's arguments for these agents, one a slot in this order."""
        specs = [self.agents[name].specs for name in names]
        slots = {f"AGENT_{number + 1}": specs[number] if number < len(specs) else "" for number in range(SLOTS)}
        return {"BASE": base, "NODE_VERSION": self.node, **slots}

    def containerfile(self, names: Iterable[str]) -> str:
        """The Containerfile with the labels at its end.

        Written out: of labels with arguments Podman 4.3 takes old values from its cache, and those that come with the
        request it adds in another order each time, so that the cache misses them.
        """
        labels = " ".join(f'{name}="{value}"' for name, value in self.labels(names).items())
        return f"{_text(self.directory, CONTAINERFILE).rstrip()}\nLABEL {labels}\n"

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """The image's labels, by which a later setup and `podbot doctor` know what is in it."""
        return {
            LABEL_IMAGE: "sandbox",
            LABEL_VERSION: self.version,
            LABEL_AGENTS: self.agents_label(names),
            LABEL_RECIPE: self.digest,
        }


def agents_in(label: str) -> dict[str, str]:
    """The label ``io.podbot.agents`` read: agent -> version."""
    pairs = (part.strip().partition("=") for part in label.split(","))
    return {name: version for name, _, version in pairs if name}


def images_dir() -> str:
    """Where ``images/`` is: inside the installed package, or beside it in a source tree."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "_images")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "images")


def load_recipe(directory: str | None = None) -> Recipe:
    """Read ``images/``. Raises PathError when the installation lacks it."""
    import tomllib

    from podbot.images.context import context_files

    place = directory or images_dir()
    try:
        versions = tomllib.loads(_text(place, "sandbox/versions.toml"))
        packages = _listed(place, "base/packages.txt")
        left_out = _listed(place, "base/leave-out.txt")
        rows = versions["agents"].items()
        agents = {
            name: Agent(row["package"], row["version"], row["megabytes"], row.get("acp", "")) for name, row in rows
        }
        files = [name for name in context_files(place) if name.startswith(("base/", "sandbox/"))]
        digest = _digest(place, files)
        base_digest = _digest(place, [name for name in files if name.startswith("base/")])
    except (OSError, ValueError, KeyError) as exc:
        raise PathError(path=place, operation="read podbot's image recipe in", reason=str(exc)) from exc
    return Recipe(place, versions["node"]["version"], agents, packages, left_out, base_digest, digest)


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


def _listed(directory: str, name: str) -> tuple[str, ...]:
    """The lines of a file, without comments and empty ones."""
    return tuple(line.strip() for line in _text(directory, name).splitlines() if line.strip() and line[0] != "#")


def _near(name: str, known: Iterable[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1)
    return f"Did you mean {found[0]}? " if found else ""


def _digest(directory: str, names: Iterable[str]) -> str:
    total = hashlib.sha256()
    for name in names:
        total.update(f"{name}\0".encode() + hashlib.sha256(_text(directory, name).encode()).digest())
    return total.hexdigest()[:16]
