"""The logins that podbot keeps, and the copies of them that sessions use and renew (ADR 0042).

``<state>/logins/<kind>/login`` is the login, 0600 in directories of mode 0700. Each session has a directory of its own,
``sessions/<name>/``: ``login/`` in it is mounted, with the file that the agent reads and writes; ``state.json`` is
podbot's. The agent controls everything in ``login/``: podbot opens only the one file there, without following a link or
waiting, reads a limited number of bytes, and takes only what ``own_login`` accepts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator

from podbot.agents.definition import OwnLogin
from podbot.atomic import file_errors, replace_at, replace_file, sweep_at
from podbot.children import give_back, withhold
from podbot.credentials.login_access import (
    DIRECTORY,
    FLAGS,
    Mark,
    digest,
    is_directory_held,
    is_foreign,
    mark,
    opened,
    read_file,
)
from podbot.credentials.own_login import LARGEST, Refused, accepted, renewed
from podbot.errors import PathError
from podbot.frozen import Frozen
from podbot.locks import is_held, wait_for_lock
from podbot.places import private_dir

NAME = "login"
SESSIONS = "sessions"
FOREIGN = "it belongs to another user of this host, as it does with a rootful engine that is not root's own"
_STATE = "state.json"
_LOCK = "lock"
_ASIDE = ".gone-"
_NEW = "new-"  # begins the name of a directory in which an agent's flow makes a login
_IN_USE = "in-use"  # locked by the podbot that uses a session's copy


class _State(Frozen):
    """Digests of a session's file and of the kept login when they last agreed."""

    file: str = ""
    login: str = ""


class _Copy(Frozen):
    name: str
    handle: int  # of the mounted directory
    state: _State
    data: bytes | None  # None: there is no file that can be read
    foreign: bool  # whether it cannot be read because it is another user's
    changed: int  # nanoseconds since the epoch, by the kernel's clock, which the agent cannot set


