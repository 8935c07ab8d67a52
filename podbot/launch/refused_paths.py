"""The refusal lists of the mount policy, as data: what is never mounted, and never mounted over."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from podbot.agents.registry import agents
from podbot.launch.types import HostFacts


class RefusedPath(NamedTuple):
    """A refused path and why. ``below``: everything below it is refused as well.

    What *holds* a place is refused with it: a mount of /srv hands out /srv/secret too.
    """

    path: str
    what: str
    below: bool = True


# Below a home directory: whoever reads these is the user, whoever writes them runs code as the user. Those of agents
# stand in their own files (podbot.agents).
CREDENTIALS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".password-store",
    ".config/gh", ".config/hub", ".config/glab-cli", ".config/git", ".config/gcloud", ".config/doctl", ".config/op",
    ".config/rclone", ".config/containers", ".config/podbot", ".config/systemd", ".config/autostart",
    ".config/environment.d", ".config/google-chrome", ".config/chromium", ".mozilla", ".thunderbird",
    ".local/share/keyrings", ".local/share/containers", ".local/share/systemd", ".local/bin", ".pki", ".terraform.d",
    ".oci", ".vault-token", ".npmrc", ".pypirc", ".cargo/bin", ".cargo/credentials", ".cargo/credentials.toml",
    ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
)  # fmt: skip

# Of the host. Links such as /bin and /var/run are listed as they are spelled: a resolved path never
# meets them, but a host where they are directories does.
SYSTEM = (
    "/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/efi", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/var/lib/containers", "/var/lib/docker",
    "/var/lib/systemd", "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman", "/var/spool", "/usr/share",
    "/usr/local/share", "/usr/local/etc", "/usr/local/include", "/usr/include", "/nix", "/snap", "/lost+found",
    "/Library", "/System", "/Applications", "/tmp/.X11-unix",  # noqa: S108 - a display's socket
)  # fmt: skip

# Of the host as well, but projects do live there on some: mounted where workspace.allowed_roots names them.
# /var by its parts, because /var/home, /var/srv, /var/www and /var/tmp are where an ostree system or a server has data.
SYSTEM_UNLESS_NAMED = (
    "/opt", "/usr/games", "/usr/local/games", "/usr/local/opt", "/usr/local/Cellar", "/var/account", "/var/adm",
    "/var/backups", "/var/cache", "/var/crash", "/var/db", "/var/games", "/var/lib", "/var/local", "/var/lock",
    "/var/log", "/var/mail", "/var/opt", "/var/usrlocal", "/var/yp",
)  # fmt: skip

# Inside the sandbox: what the engine, podbot's own mounts and the programs in the image need to be themselves.
RESERVED_TARGETS = (
    "/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/var/lib/containers", "/var/lib/dpkg",
)  # fmt: skip

# Of a home.
PROGRAMS = "bin"

# Where homes stand: one level below is a user's home, whoever the user is.
HOME_PARENTS = ("/home", "/var/home", "/Users")


@cache
def credential_places() -> tuple[str, ...]:
    """Places below a home with credentials or settings of programs, agents included."""
    return (*(name for agent in agents().values() for name in agent.refused), *CREDENTIALS)


def within(inner: str, outer: str) -> bool:
    """Whether ``inner`` is ``outer`` or lies below it, component by component. Both absolute and normal."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def refusal(path: str, places: Iterable[RefusedPath]) -> str | None:
    """Why ``path`` is refused: it is, holds, or (where that counts) lies in one of ``places``. None: it is not."""
    for place in places:
        if path == place.path:
            return f"it is {place.what}"
        if within(place.path, path):
            return f"it holds {place.path}, {place.what}"
        if place.below and within(path, place.path):
            return f"it lies in {place.path}, {place.what}"
    return None


