"""Which directories of the client are the same directory inside the sandbox. Compares paths as text only."""

from __future__ import annotations

from podbot.frozen import Frozen

LONGEST = 4096  # characters: Linux accepts no longer path, and each name in it costs about 60 bytes


class PathScope(Frozen):
    """``inside``: the workspace's path in the sandbox; ``outside``: its path on the host, empty for a clone.

    ``others``: further directories in the sandbox in which a session may work: the link to the workspace, and extra
    mounts. All are absolute.
    """

    inside: str
    outside: str
    others: tuple[str, ...] = ()

    def holds(self, path: str) -> bool:
        """Whether the absolute ``path``, compared as text, is in one of the directories."""
        words = _words(path)
        return words is not None and any(
            words[: len(place)] == place for place in map(_words, (self.inside, *self.others)) if place is not None
        )


def _words(path: str) -> list[str] | None:
    """The components of ``path`` with "." and ".." resolved; None when it is not absolute, or too long."""
    if not path.startswith("/") or len(path) > LONGEST or "\0" in path:
        return None
    words: list[str] = []
    for word in path.split("/"):
        if word == "..":
            del words[-1:]
        elif word not in ("", "."):
            words.append(word)
    return words
