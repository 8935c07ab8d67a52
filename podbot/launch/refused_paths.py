"""The refusal lists of the mount policy, as data: paths that are never mounted, and never mounted over."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

from podbot.agents.registry import agents
from podbot.frozen import Frozen
from podbot.launch.types import HostFacts


class RefusedPath(Frozen):
    """A refused path and the reason. ``below``: everything below it is refused too.

    A directory that *contains* a refused path is refused too: a mount of /srv would expose /srv/secret.
    """

    path: str
    what: str
    below: bool = True


# Below a home directory: reading these allows impersonating the user, writing them allows running code as the user.
# Those of agents are in podbot.agents.
CREDENTIALS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".password-store",
    ".config/gh", ".config/hub", ".config/glab-cli", ".config/git", ".config/gcloud", ".config/doctl", ".config/op",
    ".config/rclone", ".config/containers", ".config/podbot", ".config/systemd", ".config/autostart",
    ".config/environment.d", ".config/google-chrome", ".config/chromium", ".mozilla", ".thunderbird",
    ".local/share/keyrings", ".local/share/containers", ".local/share/systemd", ".local/bin", ".pki", ".terraform.d",
    ".oci", ".vault-token", ".npmrc", ".pypirc", ".cargo/bin", ".cargo/credentials", ".cargo/credentials.toml",
    ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
)  # fmt: skip

# On the host. Links such as /bin and /var/run are listed too: a resolved path never equals them, except on hosts where
# they are directories.
SYSTEM = (
    "/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/efi", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/var/lib/containers", "/var/lib/docker",
    "/var/lib/systemd", "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman", "/var/spool", "/usr/share",
    "/usr/local/share", "/usr/local/etc", "/usr/local/include", "/usr/include", "/nix", "/snap", "/lost+found",
    "/Library", "/System", "/Applications", "/tmp/.X11-unix",  # noqa: S108 - a display's socket
)  # fmt: skip

# On the host too, but some hosts have projects there: they are mounted if workspace.allowed_roots names them.
# /var is listed by its parts, because an ostree system or a server has data in /var/home, /var/srv, /var/www, /var/tmp.
SYSTEM_UNLESS_NAMED = (
    "/opt", "/usr/games", "/usr/local/games", "/usr/local/opt", "/usr/local/Cellar", "/var/account", "/var/adm",
    "/var/backups", "/var/cache", "/var/crash", "/var/db", "/var/games", "/var/lib", "/var/local", "/var/lock",
    "/var/log", "/var/mail", "/var/opt", "/var/usrlocal", "/var/yp",
)  # fmt: skip

# Inside the sandbox: directories that the engine, podbot's own mounts and the image's programs need unchanged.
RESERVED_TARGETS = (
    "/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/var/lib/containers", "/var/lib/dpkg",
)  # fmt: skip

# Below a home directory.
PROGRAMS = "bin"

# Parents of home directories: every directory one level below counts as a user's home.
HOME_PARENTS = ("/home", "/var/home", "/Users")


@cache
def credential_places() -> tuple[str, ...]:
    """Paths below a home with credentials or settings of programs, including agents."""
    return (*(name for agent in agents().values() for name in agent.refused), *CREDENTIALS)


def within(inner: str, outer: str) -> bool:
    """Whether ``inner`` is ``outer`` or below it, by whole components. Both must be absolute and normal."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def refusal(path: str, places: Iterable[RefusedPath]) -> str | None:
    """Why ``path`` is refused: it equals, contains, or (if ``below``) is inside one of ``places``; None if allowed."""
    for place in places:
        if path == place.path:
            return f"it is {place.what}"
        if within(place.path, path):
            return f"it contains {place.path}, {place.what}"
        if place.below and within(path, place.path):
            return f"it is inside {place.path}, {place.what}"
    return None


def refused_sources(facts: HostFacts, path: str) -> list[RefusedPath]:
    """The paths that refuse ``path`` in any case; ``path`` determines which other homes are relevant."""
    places = [RefusedPath("/", "the whole file system", below=False)]
    for home in homes(facts, path):
        places.append(RefusedPath(home, "a home directory", below=False))
        places += [
            RefusedPath(os.path.join(home, name), "where credentials or settings are") for name in credential_places()
        ]
    places += [RefusedPath(name, "the parent of home directories", below=False) for name in HOME_PARENTS]
    places += [RefusedPath(name, "a system directory") for name in SYSTEM]
    places += [
        RefusedPath(name, "where credentials or settings are")
        for _, given in facts.login_dirs
        for name in dict.fromkeys((given, *(found.source for found in facts.credentials if found.given == given)))
    ]
    places += own_places(facts)
    places += [RefusedPath(name, "the target of a link at a protected path") for name in facts.protected]
    return places


def refused_unless_named(facts: HostFacts, path: str) -> str | None:
    """Why ``path`` is refused unless an entry of ``workspace.allowed_roots`` names it; None if it is not.

    This covers every dot-directory of a home, known or not, because programs keep settings there that run code as the
    user. It also covers ``bin``, which login shells put first in PATH, so a file there replaces any program. An entry
    names the paths below it only if it is inside the refused directory itself, or equals the path: allowing a home or
    a directory of projects does not allow these.
    """
    roots = [root.resolved for root in facts.allowed_roots if root.kind == "directory"]
    places = [RefusedPath(place, "a dot-directory of a home") for place in _dot_directories(facts, path)]
    places += [
        RefusedPath(os.path.join(home, PROGRAMS), "a home's directory of programs") for home in homes(facts, path)
    ]
    places += [RefusedPath(place, "the target of a link at such a path") for place in facts.named_only]
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
        # Only a directory that contains the socket exposes it; one beside it (a socket in /tmp) does not.
        places.append(RefusedPath(facts.engine_socket_dir, "the directory of the engine's socket", below=False))
    return places


def reserved_targets() -> list[RefusedPath]:
    """Paths inside the sandbox, whose user is root with the home /root, at which nothing may be mounted."""
    return [
        RefusedPath("/", "the sandbox's whole file system", below=False),
        RefusedPath("/root", "the agent's home directory", below=False),
        *(RefusedPath(f"/root/{name}", "where the agent's credentials are") for name in credential_places()),
        *(RefusedPath(name, "reserved for the sandbox itself") for name in RESERVED_TARGETS),
    ]


def homes(facts: HostFacts, path: str) -> list[str]:
    """The homes that ``path`` could be in: known ones, root's, and the one that its first components name."""
    found = [facts.home, "/root", *facts.homes]
    below = (parent for parent in HOME_PARENTS if path != parent and within(path, parent))
    found += ("/".join(path.split("/")[: parent.count("/") + 2]) for parent in below)
    # HOME=/ occurs in containers without a home; "/" is refused anyway.
    return list(dict.fromkeys(home for home in found if home != "/"))
