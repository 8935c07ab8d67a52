"""The sandbox's git configuration: the operator's identity, and trust in the mounted workspace.

A read-only file that GIT_CONFIG_SYSTEM names, not ``git config --global`` inside: an exec costs 95 ms
and an upload into a created container 85 ms (measured), a file mount nothing; the repository's and the
agent's own settings go before it; and it holds for every user and shell inside. The image's own
system file is included. The workspace is named safe because its owner on the host is rarely the
sandbox's user, and git refuses such a repository.
"""

from __future__ import annotations

from collections.abc import Mapping

from podbot.launch.own_file import own_file_mount
from podbot.launch.types import Mount

TARGET = "/run/podbot/gitconfig"
ENV = {"GIT_CONFIG_SYSTEM": TARGET}


def gitconfig(identity: Mapping[str, str], *workspace: str) -> str:
    """The file's text. ``identity``: ``user.name`` and ``user.email`` as far as known. ``workspace``: its places."""
    lines = ["[include]", "\tpath = /etc/gitconfig"]
    values = {key.partition(".")[2]: value for key, value in identity.items()}
    if values:
        lines += ["[user]", *(f"\t{key} = {_quoted(value)}" for key, value in sorted(values.items()))]
    lines += ["[safe]", *(f"\tdirectory = {_quoted(place)}" for place in workspace)]
    return "\n".join([*lines, ""])


def gitconfig_mount(text: str, state_dir: str) -> Mount:
    """Where the text lies and where it goes."""
    return own_file_mount(text, state_dir, "gitconfig", TARGET)


def _quoted(value: str) -> str:
    """A value as git reads it back: backslash, quote, newline and tab escaped, the rest as it is."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escapes.get(char, char) for char in value if char in escapes or char >= " ") + '"'
