"""What goes into podbot's images: pinned versions, package list, build arguments, the host's part."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from podbot._version import __version__
from podbot.agents.registry import agents
from podbot.agents.types import Build
from podbot.errors import InvalidValue, PathError

BASE_REPOSITORY = "localhost/podbot-base"
SANDBOX_REPOSITORY = "localhost/podbot-sandbox"
CONTAINERFILE = "sandbox/Containerfile"
INSTALL = "/usr/local/lib/podbot/install-agent"
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
# Lines of the Containerfile that stand for a step an agent, and for the variables of all agents.
_STEPS, _ENV = "# podbot: a layer for each agent", "# podbot: the agents' variables"
_MOUNT = "--mount=type=bind,source=sandbox/host,target=/run/host"
# Versions are words of the Containerfile's steps.
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The files of ``images/``, read. ``base_digest`` and ``digest`` change when the images would."""

    directory: str
    node: str
    agents: Mapping[str, Build]
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
            name: build._replace(version=args.get(f"{name.upper()}_VERSION", build.version))
            for name, build in self.agents.items()
        }
        return replace(self, node=args.get("NODE_VERSION", self.node), agents=agents)

    def agents_label(self, names: Iterable[str]) -> str:
        """The label ``io.podbot.agents``: ``claude=2.1.330,codex=0.169.0``."""
        return ",".join(f"{name}={self.agents[name].version}" for name in names)

    def build_args(self, base: str) -> dict[str, str]:
        """The Containerfile's arguments."""
        return {"BASE": base, "NODE_VERSION": self.node}

    def containerfile(self, names: Iterable[str]) -> str:
        """The Containerfile with one step for each of these agents, in this order, and the labels at its end.

        Written out, versions too: a step's layer is found again as long as its text and all before it are the same, so
        another version of an agent makes its layer and later ones anew. An argument would count in every step behind
        it. Of labels with arguments Podman 4.3 takes old values from its cache, and those that come with the request
        it adds in another order each time, so that the cache misses them.
        """
        chosen = tuple(names)
        variables = {name: value for build in self.agents.values() for name, value in build.env.items()}
        labels = " ".join(f'{name}="{value}"' for name, value in self.labels(chosen).items())
        parts = {
            _STEPS: "\n".join(_step(name, self.agents[name]) for name in chosen),
            # Of every agent, chosen or not: who adds one to an image made from this one need not know them.
            _ENV: "ENV " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items()),
        }
        lines = _text(self.directory, CONTAINERFILE).rstrip().splitlines()
        return "\n".join([*(parts.get(line, line) for line in lines), f"LABEL {labels}", ""])

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """The image's labels, by which a later setup and `podbot doctor` know what is in it."""
        return {
            LABEL_IMAGE: "sandbox",
            LABEL_VERSION: self.version,
            LABEL_AGENTS: self.agents_label(names),
            LABEL_RECIPE: self.digest,
        }


def _step(name: str, build: Build) -> str:
    """The step that installs an agent; its title is the first word of its command."""
    install = shlex.join([INSTALL, " ".join(build.remove), *build.specs])
    return f"RUN {_MOUNT} : '{name} {build.version}'; {install}"


def agents_in(label: str) -> dict[str, str]:
    """The label ``io.podbot.agents`` read: agent -> version."""
    pairs = (part.strip().partition("=") for part in label.split(","))
    return {name: version for name, _, version in pairs if name}


def images_dir() -> str:
    """Where ``images/`` is: inside the installed package, or beside it in a source tree."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "_images")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "images")


def known_builds() -> dict[str, Build]:
    """How each agent that can be built in gets into the image."""
    return {name: agent.build for name, agent in agents().items() if agent.build is not None}


def load_recipe(directory: str | None = None, builds: Mapping[str, Build] | None = None) -> Recipe:
    """Read ``images/``. Raises PathError when the installation lacks it. ``builds``: of the agents, podbot's own."""
    import tomllib

    from podbot.images.context import context_files

    place = directory or images_dir()
    try:
        versions = tomllib.loads(_text(place, "sandbox/versions.toml"))
        packages = _listed(place, "base/packages.txt")
        left_out = _listed(place, "base/leave-out.txt")
        files = [name for name in context_files(place) if name.startswith(("base/", "sandbox/"))]
        known = known_builds() if builds is None else dict(builds)
        digest = _digest(place, files, repr(known))
        base_digest = _digest(place, [name for name in files if name.startswith("base/")])
    except (OSError, ValueError, KeyError) as exc:
        raise PathError(path=place, operation="read podbot's image recipe in", reason=str(exc)) from exc
    return Recipe(place, versions["node"]["version"], known, packages, left_out, base_digest, digest)


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


def _digest(directory: str, names: Iterable[str], more: str = "") -> str:
    total = hashlib.sha256(more.encode())
    for name in names:
        total.update(f"{name}\0".encode() + hashlib.sha256(_text(directory, name).encode()).digest())
    return total.hexdigest()[:16]
