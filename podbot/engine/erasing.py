"""Removes directory trees that a sandbox has written, of any depth and with files of any user of the operator's range.

In a rootless sandbox files can belong to other users of that range: only a process in a user namespace of that range
removes them. ``rm`` descends deeper than Python does, and than the engine's own removal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def erased_by(path: str, environ: Mapping[str, str], uid: int, unshare: Sequence[str]) -> str:
    """Remove ``path``; returns why something of it may be left, empty for no reason. ``unshare``: see EngineWords."""
    return ended_with(removal(path, uid, unshare), environ)


def removal(path: str, uid: int, unshare: Sequence[str]) -> list[str]:
    """The argv that removes ``path`` for user ``uid``."""
    words = ["rm", "-rf", "--", path]
    return words if uid == 0 else [*unshare, *words]


def ended_with(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Run a command; returns the last line of its stderr, or why it could not be started; empty for neither."""
    import subprocess

    try:
        done = subprocess.run(
            words, env=dict(environ), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError as exc:
        return f"{words[0]}: {exc.strerror}"
    lines = done.stderr.strip().splitlines()
    return lines[-1][:300] if lines else ""
