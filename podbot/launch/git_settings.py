"""Settings of a repository that git cannot follow inside, and what to do about each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

#: What git 2.39, of podbot's own images, knows; with another one git refuses the whole repository.
_EXTENSIONS = frozenset({"noop", "noop-v1", "partialclone", "preciousobjects", "objectformat", "worktreeconfig"})
_NEWER = {
    "refstorage": ("git 2.45", "; `git refs migrate --ref-format=files` on the host (git 2.46) turns it back"),
    "relativeworktrees": ("git 2.48", ""),
}
_SIGNED = {"commit.gpgsign": "commits", "tag.gpgsign": "tags", "tag.forcesignannotated": "tags"}
_FALSE = ("false", "no", "off", "0", "")
MOST = 8  # notes; a hostile configuration can name any number of extensions and filters
_DIGITS = 3  # of the number of git's variables of the operator's
_SHOWN = 60  # characters of a name


def setting_notes(settings: Sequence[tuple[str, str]], theirs: Mapping[str, str]) -> tuple[str, ...]:
    """A note for each kind of setting. ``settings``: keys as git prints them, and values; the last of a key counts.

    ``theirs``: see :func:`unsigned`.
    """
    notes = _notes(list(dict(settings).items()), [*unsigned(settings, theirs)])
    return tuple(note for _, note in zip(range(MOST), notes, strict=False))


def is_of_interest(key: str) -> bool:
    """Whether :func:`setting_notes` looks at the key."""
    return key in _SIGNED or key.startswith("extensions.") or (key.startswith("filter.") and key.endswith(".required"))


def unsigned(settings: Sequence[tuple[str, str]], theirs: Mapping[str, str]) -> dict[str, str]:
    """The configuration with which git inside does not sign; empty if this repository's does not ask for it.

    With signing git would make no commit at all: the sandbox has no key, and often no program for one. ``theirs``: the
    operator's variables; a key that they set is theirs to decide, such as where the operator mounts a key.
    """
    decided = {key.lower() for key, _ in given_by_variables(theirs)}
    return {key: "false" for key in _signed(dict(settings).items()) if key not in decided}


def config_variables(configuration: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """The variables with which git takes ``configuration`` over that of every file, after ``theirs``, the operator's.

    If GIT_CONFIG_COUNT does not match the operator's other variables, git refuses to run, so all of them are ignored.
    """
    pairs = [*given_by_variables(theirs), *configuration.items()]
    found = {"GIT_CONFIG_COUNT": str(len(pairs))} if configuration else {}
    for number, (key, value) in enumerate(pairs if configuration else ()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def given_by_variables(variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """The keys and values that ``GIT_CONFIG_COUNT`` and its kin name; none if one of them is missing."""
    count = variables.get("GIT_CONFIG_COUNT", "")
    numbers = range(int(count)) if count.isascii() and count.isdecimal() and len(count) <= _DIGITS else ()
    names = [(f"GIT_CONFIG_KEY_{number}", f"GIT_CONFIG_VALUE_{number}") for number in numbers]
    if any(key not in variables or value not in variables for key, value in names):
        return []
    return [(variables[key], variables[value]) for key, value in names]


def _signed(settings: Iterable[tuple[str, str]]) -> list[str]:
    return [key for key, value in settings if key in _SIGNED and value.lower() not in _FALSE]


def _notes(settings: Iterable[tuple[str, str]], signed: Sequence[str]) -> Iterator[str]:
    if signed:
        made = " and ".join(dict.fromkeys(_SIGNED[key] for key in signed))
        yield (
            f"this repository signs {made} ({', '.join(signed)}), and the sandbox has no key: git inside makes them"
            " without a signature. Sign them on the host, the last commit by `git commit --amend --no-edit -S`"
        )
    for key, value in settings:
        section, _, name = key.partition(".")
        if section == "extensions" and name not in _EXTENSIONS:
            git, advice = _NEWER.get(name, ("a newer git", ""))
            yield (
                f"this repository has the extension {_shown(name)} = {_shown(value)}: git inside fails unless the image"
                f" has {git}{advice}"
            )
        elif section == "filter" and value.lower() not in _FALSE:
            program = name.removesuffix(".required")
            yield (
                f"this repository requires the filter {_shown(program)}: git inside cannot add files that use it"
                " unless the image has its program"
            )


def _shown(text: str) -> str:
    return ascii(text[:_SHOWN])[1:-1]
