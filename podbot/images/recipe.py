"""The recipe of podbot's images: pinned versions, packages, build arguments, and files of the host."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence

from podbot._version import __version__
from podbot.agents.definition import Build
from podbot.agents.registry import agents
from podbot.config.checks import is_version
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue, PathError
from podbot.frozen import Frozen, replace
from podbot.places import shipped_dir

BASE_REPOSITORY = "localhost/podbot-base"
SANDBOX_REPOSITORY = "localhost/podbot-sandbox"
CONTAINERFILE = "sandbox/Containerfile"
INSTALL = "/usr/local/lib/podbot/install-agent"
INSTALL_PACKAGES = "/usr/local/lib/podbot/install-packages"
DEFAULT_AGENTS = ("claude",)

LABEL_IMAGE = "io.podbot.image"
LABEL_VERSION = "io.podbot.version"
LABEL_AGENTS = "io.podbot.agents"
LABEL_PACKAGES = "io.podbot.packages"  # those of sandbox.packages: build-essential,gh
LABEL_CHOSEN = "io.podbot.chosen"  # agents whose versions a build argument chose: claude=2.1.300
LABEL_RECIPE = "io.podbot.recipe"

# Variables of the build machine that a build step gets. By convention they contain no credentials for a private index.
# They are read from a file that is mounted for the step and never in the image's history.
PASSED_ON = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY", "npm_config_registry",
)  # fmt: skip
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)  # fmt: skip
CA_INSIDE = "/run/host/ca.crt"
# Lines of the Containerfile that are replaced by a step for each agent, one for the packages of `sandbox.packages`, and
# the variables of all agents.
_STEPS, _ENV = "# podbot: a layer for each agent", "# podbot: the agents' variables"
_PACKAGES = "# podbot: a layer for the packages of sandbox.packages"
_MOUNT = "--mount=type=bind,source=sandbox/host,target=/run/host"


class Recipe(Frozen):
    """The content of ``images/``. ``base_digest`` and ``digest`` change if the images would change.

    ``chosen``: the agents whose versions a build argument chose; the image remembers them. ``packages``: those of the
    base image, and ``added`` the operator's, sorted.
    """

    directory: str
    node: str
    agents: Mapping[str, Build]
    packages: tuple[str, ...]
    left_out: tuple[str, ...]
    base_digest: str
    digest: str
    version: str = __version__
    chosen: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()

    @property
    def image(self) -> str:
        """The sandbox image's reference."""
        return f"{SANDBOX_REPOSITORY}:{self.version}"

    @property
    def base(self) -> str:
        """The base image's reference."""
        return f"{BASE_REPOSITORY}:{self.version}"

    def check_agents(self, names: Iterable[str], origin: str) -> tuple[str, ...]:
        """``names`` without duplicates, in the table's order. Raises InvalidValue for an unknown one."""
        wanted = set(names)
        if unknown := sorted(wanted - self.agents.keys()):
            hint = f"{_near(unknown[0], self.agents)}Agents: {', '.join(self.agents)}. No other is installed: an image"
            hint += " that has another program runs it as custom."
            if self.agents.keys() >= {*unknown[0].split()}:
                hint = f"Separate names by commas: {','.join(unknown[0].split())}."
            reason = f"unknown agent {', '.join(map(repr, unknown))}"
            raise InvalidValue(field="agents", origin=origin, reason=reason, hint=hint)
        return tuple(name for name in self.agents if name in wanted)

    def changed(self, args: Mapping[str, str], origin: str) -> Recipe:
        """This recipe with other versions: ``NODE_VERSION`` and ``<AGENT>_VERSION``. Raises InvalidValue."""
        known = ["NODE_VERSION", *(f"{name.upper()}_VERSION" for name in self.agents)]
        for name, value in args.items():
            if name not in known:
                reason = f"the image has no build argument {name!r}"
                hint = f"{_near(name, known)}Arguments: {', '.join(known)}, and {', '.join(PASSED_ON)}."
                raise InvalidValue(field="build-arg", origin=origin, reason=reason, hint=hint)
            if not is_version(value):
                raise InvalidValue(field="build-arg", origin=origin, reason=f"{name}: {value!r} is not a version")
        versions = {name: args[word] for name in self.agents if (word := f"{name.upper()}_VERSION") in args}
        changed = self.with_versions(versions)
        return replace(changed, node=args.get("NODE_VERSION", self.node), chosen=self.chosen | versions.keys())

    def with_versions(self, versions: Mapping[str, str]) -> Recipe:
        """This recipe with these versions of its agents; names of others are ignored."""
        agents = {
            name: replace(build, version=versions.get(name, build.version)) for name, build in self.agents.items()
        }
        return replace(self, agents=agents)

    def agents_label(self, names: Iterable[str]) -> str:
        """The label ``io.podbot.agents``: ``claude=2.1.330,codex=0.169.0``."""
        return ",".join(f"{name}={self.agents[name].version}" for name in names)

    def build_args(self, base: str) -> dict[str, str]:
        """The Containerfile's arguments."""
        return {"BASE": base, "NODE_VERSION": self.node}

    def containerfile(self, names: Iterable[str]) -> str:
        """The Containerfile with one step for each of these agents, in this order, and the labels at its end.

        Versions are written into the steps instead of being arguments. A step's layer is reused if its text and all
        steps before it are unchanged, so a new version of an agent rebuilds only its layer and later ones, while an
        argument would affect every later step. Labels are written out too: with arguments, Podman 4.3 takes old
        values from its cache, and labels in the request are added in a different order each time, so that the cache
        misses.
        """
        chosen = tuple(names)
        variables = {name: value for build in self.agents.values() for name, value in build.env.items()}
        labels = " ".join(f'{name}="{value}"' for name, value in self.labels(chosen).items())
        parts = {
            _PACKAGES: _packages_step(self.added) if self.added else "",
            _STEPS: "\n".join(_step(name, self.agents[name]) for name in chosen),
            # For every agent, so that users who add one in an image based on this one need not set them.
            _ENV: "ENV " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items()),
        }
        lines = _text(self.directory, CONTAINERFILE).rstrip().splitlines()
        return "\n".join([*(parts.get(line, line) for line in lines), f"LABEL {labels}", ""])

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """The image's labels, from which a later setup and `podbot doctor` know its content."""
        labels = {
            LABEL_IMAGE: "sandbox",
            LABEL_VERSION: self.version,
            LABEL_AGENTS: self.agents_label(names),
            LABEL_RECIPE: self.digest,
        }
        chosen = self.agents_label(name for name in names if name in self.chosen)
        labels |= {LABEL_CHOSEN: chosen} if chosen else {}
        return labels | ({LABEL_PACKAGES: ",".join(self.added)} if self.added else {})


