"""The sandbox's git configuration: the operator's identity, and trust in the mounted workspace.

It is a read-only file that GIT_CONFIG_SYSTEM names, not ``git config --global`` inside: an exec costs 95 ms and an
upload into a created container 85 ms (measured), a file mount nothing. The repository's and the agent's own settings
override it, and it applies to every user and shell inside. It includes the image's own system file. It declares the
workspace as safe, because its owner on the host is rarely the sandbox's user, and git refuses such a repository.

For the same reason git would take every file of the index for changed, inside and then on the host again: it would hash
all of them, which takes as long as it does, and fails where a filter is needed (Git LFS) that the image does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from podbot.agents.definition import GITCONFIG
from podbot.launch.git_settings import unsigned
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, OwnFile, ResourcePlan

TARGET = GITCONFIG
ENV = {"GIT_CONFIG_SYSTEM": TARGET}
_NEEDED = (("user.name", "NAME", '"Your Name"'), ("user.email", "EMAIL", "you@example.org"))


class GitIdentityPlan(ResourcePlan):
    """``identity``: user.name and user.email, where known."""

    identity: Mapping[str, str]

    def described(self) -> dict[str, str]:
        """The plan as plain values."""
        return dict(self.identity)


def plan(context: Context) -> Part:
    """The file, and a note if a commit would fail."""
    identity = _identity(context.facts)
    variables = context.command.env.keys() if context.command is not None else ()
    return Part(
        GitIdentityPlan(identity),
        files=(OwnFile(TARGET, gitconfig(identity, *context.workspace.places)),),
        env=ENV,
        git_config=unsigned(context.facts.repository.settings, context.config.sandbox.env),
        notes=identity_note(identity, {*context.config.sandbox.env, *variables}),
    )


def _identity(facts: HostFacts) -> Mapping[str, str]:
    found = {"user.name": facts.git_name, "user.email": facts.git_email}
    return {key: value for key, value in found.items() if value}


def gitconfig(identity: Mapping[str, str], *workspace: str) -> str:
    """The file's text. ``identity``: ``user.name`` and ``user.email``, where known. ``workspace``: its paths inside."""
    lines = ["[include]", "\tpath = /etc/gitconfig"]
    values = {key.partition(".")[2]: value for key, value in identity.items()}
    if values:
        lines += ["[user]", *(f"\t{key} = {_quoted(value)}" for key, value in sorted(values.items()))]
    # Keeps `git gc` inside from pruning linked worktrees that exist only on the host.
    lines += ["[gc]", "\tworktreePruneExpire = never"]
    # Time and size, not the owner, which user namespaces change: see above.
    lines += ["[core]", "\tcheckStat = minimal"]
    lines += ["[safe]", *(f"\tdirectory = {_quoted(place)}" for place in workspace)]
    return "\n".join([*lines, ""])


def _quoted(value: str) -> str:
    """A value quoted for git: backslash, quote, newline and tab are escaped."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escapes.get(char, char) for char in value if char in escapes or char >= " ") + '"'


def identity_note(identity: Mapping[str, str], variables: AbstractSet[str]) -> tuple[str, ...]:
    """A note on what is missing for a commit, with the remedy. ``variables``: names that may provide it."""
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
