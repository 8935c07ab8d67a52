"""Decides which commands a shell runs. It prevents accidents and is not a security boundary.

A command that is written to evade it will succeed. The sandbox enforces what its commands may do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from podbot.errors import CommandBlocked, InvalidCommand
from podbot.frozen import refuse_text
from podbot.shell import rules
from podbot.shell.requests import words_of
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.shell_line import Pipeline, SimpleCommand, Word, pipelines

_BOMB = ":(){ :|:& };:"
_RULES: dict[str, tuple[Callable[[Pipeline], bool], str]] = {
    "rm -rf /": (rules.removes_root, "it removes the root directory"),
    "rm -rf /*": (rules.removes_root, "it removes everything in the root directory"),
    "mkfs": (rules.formats, "it makes a filesystem"),
    "dd if=/dev/zero": (rules.overwrites_disk, "it overwrites a disk"),
    "> /dev/sda": (rules.writes_disk, "it writes to a disk"),
    "chmod -R 777 /": (rules.changes_root, "it changes the permissions of everything"),
    "curl | sh": (rules.runs_loaded("curl"), "it runs what it downloads"),
    "wget | sh": (rules.runs_loaded("wget"), "it runs what it downloads"),
}
DEFAULT_BLOCKED_PATTERNS = (*_RULES, _BOMB)
_SHOWN = 80


class CommandValidator:
    """Refuses commands by their words: it blocks ``rm -rf /``, but neither ``rm -rf /x`` nor ``echo "rm -rf /"``.

    ``blocked_patterns``: a pattern of ``DEFAULT_BLOCKED_PATTERNS`` also matches other usual spellings of the same
    command. Any other pattern is a program's name and arguments that must not occur together, such as ``git push``, or
    several of these joined by ``|``. ``allowed_commands``: the only programs that may run, spelled as in the command;
    each command of a line is checked. ``max_command_length``: characters of all words together.

    The values of variables, aliases and files are unknown to it. Raises InvalidCommand for a pattern without a word.
    """

    def __init__(
        self,
        *,
        blocked_patterns: Sequence[str] = DEFAULT_BLOCKED_PATTERNS,
        allowed_commands: Sequence[str] | None = None,
        max_command_length: int = ShellLimits().command_chars,
    ) -> None:
        refuse_text("CommandValidator()", "blocked_patterns", blocked_patterns)
        refuse_text("CommandValidator()", "allowed_commands", allowed_commands)
        self._bomb = _BOMB in blocked_patterns
        self._rules = [_rule(pattern) for pattern in blocked_patterns if pattern != _BOMB]
        self._allowed = None if allowed_commands is None else frozenset(allowed_commands)
        self._limits = ShellLimits(command_chars=max_command_length)

    def validate(self, command: str | Sequence[str]) -> None:
        """Raises InvalidCommand (too long, empty) and CommandBlocked."""
        words = words_of(command, self._limits)
        self._check(command if isinstance(command, str) else None, words)

    def validate_script(self, script: str, interpreter: str) -> None:
        """As :meth:`validate`, for a script of any length; only a shell's script is parsed. Raises CommandBlocked."""
        self._check(None, (interpreter,))
        if rules.is_shell(interpreter):
            self._check(script, (script,))

    def _check(self, line: str | None, words: tuple[str, ...]) -> None:
        found = _pipelines(line, words)
        texts = [line] if line is not None else []
        for pipeline in found:
            for pattern, rule, reason in self._rules:
                if rule(pipeline):
                    raise _blocked(pattern, words, reason)
            for command in pipeline:
                texts += [word.text for word in command.words if rules.is_shell(rules.program(command))]
                self._check_allowed(command, words)
        if self._bomb and any(map(rules.is_fork_bomb, texts)):
            raise _blocked(_BOMB, words, "it starts copies of itself without end")

    def _check_allowed(self, command: SimpleCommand, words: tuple[str, ...]) -> None:
        if self._allowed is not None and command.words and command.words[0].text not in self._allowed:
            shown = ascii(command.words[0].text)[:_SHOWN]
            allowed = ", ".join(sorted(self._allowed)) or "nothing"
            raise _blocked("not in allowed_commands", words, f"{shown} is none of {allowed[: 4 * _SHOWN]}")


def _pipelines(line: str | None, words: tuple[str, ...]) -> Iterator[Pipeline]:
    if line is None:
        yield from rules.unfolded([SimpleCommand([Word(word, quoted=True) for word in words])])
        return
    for pipeline in pipelines(line):
        yield from rules.unfolded(pipeline)


def _rule(pattern: str) -> tuple[str, Callable[[Pipeline], bool], str]:
    if pattern in _RULES:
        return (pattern, *_RULES[pattern])
    wanted = [[part.texts for part in line] for line in pipelines(pattern)]
    if not wanted or not all(texts for stages in wanted for texts in stages):
        raise InvalidCommand(
            field="blocked_patterns", value=ascii(pattern)[:_SHOWN], limit="a pattern is a program and its arguments"
        )
    stages = wanted[0]

    def rule(line: Pipeline) -> bool:
        rest = iter(line)
        return all(any(_has(command, texts) for command in rest) for texts in stages)

    return pattern, rule, "it matches a pattern of this shell"


def _has(command: SimpleCommand, texts: Sequence[str]) -> bool:
    return rules.program(command) == texts[0] and set(texts[1:]) <= set(command.texts[1:])


def _blocked(pattern: str, words: tuple[str, ...], reason: str) -> CommandBlocked:
    shown = ascii(" ".join(words))
    return CommandBlocked(pattern=pattern, found=shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…", reason=reason)