def _step(name: str, build: Build) -> str:
    """The step that installs an agent; its command begins with its title."""
    install = shlex.join([INSTALL, " ".join(build.remove), *build.specs])
    return f"RUN {_MOUNT} : '{name} {build.version}'; {install}"


def _packages_step(packages: Sequence[str]) -> str:
    return f"RUN {_MOUNT} : 'packages {', '.join(packages)}'; {shlex.join([INSTALL_PACKAGES, *packages])}"


def packages_in(labels: Mapping[str, str]) -> set[str]:
    """The packages that were added to an image with these labels."""
    return {name for name in labels.get(LABEL_PACKAGES, "").split(",") if name}


def agents_in(label: str) -> dict[str, str]:
    """Parse the label ``io.podbot.agents``: agent -> version."""
    pairs = (part.strip().partition("=") for part in label.split(","))
    return {name: version for name, _, version in pairs if name}


def chosen_in(labels: Mapping[str, str]) -> dict[str, str]:
    """The versions that build arguments chose for an image with these labels; what is no version is left out."""
    found = agents_in(labels.get(LABEL_CHOSEN, ""))
    return {name: version for name, version in found.items() if is_version(version)}


def images_dir() -> str:
    """The directory ``images/``: inside the installed package, or beside it in a source tree."""
    return shipped_dir("images")


def known_builds() -> dict[str, Build]:
    """The build of each agent that can be installed in the image."""
    return {name: agent.build for name, agent in agents().items() if agent.build is not None}


def load_recipe(directory: str | None = None, builds: Mapping[str, Build] | None = None) -> Recipe:
    """Read ``images/``. Raises PathError if it is not installed. ``builds`` defaults to those of podbot's agents."""
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


def host_files(environ: Mapping[str, str], directory: str, bundles: Sequence[str] = CA_BUNDLES) -> dict[str, bytes]:
    """The files below ``sandbox/host/`` for a build on this machine: its proxies and its CA bundle.

    ``bundles``: where that may be.
    """
    lines = [f"export {name}={shlex.quote(environ[name])}" for name in PASSED_ON if environ.get(name, "").strip()]
    bundle = _ca_bundle(environ, bundles)
    if bundle:
        # pip, npm, curl and OpenSSL each use a different variable.
        names = ("NODE_EXTRA_CA_CERTS", "PIP_CERT", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
        lines += [f"export {name}={CA_INSIDE}" for name in names]
    env = _text(directory, "sandbox/host/env") + "".join(f"{line}\n" for line in lines)
    files = {"sandbox/host/env": env.encode()}
    return {**files, "sandbox/host/ca.crt": bundle} if bundle else files


def _ca_bundle(environ: Mapping[str, str], bundles: Sequence[str]) -> bytes:
    """The machine's CA bundle, with what the operator added for one program alone."""
    system = next((path for path in bundles if os.path.isfile(path)), "")
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


def other_image(config: AppConfig) -> str:
    """The image that the operator chose; an earlier version's own image in the file is not a choice."""
    if not config.image:
        return ""
    origin = config.origin("image")
    ours = config.image.startswith(f"{SANDBOX_REPOSITORY}:")
    return "" if ours and origin.kind == "file" and not origin.project else config.image
