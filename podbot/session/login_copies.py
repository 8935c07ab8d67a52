"""Which copies of kept logins belong to sessions that have ended, and their removal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

from podbot.agents.registry import known
from podbot.credentials.host_login import HostLogin
from podbot.credentials.login_store import LoginStore
from podbot.errors import FilesystemError
from podbot.launch.own_file import KEPT, stamped
from podbot.launch.resources.login import host_store, own_login, store_of
from podbot.places import state_dir
from podbot.session.directory import GONE, remove_directory
from podbot.session.tree_removal import remove_tree


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
    for name in store.names():
        if name != but and not _has_session(store.root, runtime, name):
            store.forget(name, even_in_use=False)
    remove_left(store)


def sweep_host(stores: str, kind: str, runtime: str, *, but: str) -> None:
    """Remove the copies of the host's login in ``stores`` of sessions that ended without that, see :func:`sweep`."""
    try:
        names = os.listdir(stores)
    except OSError:
        return
    for name in names:
        root = os.path.join(stores, name)
        # Another podbot may be removing it, and its copy must not prevent the start of another session.
        with contextlib.suppress(FilesystemError, OSError):
            if name.startswith(GONE):
                remove_tree(root)
            elif name != but and not _has_session(stores, runtime, name):
                copy = host_copy(root, kind)
                if copy.is_left():
                    end_host_copy(copy)


def _has_session(logins: str, runtime: str, name: str) -> bool:
    """Whether a copy's session has a directory, or files of a kept container. ``logins``: one of an agent's."""
    kept = os.path.join(os.path.dirname(os.path.dirname(logins)), KEPT, name)
    return os.path.lexists(os.path.join(runtime, name.rpartition("-")[0])) or os.path.lexists(kept)


def host_copy(root: str, kind: str, refused: Callable[[str, str], object] | None = None) -> HostLogin:
    """The copy of the host's login in ``root``. Raises ValueError for an agent whose login podbot does not keep."""
    spec = own_login(kind)
    if spec is None:
        raise ValueError(kind)
    return HostLogin(root, spec, os.path.basename(root), refused=refused or (lambda _name, _reason: None))


def end_host_copy(copy: HostLogin) -> None:
    """Remove all of it: the login at once, then what the agent may have made beside it. Raises FilesystemError."""
    copy.remove()
    remove_directory(copy.root)


def forget_copies(environ: Mapping[str, str], session: str, created: str) -> None:
    """Remove the copies of logins of a container that is gone, after taking what its agent renewed."""
    state, name = os.path.realpath(state_dir(environ)), stamped(session, created)
    for kind in known():
        root = store_of(state, kind)
        if own_login(kind) is not None and os.path.isdir(os.path.join(root, "sessions", name)):
            with contextlib.suppress(FilesystemError):
                forget(login_store(root, kind), name)
    for copy in _host_copies(state, name):
        with contextlib.suppress(FilesystemError):
            end_host_copy(copy)


def withdraw_copies(environ: Mapping[str, str], session: str, created: str) -> None:
    """Take the host's login out of a session that is stopped and kept; a start puts it in again."""
    for copy in _host_copies(os.path.realpath(state_dir(environ)), stamped(session, created)):
        with contextlib.suppress(FilesystemError):
            copy.withdraw()


def _host_copies(state: str, name: str) -> Iterator[HostLogin]:
    for kind in known():
        root = host_store(state, kind, name)
        if own_login(kind) is not None and os.path.isdir(root):
            yield host_copy(root, kind)
