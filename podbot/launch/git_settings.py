"""Settings of a repository that git cannot follow inside, and what to do about each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

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
_IF_ASKED = "if-asked"  # of push.gpgsign: no server has to ask, so that the lack of a signature is no news
_VERIFIED = "merge.verifysignatures"
_UNFILTERED = "git adds and checks out such files unfiltered: do that on the host"
_NO_DIFF = "git diff of such files fails, except with --no-ext-diff --no-textconv"
_NO_REMOTE = "git reaches no remote by it: fetch and push on the host"
#: Settings that name a program, and what fails without it (measured with git 2.39). Not here: without its program
#: core.fsmonitor, core.pager and credential.helper cost a line on stderr, and core.hooksPath nothing.
_PROGRAMS = {
    "filter.*.clean": _UNFILTERED,
    "filter.*.smudge": _UNFILTERED,
    "filter.*.process": _UNFILTERED,
    "merge.*.driver": "git merge has a conflict in each file that it would merge: merge those on the host",
    "diff.external": "git diff fails, except with --no-ext-diff",
    "diff.*.command": _NO_DIFF,
    "diff.*.textconv": _NO_DIFF,
    "core.editor": "git can ask for no text: pass -m, or set GIT_EDITOR",
    "sequence.editor": "git rebase -i fails: set GIT_SEQUENCE_EDITOR",
    "core.sshcommand": _NO_REMOTE,
    "core.gitproxy": _NO_REMOTE,
    "remote.*.vcs": _NO_REMOTE,
    "remote.*.url": _NO_REMOTE,
    "remote.*.pushurl": _NO_REMOTE,
    "interactive.difffilter": "git add -p fails on a terminal, except with -c interactive.diffFilter=cat",
}
#: Variables that git takes over a setting.
_INSTEAD = {
    "GIT_EDITOR": "core.editor",
    "GIT_SEQUENCE_EDITOR": "sequence.editor",
    "GIT_EXTERNAL_DIFF": "diff.external",
    "GIT_SSH_COMMAND": "core.sshcommand",
    "GIT_PROXY_COMMAND": "core.gitproxy",
}
#: Programs of podbot's images; a path in the repository is there, too. python3 is not: its module is what matters.
_HAS = frozenset((
    *(":", "awk", "base64", "basename", "bash", "cat", "chmod", "comm", "cp", "curl", "cut", "date", "dd", "diff"),
    *("dirname", "echo", "env", "exec", "exit", "expand", "expr", "false", "find", "fmt", "fold", "git", "grep"),
    *("gunzip", "gzip", "head", "iconv", "jq", "less", "make", "md5sum", "mkdir", "mktemp", "mv", "nano", "nl", "od"),
    *("paste", "perl", "printf", "readlink", "realpath", "rg", "rm", "sed", "seq", "sh", "sha256sum", "sleep", "sort"),
    *("split", "ssh", "stat", "tac", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "unexpand"),
    *("uniq", "wc", "xargs", "zcat"),
    *(f"git-remote-{name}" for name in ("ext", "fd", "ftp", "ftps", "http", "https")),
))  # fmt: skip
#: An address that git hands to a program git-remote-NAME: NAME::ADDRESS, or NAME://ADDRESS with a name of no transport
#: of its own. Nothing else of an address is shown, because it can have a password.
_HELPER = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)(::|://)")
_TRANSPORTS = frozenset({"file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git"})
_INSTEADOF = ".insteadof"
_BIN = ("/usr/bin/", "/bin/")  # where they are
#: The program, after assignments. Never more of a command, which can have a secret there or among its arguments; and
#: nothing that the shell replaces, such as $HOME. Nothing is tried again, because the command can be long and hostile.
_ASSIGNMENT = re.compile(r"""\s*+[A-Za-z_]\w*+=(?:[^\s"'$`\\;|&<>()]*+|"[^"$`\\]*+"|'[^']*+')(?=\s)""")
_FIRST_WORD = re.compile(r"""[\s"']*+([^\s"';|&<>()=$`]++)(?=[\s"';|&<>()]|\Z)""")
_NAMED = 3  # programs in one note, and settings of one program
_FILTER = ("clean", "smudge", "process")
_FALSE = ("false", "no", "off", "0", "")
MOST = 8  # notes; a hostile configuration can name any number of extensions and filters
_DIGITS = 3  # of the number of git's variables of the operator's
_SHOWN = 60  # characters of a name


def setting_notes(settings: Sequence[tuple[str, str]], theirs: Mapping[str, str]) -> tuple[str, ...]:
    """A note for each kind of setting. ``settings``: keys as git prints them, and values; the last of a key counts.

    ``theirs``: see :func:`unsigned`.
    """
    # What the operator decides is no setting of the repository's, whatever it is; an empty value names no program.
    decided = dict.fromkeys((key for key in _decided(theirs) if not is_format(key)), "")
    rules = {value: key.removeprefix("url.").removesuffix(_INSTEADOF) for key, value in settings if _rewrites(key)}
    known = {key: _rewritten(value, rules) if _is_address(key) else value for key, value in settings}
    notes = _notes(known | decided)
    return tuple(note for _, note in zip(range(MOST), notes, strict=False))


def is_of_interest(key: str, value: str) -> bool:
    """Whether :func:`setting_notes` looks at the setting."""
    if key == _FORMAT:
        return value != "0"
    known = key in _SIGNED or key == _VERIFIED or is_format(key) or _rewrites(key)
    if known or (key.startswith("filter.") and key.endswith(".required")):
        return True
    return _effect(key) is not None and (_command(key, value) != "" or not key.startswith("remote."))


def is_format(key: str) -> bool:
    """Whether the setting tells the form of the repository, which git takes from its ``config`` alone."""
    return key == _FORMAT or key.startswith("extensions.")


def switches_off(key: str, value: str) -> bool:
    """Whether the setting ends a demand for signatures."""
    return (key in _SIGNED or key == _VERIFIED) and value.lower() in _FALSE


def unsigned(settings: Sequence[tuple[str, str]], theirs: Mapping[str, str]) -> dict[str, str]:
    """The configuration with which git inside does not sign; empty if this repository's does not ask for it.

    With signing git would make no commit at all: the sandbox has no key, and often no program for one. ``theirs``: the
    operator's variables; a key that they set is theirs to decide, such as where the operator mounts a key.
    """
    decided = _decided(theirs)
    found = dict(settings)
    return {
        key: "false" for key in found if key in _SIGNED and key not in decided and not switches_off(key, found[key])
    }


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


def _decided(theirs: Mapping[str, str]) -> set[str]:
    """The settings that the operator's variables decide, as git prints their keys."""
    decided = {key for variable, key in _INSTEAD.items() if variable in theirs}
    for given, _ in given_by_variables(theirs):
        section, dot, rest = given.partition(".")
        middle, last_dot, name = rest.rpartition(".")
        decided.add(f"{section.lower()}{dot}{middle}{last_dot}{name.lower()}")
    return decided


def _notes(found: Mapping[str, str]) -> Iterator[str]:
    signs = [key for key in found if key in _SIGNED and found[key].lower() not in {*_FALSE, _IF_ASKED}]
    if signs:
        made = list(dict.fromkeys(_SIGNED[key] for key in signs))
        amend = ", the last commit by `git commit --amend --no-edit -S`" if "commits" in made else ""
        yield (
            f"this repository signs {' and '.join(made)} ({', '.join(signs)}), and the sandbox has no key: git inside"
            f" makes them without a signature. Sign them on the host{amend}"
        )
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
    for key, value in found.items():
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
    lacking: dict[str, dict[str, list[str]]] = {effect: {} for effect in _PROGRAMS.values()}
    for key, value in found.items():
        effect, stem, command = _effect(key), key.rpartition(".")[0], _command(key, value)
        if effect is not None and not _has(command) and found.get(f"{stem}.required", "").lower() in _FALSE:
            program = _program(command)
            name = _shown(program) if program else f"the program of {_shown(key)}"
            keys = lacking[effect].setdefault(name, [])
            if program and len(keys) < _NAMED:
                keys.append(_shown(key))
    for effect, programs in lacking.items():
        named = [f"{name} ({', '.join(keys)})" if keys else name for name, keys in programs.items()]
        if named:
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            yield f"this repository runs {', '.join(named[:_NAMED])}{more}: unless the image has it, {effect}"


def _effect(key: str) -> str | None:
    """What fails without the program that the setting names; None if it names none."""
    section, _, rest = key.partition(".")
    _, dot, name = rest.rpartition(".")
    return _PROGRAMS.get(f"{section}.*.{name}" if dot else key)


def _is_address(key: str) -> bool:
    return key.startswith("remote.") and key.endswith((".url", ".pushurl"))


def _rewrites(key: str) -> bool:
    """Whether git takes another address in place of those that begin with the value. Push-only rules do not count."""
    return key.startswith("url.") and key.endswith(_INSTEADOF)


def _rewritten(address: str, rules: Mapping[str, str]) -> str:
    """The address that git takes. ``rules``: beginning -> what takes its place; the longest one counts."""
    begin = max((text for text in rules if address.startswith(text)), key=len, default="")
    return rules[begin] + address.removeprefix(begin) if begin else address


def _command(key: str, value: str) -> str:
    """The command that the setting of :func:`_effect` names; empty if git needs none, as for most remotes."""
    if not key.startswith("remote."):
        return value
    if key.endswith(".vcs"):
        return f"git-remote-{value}" if value else ""
    found = _HELPER.match(value)
    if found is None or (found[2] == "://" and found[1] in _TRANSPORTS):
        return ""
    return f"git-remote-{found[1]}"


def _has(command: str) -> bool:
    """Whether podbot's images have what the command begins with, as far as that can be told."""
    program = _program(command)
    return (
        not command.strip()
        or any(program.removeprefix(place) in _HAS for place in ("", *_BIN))
        or ("/" in program and not program.startswith(("/", "~")))
    )


def _program(command: str) -> str:
    """The program of a command of a shell; empty where that is hard to tell."""
    at = 0
    while found := _ASSIGNMENT.match(command, at):  # no repeated group: Python 3.11.2 loses what it tried in vain
        at = found.end()
    found = _FIRST_WORD.match(command, at)
    return found[1] if found else ""


def _shown(text: str) -> str:
    return ascii(text[:_SHOWN])[1:-1]