class LoginStore:
    """The kept login of one agent, in the directory ``root``. For one thread; processes exclude each other by a lock.

    ``refused``: called with a session's name and the reason why its file is not taken, once for each content.
    """

    def __init__(
        self, root: str, spec: OwnLogin, *, refused: Callable[[str, str], object] = lambda _name, _reason: None
    ) -> None:
        self.root, self._spec, self._refused = root, spec, refused
        self._file = os.path.basename(spec.path)
        self._told: set[tuple[str, str]] = set()
        self._marks: dict[str, Mark | None] = {}

    @property
    def path(self) -> str:
        """The login's file."""
        return os.path.join(self.root, NAME)

    def saved_at(self) -> float | None:
        """When the login was made or renewed last, in seconds since the epoch; None if there is none."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return None
        return found.st_mtime if stat.S_ISREG(found.st_mode) else None

    def save(self, found: bytes) -> None:
        """Keep the login in a file that the agent's flow wrote, and hand it out to all sessions.

        Raises Refused and FilesystemError subclasses.
        """
        data = accepted(self._spec, found)
        with self._locked():
            self._save(data)

    def remove(self) -> bool:
        """Remove the login, and the copies of all sessions; False if there was none. Raises FilesystemError."""
        with self._locked():
            return self._remove()

    # --- the copies of sessions ---

    def hand_out(self, name: str) -> bool:
        """Make the directory of the session ``name``, with the login. An existing one stays, and is brought up to date.

        False if there is no login any more. Raises FilesystemError subclasses.
        """
        with self._locked():
            data = self._login()
            directory = private_dir(os.path.join(private_dir(os.path.join(self._sessions(), name)), NAME))
            if data is None:
                return False
            with file_errors(directory, "hand out the login"), opened(directory) as handle:
                if read_file(handle, self._file) is None and not is_foreign(handle, self._file):
                    self._push(name, handle, data)
            self._synchronize(data)
            return True

    def synchronize(self) -> bool:
        """Take renewed tokens from the sessions' files, and hand them out to the others; whether any were taken.

        Costs one ``lstat`` for each file if none has changed; what a failed call left is taken by the next one. Raises
        FilesystemError subclasses.
        """
        marks = self._marks_now()  # before the files are read: a change after that is seen by the next call
        if marks == self._marks:
            return False
        with self._locked():
            data = self._login()
            taken = data is not None and self._synchronize(data)
        self._marks = marks
        return taken

    def forget(self, name: str, *, even_in_use: bool = True) -> None:
        """Set the directory of the session ``name`` aside, which has ended. What its agent renewed is taken first.

        ``even_in_use``: also if a podbot holds it, which is the caller's own then. Its login is removed here. The
        caller removes the rest, in which the agent may have made anything: see ``left``.
        """
        with self._locked():
            if not even_in_use and self.is_in_use(name):
                return
            data = self._login()
            if data is not None:
                self._synchronize(data)
            self._set_aside(os.path.join(self._sessions(), name), os.path.join(NAME, self._file))

    @contextlib.contextmanager
    def in_use(self, name: str) -> Iterator[None]:
        """Hold the directory of the session ``name``, which is made if missing. Raises FilesystemError subclasses."""
        with self._locked():  # others see it either missing or held
            path = os.path.join(private_dir(os.path.join(self._sessions(), name)), _IN_USE)
            with file_errors(path, "lock"):
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            wait_for_lock(handle, path)
        withhold(handle)
        try:
            yield
        finally:
            give_back(handle)
            os.close(handle)

    def is_in_use(self, name: str) -> bool:
        """Whether a podbot holds the directory of the session ``name``, whatever its runtime directory is."""
        return is_held(os.path.join(self._sessions(), name, _IN_USE))

    @contextlib.contextmanager
    def new_directory(self, path: str) -> Iterator[None]:
        """Hold a new directory for an agent's flow; it is set aside at the end. Raises FilesystemError subclasses."""
        with self._locked(), file_errors(path, "prepare the login"):
            handle = os.open(private_dir(path), DIRECTORY)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # by whoever made it, so nobody else has it
        try:
            yield
        finally:
            self._set_aside(path, self._file)
            os.close(handle)

    def left(self) -> list[str]:
        """The paths of directories that were set aside, and that nothing uses any more.

        Directories of killed flows are set aside first. Raises FilesystemError subclasses.
        """
        with self._locked(), contextlib.suppress(OSError):
            for name in os.listdir(self.root):
                path = os.path.join(self.root, name)
                if name.startswith(_NEW) and not is_directory_held(path):
                    self._set_aside(path, self._file)
        try:
            return sorted(os.path.join(self.root, name) for name in os.listdir(self.root) if name.startswith(_ASIDE))
        except OSError:
            return []

    def _set_aside(self, path: str, login: str) -> None:
        """``login``: the login's path in the directory ``path``."""
        inner, file = os.path.split(login)
        with contextlib.suppress(OSError), opened(os.path.join(path, inner)) as handle:
            os.unlink(file, dir_fd=handle)
        with contextlib.suppress(OSError):
            os.rename(path, os.path.join(self.root, f"{_ASIDE}{os.path.basename(path)}-{os.urandom(4).hex()}"))

    def names(self) -> list[str]:
        """The sessions that have a directory."""
        try:
            return sorted(os.listdir(os.path.join(self.root, SESSIONS)))
        except OSError:
            return []

    # --- with the lock ---

    def _save(self, data: bytes) -> None:
        with self._all_copies() as copies:
            # What the copies contain belongs to an earlier login, also after a `podbot logout` that their agents
            # outlived. It is noted as seen before there is a new login, of which it would be taken for a renewal.
            for copy in copies:
                self._note(copy.name, _State(digest(copy.data) if copy.data is not None else ""))
            replace_file(self.path, data, operation="keep the login")
            for copy in copies:
                with contextlib.suppress(OSError):
                    self._push(copy.name, copy.handle, data)

    def _remove(self) -> bool:
        with file_errors(self.path, "remove the login"):
            with self._all_copies() as copies:
                for copy in copies:
                    with contextlib.suppress(OSError):
                        os.unlink(self._file, dir_fd=copy.handle)
            try:
                os.unlink(self.path)
            except FileNotFoundError:
                return False
            return True

    def _synchronize(self, login: bytes) -> bool:
        before = login
        with self._all_copies() as copies:
            states = {copy.name: copy.state for copy in copies}
            another = set()
            # In the order of their last change: of two renewals of one token, the later one is in force.
            for copy in sorted(copies, key=lambda copy: copy.changed):
                if copy.foreign:
                    self._tell(copy, FOREIGN)
                if copy.data is None or digest(copy.data) == copy.state.file:
                    continue
                try:
                    login = renewed(self._spec, login, copy.data, base=before)
                except Refused as exc:
                    self._tell(copy, exc.reason)
                    if exc.another:
                        another.add(copy.name)
                    continue
                states[copy.name] = _State(digest(copy.data), digest(login))
                self._note(copy.name, states[copy.name])
            if login != before:
                replace_file(self.path, login, operation="keep the renewed login")
            for copy in copies:
                if copy.data is not None and copy.name not in another and states[copy.name].login != digest(login):
                    with contextlib.suppress(OSError):
                        self._push(copy.name, copy.handle, login)
        return login != before

    def _push(self, name: str, handle: int, data: bytes) -> None:
        """Replace the session's file by a rename, so that nothing the agent put there is followed. Raises OSError."""
        sweep_at(handle, self._file)
        try:
            replace_at(handle, self._file, data, mode=0o600)
        except IsADirectoryError:  # the agent's, which would end each later start
            os.rename(self._file, f"{self._file}.{os.urandom(4).hex()}", src_dir_fd=handle, dst_dir_fd=handle)
            replace_at(handle, self._file, data, mode=0o600)
        self._note(name, _State(digest(data), digest(data)))

    @contextlib.contextmanager
    def _all_copies(self) -> Iterator[list[_Copy]]:
        """Every session's copy, with a descriptor of its directory that is open while the block runs."""
        with contextlib.ExitStack() as stack:
            copies = []
            for copy in self._copies():
                stack.callback(os.close, copy.handle)
                copies.append(copy)
            yield copies

    def _copies(self) -> Iterator[_Copy]:
        for name in self.names():
            directory = os.path.join(self._sessions(), name, NAME)
            try:
                handle = os.open(directory, DIRECTORY)
            except OSError:
                continue
            found = read_file(handle, self._file)
            data, changed = found if found is not None else (None, 0)
            foreign = data is None and is_foreign(handle, self._file)
            yield _Copy(name, handle, self._state(name), data, foreign, changed)

    def _login(self) -> bytes | None:
        try:
            with open(os.open(self.path, FLAGS), "rb") as file:
                return file.read(LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise PathError(path=self.path, operation="read", reason=exc.strerror or str(exc)) from exc

    def _state(self, name: str) -> _State:
        try:
            with open(os.open(os.path.join(self._sessions(), name, _STATE), FLAGS), "rb") as file:
                record = json.loads(file.read(4096))
            return _State(str(record["file"]), str(record["login"]))
        except (OSError, ValueError, TypeError, KeyError):
            return _State()

    def _note(self, name: str, state: _State) -> None:
        path = os.path.join(self._sessions(), name, _STATE)
        replace_file(path, json.dumps(vars(state)).encode(), operation="note the state of a login")

    def _tell(self, copy: _Copy, reason: str) -> None:
        told = (copy.name, digest(copy.data or b""))
        if told not in self._told:
            self._told.add(told)
            self._refused(copy.name, reason)

    def _marks_now(self) -> dict[str, Mark | None]:
        """By path, what tells whether the login or a session's file has changed."""
        paths = [self.path, *(os.path.join(self._sessions(), name, NAME, self._file) for name in self.names())]
        return {path: mark(path) for path in paths}

    def _sessions(self) -> str:
        return os.path.join(self.root, SESSIONS)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Held for milliseconds. Raises FilesystemError subclasses."""
        private_dir(os.path.dirname(self.root))
        private_dir(self.root)
        private_dir(self._sessions())
        path = os.path.join(self.root, _LOCK)
        with file_errors(path, "lock"):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            wait_for_lock(handle, path)
            yield
        finally:
            os.close(handle)
