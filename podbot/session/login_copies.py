"""Which copies of kept logins belong to sessions that have ended, and their removal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

from podbot.agents.registry import known
from podbot.credentials.login_store import LoginStore
from podbot.engine.port import ContainerInfo
from podbot.errors import FilesystemError
from podbot.launch.labels import LABEL
from podbot.launch.own_file import KEPT, stamped
from podbot.launch.resources.login import own_login, store_of
from podbot.places import state_dir
from podbot.session.trees import remove_tree


def login_store(root: str, kind: str, refused: Callable[[str, str], object] | None = None) -> LoginStore:
    """The store of one agent's login. Raises ValueError for an agent whose login podbot does not keep."""
    spec = own_login(kind)
    if spec is None:
        raise ValueError(kind)
    return LoginStore(root, spec, refused=refused or (lambda _name, _reason: None))


def forget(store: LoginStore, name: str) -> None:
    """Remove the copy of the session ``name``, after taking what it renewed. Raises FilesystemError subclasses."""
    store.forget(name)
    remove_left(store)
    store.settle()


def remove_left(store: LoginStore) -> None:
    """Remove what sessions and flows left in the store, also what a killed podbot did not remove.

    Raises FilesystemError subclasses.
    """
    for path in store.left():
        remove_tree(path)


def sweep(store: LoginStore, runtime: str, *, but: str = "") -> None:
    """Remove the copies of sessions that ended without removing them, after taking what they renewed.

    A session has ended if no podbot holds its copy, and it has neither a directory in ``runtime`` nor files of a kept
    container: the podbot of a live session can have another runtime directory. Raises FilesystemError subclasses.
    """
    kept = os.path.join(os.path.dirname(os.path.dirname(store.root)), KEPT)
    for name in store.names():
        session = name.rpartition("-")[0]
        there = os.path.lexists(os.path.join(runtime, session)) or os.path.lexists(os.path.join(kept, name))
        if name != but and not there and not store.is_in_use(name):
            store.forget(name)
    remove_left(store)


def forget_copies(environ: Mapping[str, str], container: ContainerInfo) -> None:
    """Remove the copies of logins of a container that is gone, after taking what its agent renewed."""
    for store, name in _copies_of(environ, container):
        with contextlib.suppress(FilesystemError):
            forget(store, name)


def withdraw_copies(environ: Mapping[str, str], container: ContainerInfo) -> None:
    """Take the logins out of the copies of a container that was stopped and is kept; a start puts them in again."""
    for store, name in _copies_of(environ, container):
        with contextlib.suppress(FilesystemError):
            store.withdraw(name)


def _copies_of(environ: Mapping[str, str], container: ContainerInfo) -> Iterator[tuple[LoginStore, str]]:
    state = os.path.realpath(state_dir(environ))
    name = stamped(container.name, container.labels.get(f"{LABEL}.created", ""))
    for kind in known():
        for of_host in (False, True):
            root = store_of(state, kind, of_host=of_host)
            if own_login(kind) is not None and os.path.isdir(os.path.join(root, "sessions", name)):
                yield login_store(root, kind), name
