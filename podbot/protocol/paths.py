"""Path truth: which directory of the client's is the same directory inside the sandbox. Lexical only."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 4096  # characters of a path: Linux takes no longer one, and each name in it costs some 60 bytes


@dataclass(frozen=True, slots=True)
class PathScope:
    """``inside``: where the workspace is in the sandbox; ``outside``: where it is on the host, empty for a clone.

    ``others``: further places in the sandbox where a session may work: the workspace under the name that a link
    gives it, extra mounts. All absolute.
    """

    inside: str
    outside: str
    others: tuple[str, ...] = ()

    def holds(self, path: str) -> bool:
        """Whether ``path``, absolute and taken by its spelling only, lies in one of the places."""
        words = _words(path)
        return words is not None and any(
            words[: len(place)] == place for place in map(_words, (self.inside, *self.others)) if place is not None
        )


def _words(path: str) -> list[str] | None:
    """The names on the way to ``path`` with "." and ".." resolved; None when it is not absolute, or too long."""
    if not path.startswith("/") or len(path) > LONGEST or "\0" in path:
        return None
    words: list[str] = []
    for word in path.split("/"):
        if word == "..":
            del words[-1:]
        elif word not in ("", "."):
            words.append(word)
    return words
