"""The rules behind the default patterns of a :class:`CommandValidator`; they compare words, not characters."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

from podbot.shell.shell_line import DEPTH, Pipeline, SimpleCommand, Word, pipelines, tokens

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"})
_INTERPRETERS = re.compile(r"(?:python|perl|ruby|node|php)[\d.]*")
_DISK = re.compile(
    r"/dev/(?:(?:sd|vd|hd|xvd)[a-z]+\d*|nvme\d+(?:n\d+(?:p\d+)?)?|mmcblk\d+(?:p\d+)?|(?:dm-|md|loop)\d+"
    r"|(?:disk|mapper)/.+)"
)
_BOMB = re.compile(r"([^\s(){}|&;]+)(?:\(\))?\{\1\|\1&")
# Programs that run the command in their arguments: name -> options that have a value, and the number of operands
# before the command.
_CARRIERS: dict[str, tuple[frozenset[str], int]] = {
    "sudo": (frozenset("ugpCThR"), 0),
    "doas": (frozenset("uC"), 0),
    "env": (frozenset("uCS"), 0),
    "nice": (frozenset("n"), 0),
    "ionice": (frozenset("cn"), 0),
    "timeout": (frozenset("ks"), 1),
    "stdbuf": (frozenset("ioe"), 0),
    "xargs": (frozenset("InLPsdEa"), 0),
    **dict.fromkeys(("nohup", "setsid", "exec", "command", "builtin", "busybox", "time", "unshare"), (frozenset(), 0)),
}


def program(command: SimpleCommand) -> str:
    """The name of the command's program, without its directory; empty when there is none."""
    return posixpath.basename(command.words[0].text) if command.words else ""


def is_shell(name: str) -> bool:
    """Whether ``name``, a program's name or path, is that of a shell."""
    return posixpath.basename(name) in _SHELLS


def unfolded(line: Pipeline) -> Iterator[Pipeline]:
    """``line``, and each line that it passes to a shell, also with ``sudo``, ``env`` and similar programs removed."""
    while True:
        yield line
        inner = [_carried(command) for command in line]
        if all(carried is command for carried, command in zip(inner, line, strict=True)):
            break
        line = inner
    for command in line:
        text = _shell_text(command)
        if text is not None and command.depth < DEPTH:
            for nested in pipelines(text, command.depth + 1):
                yield from unfolded(nested)


def _carried(command: SimpleCommand) -> SimpleCommand:
    found = _CARRIERS.get(program(command))
    if found is None:
        return command
    valued, operands = found
    words = command.words[1:]
    while words:
        text = words[0].text
        if text.startswith("-") and len(text) > 1:
            takes = not text.startswith("--") and text[-1] in valued
            words = words[2 if takes else 1 :]
        elif "=" in text and text.partition("=")[0].isidentifier():
            words = words[1:]
        elif operands:
            operands -= 1
            words = words[1:]
        else:
            break
    return SimpleCommand(words, command.redirects, command.depth) if words else command


def _shell_text(command: SimpleCommand) -> str | None:
    """The text that the command passes to a shell or to ``eval`` to run."""
    name, texts = program(command), command.texts
    if name == "eval":
        return " ".join(texts[1:])
    if name in _SHELLS:
        for at, text in enumerate(texts[1:-1], 1):
            if re.fullmatch(r"-[a-z]*c[a-z]*", text):
                return texts[at + 1]
    return None


# --- the rules -------------------------------------------------------------------------------------


def removes_root(line: Pipeline) -> bool:
    """Recursive ``rm`` of the root directory, or of everything in it."""
    return any(program(command) == "rm" and _recursively_on_root(command, "rR") for command in line)


def changes_root(line: Pipeline) -> bool:
    """Recursive ``chmod``, ``chown`` or ``chgrp`` of the root directory."""
    names = ("chmod", "chown", "chgrp")
    return any(program(command) in names and _recursively_on_root(command, "R") for command in line)


def _recursively_on_root(command: SimpleCommand, letters: str) -> bool:
    options = [text for text in command.texts[1:] if text.startswith("-") and text != "-"]
    short = "".join(text[1:] for text in options if not text.startswith("--"))
    # GNU programs accept an abbreviated long option.
    recursive = any(letter in short for letter in letters) or any("--recursive".startswith(t) for t in options if t[2:])
    return recursive and any(_is_root(text) for text in command.texts[1:])


def _is_root(text: str) -> bool:
    if not text.startswith("/"):
        return False
    parts = [part for part in text.split("/") if part not in ("", ".", "..")]
    return all(part in ("*", ".*", ".[!.]*", "{*,.*}") for part in parts)


def formats(line: Pipeline) -> bool:
    """``mkfs`` of any kind, except for its help."""
    return any(
        (name := program(command)) == "mkfs" or name.startswith("mkfs.")
        for command in line
        if not {"--help", "--version", "-V"} & set(command.texts)
    )


def overwrites_disk(line: Pipeline) -> bool:
    """``dd`` from an endless device, or to a disk."""
    for command in line:
        if program(command) == "dd":
            for text in command.texts[1:]:
                key, _, value = text.partition("=")
                if key == "if" and value in ("/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"):
                    return True
                if key == "of" and _DISK.fullmatch(value):
                    return True
    return False


def writes_disk(line: Pipeline) -> bool:
    """Output to a disk, by a redirection or ``tee``."""
    for command in line:
        if any(">" in operator and _DISK.fullmatch(target.text) for operator, target in command.redirects):
            return True
        if program(command) == "tee" and any(_DISK.fullmatch(text) for text in command.texts[1:]):
            return True
    return False


def runs_loaded(loader: str) -> Callable[[Pipeline], bool]:
    """A rule: a shell or an interpreter runs the output of ``loader``, which is ``curl`` or ``wget``."""

    def rule(line: Pipeline) -> bool:
        seen = False
        for command in (_carried(command) for command in line):
            if seen and _runs_stdin(command):
                return True
            seen = seen or program(command) == loader
        return any(_runs_words(command) and _loads(command.words, loader) for command in line)

    return rule


def _runs_stdin(command: SimpleCommand) -> bool:
    name = program(command)
    operands = [text for text in command.texts[1:] if not text.startswith("-") or text == "-"]
    if name in _SHELLS:
        return not operands or operands[0] == "-" or any(re.fullmatch(r"-[a-z]*s", text) for text in command.texts[1:])
    if _INTERPRETERS.fullmatch(name):
        runs_else = any(text in ("-m", "-c", "-e", "-r", "--version", "-V", "-n", "-p") for text in command.texts[1:])
        return not runs_else and (not operands or operands[0] == "-")
    return False


def _runs_words(command: SimpleCommand) -> bool:
    """Whether the command runs the text in its words, or is itself the output of another command."""
    name = program(command)
    interprets = name in _SHELLS or name in ("eval", ".", "source") or bool(_INTERPRETERS.fullmatch(name))
    return interprets or bool(command.words and command.words[0].runs)


def _loads(words: Sequence[Word], loader: str) -> bool:
    texts = [run for word in words for run in word.runs]
    return any(program(command) == loader for text in texts for line in pipelines(text) for command in line)


def is_fork_bomb(text: str) -> bool:
    """Whether the text defines a function that starts itself twice."""
    parts = (("\0" if token.quoted else token.text) if isinstance(token, Word) else token for token in tokens(text))
    return bool(_BOMB.search("".join(parts)))
