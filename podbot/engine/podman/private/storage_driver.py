"""The storage driver of an ordinary user's Podman store, which podbot's service and the user's own podman share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from podbot.atomic import replace_file
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import FilesystemError
from podbot.places import make_dirs, xdg_dir

NATIVE_OVERLAY = (5, 13)  # the first kernel on which an ordinary user may mount overlay
FINDS_FUSE = (4, 1)  # the first Podman that finds fuse-overlayfs for a storage.conf that does not name it
FINDS_DRIVER = (4, 6)  # the first Podman that uses the driver of the store that is there (containers/storage 1.47)
STORAGE_CONF = """\
# podbot wrote this file, because it made your Podman store with this driver.
[storage]
driver = "{driver}"
"""


def driver_to_request(facts: PodmanFacts, *, chosen: bool) -> str:
    """The storage driver to request, or empty if the engine's own choice is right.

    ``chosen``: see :func:`storage_is_chosen`. Without a choice, rootless Podman 4.3 uses vfs, which copies every layer
    completely (setup takes 112 s instead of 65 s), although overlay works.
    """
    overlay = facts.kernel >= NATIVE_OVERLAY or (facts.dev_fuse and "fuse-overlayfs" in facts.programs)
    return "overlay" if facts.rootless and overlay and not chosen else ""


def storage_is_chosen(environ: Mapping[str, str], root: str = "/") -> bool:
    """A variable, a storage.conf or a store with another driver than overlay decides over an ordinary user's driver."""
    if environ.get("STORAGE_DRIVER") or environ.get("CONTAINERS_STORAGE_CONF"):
        return True
    places = (
        os.path.join(root, "usr/share/containers/storage.conf"),
        os.path.join(root, "etc/containers/storage.conf"),
        _storage_conf(environ),
    )
    return any(os.path.exists(place) for place in places) or bool(_drivers(environ) - {"overlay"})


def write_storage_conf(environ: Mapping[str, str], facts: PodmanFacts, version: tuple[int, ...], driver: str) -> str:
    """Write the user's storage.conf with the driver of the store, and return its path; empty if it is not needed.

    Where Podman is older than ``FINDS_DRIVER``, the user's own podman prints this error with each command without that
    file (measured with 4.3.1): `User-selected graph driver "vfs" overwritten by graph driver "overlay" from database`.
    It is not written where one exists, where the store has another driver, or where the driver needs fuse-overlayfs
    and Podman would not find it.
    ``version``: Podman's major and minor; empty if it is not known.
    """
    oldest = (0,) if facts.kernel >= NATIVE_OVERLAY else FINDS_FUSE
    if not (version and oldest <= version < FINDS_DRIVER and _drivers(environ) == {driver}):
        return ""
    path = _storage_conf(environ)
    temporary = f"{path}.{os.getpid()}"
    try:
        make_dirs(os.path.dirname(path))
        replace_file(temporary, STORAGE_CONF.format(driver=driver).encode(), operation="write", mode=0o644)
        os.link(temporary, path)  # never a part of the file, and never in place of another one
    except (OSError, FilesystemError):
        return ""
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    return path


def _drivers(environ: Mapping[str, str]) -> set[str]:
    """The drivers for which the user's store has images."""
    store = os.path.join(xdg_dir(environ, "XDG_DATA_HOME", ".local/share"), "containers", "storage")
    try:
        names = os.listdir(store)
    except OSError:
        return set()
    return {name.removesuffix("-images") for name in names if name.endswith("-images")}


def _storage_conf(environ: Mapping[str, str]) -> str:
    return os.path.join(xdg_dir(environ, "XDG_CONFIG_HOME", ".config"), "containers", "storage.conf")