def refused_sources(facts: HostFacts, path: str) -> list[RefusedPath]:
    """What ``path`` is refused by whoever asks; ``path`` itself says which other homes matter."""
    places = [RefusedPath("/", "the whole file system", below=False)]
    for home in homes(facts, path):
        places.append(RefusedPath(home, "a home directory", below=False))
        places += [
            RefusedPath(os.path.join(home, name), "where credentials or settings live") for name in credential_places()
        ]
    places += [RefusedPath(name, "where users' homes stand", below=False) for name in HOME_PARENTS]
    places += [RefusedPath(name, "a system directory") for name in SYSTEM]
    places += own_places(facts)
    places += [RefusedPath(name, "where a protected place leads by a link") for name in facts.protected]
    return places


def refused_unless_named(facts: HostFacts, path: str) -> str | None:
    """Why ``path`` is refused as long as no entry of ``workspace.allowed_roots`` names it. None: it is not.

    Every dot-directory of a home, known or not: programs keep settings there that run code as the user. And ``bin``,
    which login shells put first in PATH: what is written there runs in place of any program. An entry
    names what lies in it when it lies in the refused place itself, or is the path: that a home, or a directory of
    projects, is allowed says nothing of these.
    """
    roots = [root.resolved for root in facts.allowed_roots if root.kind == "directory"]
    places = [RefusedPath(place, "a dot-directory of a home") for place in _dot_directories(facts, path)]
    places += [
        RefusedPath(os.path.join(home, PROGRAMS), "where a home's own programs are") for home in homes(facts, path)
    ]
    places += [RefusedPath(place, "where a link at such a place leads") for place in facts.named_only]
    places += [RefusedPath(place, "a system directory") for place in SYSTEM_UNLESS_NAMED]
    return refusal(path, [place for place in places if not _is_named(path, place.path, roots)])


def _dot_directories(facts: HostFacts, path: str) -> list[str]:
    found = []
    for home in homes(facts, path):
        name = path[len(home) + 1 :].partition("/")[0] if path != home and within(path, home) else ""
        if name.startswith("."):
            found.append(os.path.join(home, name))
    return found


def _is_named(path: str, place: str, roots: Iterable[str]) -> bool:
    return any(within(path, root) and (within(root, place) or root == path) for root in roots)


def own_places(facts: HostFacts) -> list[RefusedPath]:
    """podbot's own directories, and the engine's socket."""
    from podbot.places import config_file

    places = [
        RefusedPath(facts.runtime_dir, "podbot's runtime directory"),
        RefusedPath(facts.state_dir, "podbot's state directory"),
        RefusedPath(os.path.dirname(config_file({**facts.env, "HOME": facts.home})), "podbot's configuration"),
        *(RefusedPath(path, "the GitHub App's private key") for path in facts.private_key),
    ]
    if facts.engine_socket_dir is not None:
        # Only what holds the socket hands it out; a directory beside it (a socket in /tmp) does not.
        places.append(RefusedPath(facts.engine_socket_dir, "the directory of the engine's socket", below=False))
    return places


def reserved_targets() -> list[RefusedPath]:
    """Where nothing is mounted inside the sandbox, whose user is root with the home /root."""
    return [
        RefusedPath("/", "the sandbox's whole file system", below=False),
        RefusedPath("/root", "the agent's home directory", below=False),
        *(RefusedPath(f"/root/{name}", "where the agent's credentials live") for name in credential_places()),
        *(RefusedPath(name, "reserved for the sandbox itself") for name in RESERVED_TARGETS),
    ]


def homes(facts: HostFacts, path: str) -> list[str]:
    """The homes that ``path`` could belong to: known ones, root's, and the one that its first components spell."""
    found = [facts.home, "/root", *facts.homes]
    below = (parent for parent in HOME_PARENTS if path != parent and within(path, parent))
    found += ("/".join(path.split("/")[: parent.count("/") + 2]) for parent in below)
    # HOME=/ is a container without a home; as a place it would say no more than "/" does.
    return list(dict.fromkeys(home for home in found if home != "/"))
