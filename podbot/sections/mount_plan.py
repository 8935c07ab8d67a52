"""Decides what of the host is copied into a workspace. It looks at nothing itself: ``look`` answers its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from podbot.sections.host_mounts import (
    PATH_BYTES,
    SEGMENTS,
    HostEntry,
    HostMount,
    HostMountPreview,
    HostTree,
    MountPlan,
    MountQuestion,
    PlannedFile,
    more_text,
)
from podbot.tools.constraints import Whole
from podbot.tools.path_patterns import PathPattern
from podbot.tools.paths import VfsPath, invalid, invalid_as, logical_path, parse_path, path_text, shown_path

PREVIEWED = 20  # names in a preview, and notes
_PATH_CHARS = 4096

_LINKS = {
    "inside": "a symbolic link, and follow_symlinks is false",
    "outside": "a symbolic link that leads out of the allowed root",
    "nowhere": "a symbolic link that leads nowhere",
    "up": "a symbolic link to a directory that it is in",
}
_SKIPPED = {
    "other": "a FIFO, a socket or a device",
    "unreadable": "a directory that cannot be read",
    "denied": "a file that may not be read",
    "deep": "a directory that lies too deep",
}

Look = Callable[[MountQuestion], HostTree | None]
"""The answer to a question; None if nothing is there."""


def plan_mounts(mounts: Sequence[HostMount], allowed_roots: Sequence[str], look: Look) -> MountPlan:
    """What to copy for ``mounts``.

    ``allowed_roots``: absolute paths without links, below which host paths lie; tried in turn. Raises
    ToolValidationError for a mount that is not valid, is missing, lies in no root, is larger than its budget, or is put
    where another one is.
    """
    for root in allowed_roots:
        if not root.startswith("/"):
            raise invalid("allowed_host_roots", root, "a root is an absolute path")
    targets = _Targets()
    previews = []
    for mount in mounts:
        planned = _Planned(mount, allowed_roots, look)
        targets.add(mount, planned)
        previews.append(planned.preview())
    return MountPlan(tuple(targets.files), tuple(sorted(targets.directories)), tuple(previews))


def places(host_path: object, allowed_roots: Sequence[str]) -> Iterator[tuple[str, VfsPath]]:
    """Each root below which ``host_path`` may lie, and its path there. Raises ToolValidationError."""
    if not isinstance(host_path, str) or not host_path or "\0" in host_path or len(host_path) > _PATH_CHARS:
        raise invalid("host_path", host_path, f"it is a path of at most {_PATH_CHARS} characters without NUL")
    words = _words(host_path)
    if ".." in words:
        raise invalid("host_path", host_path, "it has a segment ..")
    if not allowed_roots:
        hint = "Configure allowed_host_roots."
        raise invalid("host_path", host_path, "no allowed roots are configured", hint)
    for root in allowed_roots:
        top = _words(root)
        if not host_path.startswith("/"):
            yield root, words
        elif words[: len(top)] == top:
            yield root, words[len(top) :]


class _Planned:
    """One mount."""

    def __init__(self, mount: HostMount, allowed_roots: Sequence[str], look: Look) -> None:
        self._mount = mount
        self._include = _patterns(mount.include_glob, "include_glob")
        self._exclude = _patterns(mount.exclude_glob, "exclude_glob")
        self._budget: int | None = None
        if mount.max_bytes is not None:
            self._budget = Whole(0).check("max_bytes", mount.max_bytes)
        self.files: list[PlannedFile] = []
        self.directories: list[VfsPath] = []
        self._notes: list[str] = []
        self._tree, asked = self._found(allowed_roots, look)
        self.target = self._target(asked)
        for entry in self._tree.entries:
            self._take(entry)
        self.size = sum(file.size for file in self.files)
        self._check_budget()

    def preview(self) -> HostMountPreview:
        """The mount as a prompt shows it."""
        skip = len(self.target)
        is_directory = self._tree.kind == "directory"
        names = {
            file.target[skip] + ("/" if len(file.target) > skip + 1 else "") for file in self.files if is_directory
        }
        names |= {f"{path[skip]}/" for path in self.directories if len(path) > skip}
        entries = sorted(names) if is_directory else [self.target[-1]]
        notes = self._notes[:PREVIEWED]
        if len(self._notes) > PREVIEWED:
            notes.append(more_text(len(self._notes) - PREVIEWED))
        return HostMountPreview(
            host_path=self._mount.host_path,
            resolved_host="/".join((self._tree.root.rstrip("/"), *self._tree.source)),
            mount_path=path_text(self.target),
            is_directory=is_directory,
            entries=tuple(entries[:PREVIEWED]),
            more=max(0, len(entries) - PREVIEWED),
            files=len(self.files),
            bytes_copied=self.size,
            notes=tuple(notes),
        )

    def _found(self, allowed_roots: Sequence[str], look: Look) -> tuple[HostTree, VfsPath]:
        host_path = self._mount.host_path
        outside = tried = False
        for root, path in places(host_path, allowed_roots):
            tried = True
            tree = look(MountQuestion(root, path, self._mount.follow_symlinks, self._is_excluded))
            if tree is not None and tree.kind == "other":
                raise invalid("host_path", host_path, "it is not a regular file and not a directory")
            if tree is not None and tree.kind != "outside":
                return tree, path
            outside = outside or tree is not None
        if outside:
            raise invalid("host_path", host_path, "a symbolic link in it leads out of the allowed root")
        reason = "it does not exist there, or may not be read" if tried else "it lies in none of them"
        raise invalid("host_path", host_path, f"the allowed roots are {', '.join(allowed_roots)}: {reason}")

    def _target(self, asked: VfsPath) -> VfsPath:
        given = self._mount.mount_path
        if isinstance(given, str):
            target = parse_path(given, "mount_path")
        else:
            words = asked if given is None else given
            target = parse_path(logical_path([str(word) for word in words]), "mount_path")
        if not target and self._tree.kind == "file":
            raise invalid("mount_path", given, "it is the workspace itself, and the mount is a file")
        return target

    def _take(self, entry: HostEntry) -> None:
        path = entry.path or entry.source[-1:]
        if self._is_excluded(path):
            return
        if entry.kind == "directory":
            if not self._include and _fits(self.target + entry.path):
                self.directories.append(self.target + entry.path)
            return
        if entry.kind in ("file", "link", "other", "denied") and self._include and not self._is_included(path):
            return
        if entry.kind == "unreadable" and not entry.path:
            raise invalid("host_path", self._mount.host_path, "its directory cannot be read")
        reason = self._reason_to_skip(entry)
        if reason:
            self._notes.append(f"{shown_path(path_text(entry.path))}: {reason}")
        else:
            root, target, mode = self._tree.root, self.target + entry.path, entry.mode & 0o777
            times = entry.mtime_ns, entry.ctime_ns
            self.files.append(PlannedFile(root, entry.source, target, entry.size, mode, *times))

    def _reason_to_skip(self, entry: HostEntry) -> str:
        if entry.kind == "link":
            return _LINKS[entry.leads or "nowhere"]
        if entry.kind != "file":
            return _SKIPPED[entry.kind]
        if not _is_text(entry.path):
            return "its name is not UTF-8"
        limit = f"its path has more than {SEGMENTS} segments or {PATH_BYTES:,} bytes"
        return "" if _fits(self.target + entry.path) else limit

    def _is_excluded(self, path: VfsPath) -> bool:
        """Whether the path, or a directory that it is in, is excluded."""
        ends = range(1, len(path) + 1) if self._exclude else ()
        return any(pattern.matches_anywhere(path[:end]) for end in ends for pattern in self._exclude)

    def _is_included(self, path: VfsPath) -> bool:
        return any(pattern.matches_anywhere(path) for pattern in self._include)

    def _check_budget(self) -> None:
        most = self._budget
        if most is not None and self.size > most:
            where = f"the files of {self._mount.host_path!a}"
            hint = "Exclude some, include fewer, or raise max_bytes."
            raise invalid_as("max_bytes", str(most), f"{where} have {self.size} bytes", hint)


class _Targets:
    """The files and directories of all mounts, each in one place."""

    def __init__(self) -> None:
        self.files: list[PlannedFile] = []
        self.directories: set[VfsPath] = set()
        self._above: set[VfsPath] = set()  # every directory that a file or a directory is in
        self._taken: dict[VfsPath, str] = {}

    def add(self, mount: HostMount, planned: _Planned) -> None:
        """Raises ToolValidationError when a file is put where another file or a directory of another mount is."""
        for file in planned.files:
            if file.target in self._taken or file.target in self._above or file.target in self.directories:
                raise self._overlap(mount, file.target)
            self._check_above(mount, file.target)
        for path in planned.directories:
            if path in self._taken:
                raise self._overlap(mount, path)
            self._check_above(mount, path)
        self.files += planned.files
        self.directories.update(planned.directories)
        self._taken.update((file.target, mount.host_path) for file in planned.files)
        for path in (*(file.target for file in planned.files), *planned.directories):
            self._above.update(path[:end] for end in range(1, len(path)))

    def _check_above(self, mount: HostMount, target: VfsPath) -> None:
        for end in range(1, len(target)):
            if target[:end] in self._taken:
                raise self._overlap(mount, target[:end])

    def _overlap(self, mount: HostMount, target: VfsPath) -> Exception:
        other = self._taken.get(target)
        where = shown_path(path_text(target))
        reason = f"{where} is a file of the mount {other!a}" if other else f"{where} is a directory of another mount"
        hint = "Give one of the mounts another mount_path, or exclude the file."
        return invalid("mount_path", mount.mount_path or mount.host_path, reason, hint)


def _patterns(texts: object, field: str) -> tuple[PathPattern, ...]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise invalid(field, texts, "it is a tuple of patterns", 'Write ("*.py",), with a comma behind each.')
    return tuple(PathPattern(text, field) for text in texts)


def _words(path: str) -> VfsPath:
    return tuple(word for word in path.split("/") if word not in ("", "."))


def _fits(path: VfsPath) -> bool:
    return len(path) <= SEGMENTS and _is_text(path) and len(path_text(path).encode()) <= PATH_BYTES


def _is_text(path: VfsPath) -> bool:
    try:
        path_text(path).encode()
    except UnicodeEncodeError:
        return False
    return True
