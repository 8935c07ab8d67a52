"""Settings of a repository that git cannot follow inside, and what to do about each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

#: What git 2.39, of podbot's own images, knows; with another one git refuses the whole repository.
_EXTENSIONS = frozenset({"noop", "noop-v1", "partialclone", "preciousobjects", "objectformat", "worktreeconfig"})
_NEWER = {
    "refstorage": ("git 2.45", "; `git refs migrate --ref-format=files` on the host (git 2.46) turns it back"),
    "relativeworktrees": ("git 2.48", ""),
}
_FORMAT = "core.repositoryformatversion"  # git 2.39 knows 0 and 1; with 0 it ignores an extension that it does not know
_SIGNED = {
    "commit.gpgsign": "commits",
    "tag.gpgsign": "tags",
    "tag.forcesignannotated": "tags",
    "push.gpgsign": "pushes",
}
_VERIFIED = "merge.verifysignatures"
#: Settings that name a program, and what fails without it (measured with git 2.39). Not here: without its program
#: core.fsmonitor, core.pager and credential.helper cost a line on stderr, and core.hooksPath nothing.
_PROGRAMS = (
    (r"filter\..+\.(?:clean|smudge|process)", "git adds and checks out such files unfiltered: do that on the host"),
    (r"merge\..+\.driver", "git merge has a conflict in each file that it would merge: merge those on the host"),
    (r"diff\.(?:external|.+\.command|.+\.textconv)", "git diff fails, except with --no-ext-diff --no-textconv"),
    (r"(?:core|sequence)\.editor", "git can ask for no text: pass -m, or set GIT_EDITOR"),
    (r"core\.(?:sshcommand|gitproxy)", "git reaches no remote by it: fetch and push on the host"),
)
#: Programs of podbot's images; a path in the repository is there, too. python3 is not: its module is what matters.
_HAS = frozenset((
    *(":", "awk", "bash", "cat", "cp", "cut", "diff", "echo", "exit", "expand", "false", "git", "grep", "gunzip"),
    *("gzip", "head", "iconv", "nano", "od", "perl", "printf", "sed", "sh", "sort", "ssh", "tac", "tail", "test"),
    *("touch", "tr", "true", "uniq"),
))  # fmt: skip
# Not what begins with an assignment; and never more of a command, which can have a secret among its arguments.
_FIRST_WORD = re.compile(r"""[\s"']*([^\s"';|&<>()=]+)(?=[\s"';|&<>()]|\Z)""")
_NAMED = 3  # settings in one note
_FILTER = ("clean", "smudge", "process")
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


def is_of_interest(key: str, value: str) -> bool:
    """Whether :func:`setting_notes` looks at the setting."""
    if key == _FORMAT:
        return value != "0"
    known = key in _SIGNED or key == _VERIFIED or key.startswith("extensions.")
    return known or (key.startswith("filter.") and key.endswith(".required")) or _effect(key) is not None


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


def _notes(settings: Sequence[tuple[str, str]], signed: Sequence[str]) -> Iterator[str]:
    if signed:
        made = " and ".join(dict.fromkeys(_SIGNED[key] for key in signed))
        yield (
            f"this repository signs {made} ({', '.join(signed)}), and the sandbox has no key: git inside makes them"
            " without a signature. Sign them on the host, the last commit by `git commit --amend --no-edit -S`"
        )
    found = dict(settings)
    if found.get(_VERIFIED, "").lower() not in _FALSE:
        yield (
            f"this repository merges only commits with a signature ({_VERIFIED}), and the sandbox has no key: merge on"
            " the host, or with `git merge --no-verify-signatures`"
        )
    version = found.get(_FORMAT, "0")
    if version not in {"0", "1"}:
        yield (
            f"this repository has the format {_shown(version)} ({_FORMAT}): git inside fails unless the image has a"
            " newer git"
        )
    for key, value in settings:
        section, _, name = key.partition(".")
        if section == "extensions" and name not in _EXTENSIONS and version != "0":
            git, advice = _NEWER.get(name, ("a newer git", ""))
            yield (
                f"this repository has the extension {_shown(name)} = {_shown(value)}: git inside fails unless the image"
                f" has {git}{advice}"
            )
        elif section == "filter" and name.endswith(".required") and value.lower() not in _FALSE:
            stem = key.removesuffix(".required")
            programs = [found[name] for name in (f"{stem}.{use}" for use in _FILTER) if name in found]
            if not programs or not all(map(_has, programs)):
                yield (
                    f"this repository requires the filter {_shown(stem.partition('.')[2])}: git inside cannot add files"
                    " that use it unless the image has its program"
                )
    yield from _program_notes(found)


def _program_notes(found: Mapping[str, str]) -> Iterator[str]:
    """One for each effect; that of a required filter has been told."""
    lacking: dict[str, list[str]] = {effect: [] for _, effect in _PROGRAMS}
    for key, value in found.items():
        effect, stem = _effect(key), key.rpartition(".")[0]
        if effect is not None and not _has(value) and found.get(f"{stem}.required", "").lower() in _FALSE:
            program = _program(value)
            lacking[effect].append(f"{_shown(program)} ({_shown(key)})" if program else _shown(key))
    for effect, named in lacking.items():
        if named:
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            yield f"this repository runs {', '.join(named[:_NAMED])}{more}: unless the image has it, {effect}"


def _effect(key: str) -> str | None:
    """What fails without the program that the setting names; None if it names none."""
    return next((effect for pattern, effect in _PROGRAMS if re.fullmatch(pattern, key, re.DOTALL)), None)


def _has(command: str) -> bool:
    """Whether podbot's images have what the command begins with, as far as that can be told."""
    program = _program(command)
    return not command.strip() or program in _HAS or ("/" in program and not program.startswith(("/", "~")))


def _program(command: str) -> str:
    """The program of a command of a shell; empty where that is hard to tell."""
    found = _FIRST_WORD.match(command)
    return found[1] if found else ""


def _shown(text: str) -> str:
    return ascii(text[:_SHOWN])[1:-1]
