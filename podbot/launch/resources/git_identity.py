"""The sandbox's git configuration: the operator's identity, and trust in the mounted workspace.

A read-only file that GIT_CONFIG_SYSTEM names, not ``git config --global`` inside: an exec costs 95 ms
and an upload into a created container 85 ms (measured), a file mount nothing; the repository's and the
agent's own settings go before it; and it holds for every user and shell inside. The image's own
system file is included. The workspace is named safe because its owner on the host is rarely the
sandbox's user, and git refuses such a repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from podbot.agents.types import GITCONFIG
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, OwnFile

TARGET = GITCONFIG
ENV = {"GIT_CONFIG_SYSTEM": TARGET}
_NEEDED = (("user.name", "NAME", '"Your Name"'), ("user.email", "EMAIL", "you@example.org"))


@dataclass(frozen=True)
class GitIdentityPlan:
    """``identity``: user.name, user.email as far as known."""

    identity: Mapping[str, str]

    def described(self) -> dict[str, str]:
        """As plain values."""
        return dict(self.identity)


def plan(context: Context) -> Part:
    """The file, and what is missing for a commit."""
    identity = _identity(context.facts)
    variables = context.command.env.keys() if context.command is not None else ()
    return Part(
        GitIdentityPlan(identity),
        files=(OwnFile(TARGET, gitconfig(identity, *context.workspace.places)),),
        env=ENV,
        notes=identity_note(identity, {*context.config.sandbox.env, *variables}),
    )


def _identity(facts: HostFacts) -> Mapping[str, str]:
    found = {"user.name": facts.git_name, "user.email": facts.git_email}
    return {key: value for key, value in found.items() if value}


def gitconfig(identity: Mapping[str, str], *workspace: str) -> str:
    """The file's text. ``identity``: ``user.name`` and ``user.email`` as far as known. ``workspace``: its places."""
    lines = ["[include]", "\tpath = /etc/gitconfig"]
    values = {key.partition(".")[2]: value for key, value in identity.items()}
    if values:
        lines += ["[user]", *(f"\t{key} = {_quoted(value)}" for key, value in sorted(values.items()))]
    # `git gc` inside forgets no linked worktree of the host's because it is not there.
    lines += ["[gc]", "\tworktreePruneExpire = never"]
    lines += ["[safe]", *(f"\tdirectory = {_quoted(place)}" for place in workspace)]
    return "\n".join([*lines, ""])


def _quoted(value: str) -> str:
    """A value as git reads it back: backslash, quote, newline and tab escaped, the rest as it is."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escapes.get(char, char) for char in value if char in escapes or char >= " ") + '"'


def identity_note(identity: Mapping[str, str], variables: AbstractSet[str]) -> tuple[str, ...]:
    """What is missing for a commit, and the remedy. ``variables``: names of the agent's, which may give it to git."""
    missing = [
        (key, example)
        for key, name, example in _NEEDED
        if key not in identity and not {f"GIT_AUTHOR_{name}", f"GIT_COMMITTER_{name}"} <= variables
    ]
    if not missing:
        return ()
    keys = " and no ".join(key for key, _ in missing)
    commands = " and ".join(f"`git config --global {key} {example}`" for key, example in missing)
    return (f"git has no {keys} on this host: commits inside fail unless the repository sets it; run {commands}",)
