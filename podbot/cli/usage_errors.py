"""What is wrong with a command line that the parser rejects, in podbot's words and with what to type instead."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from podbot.agents.registry import known
from podbot.cli import before_command
from podbot.cli.argv_scan import scan
from podbot.cli.commands import find
from podbot.cli.grammar import SessionCommand
from podbot.cli.habits import ARGUMENTS
from podbot.cli.habits import COMMANDS as HABITS
from podbot.cli.habits import OPTIONS as OPTION_HABITS
from podbot.cli.operands import Operands, is_mount, mount_hint, read_operands
from podbot.cli.options import COMMON, Option
from podbot.cli.repeating import is_repeatable, masked, repeated, shown_word
from podbot.cli.run_habits import AGENTS_FIRST, AGENTS_SWITCHES, AGENTS_TOO, PODMANS
from podbot.cli.run_words import own_words
from podbot.cli.typos import command_meant
from podbot.config.models import AGENT_KINDS
from podbot.config.schema import KEYS, nearest
from podbot.errors import PodbotError, UsageError

_SIMILAR = 0.85  # a mistyped option, and not another program's
_LONGEST = 120  # characters of a command line that a message repeats
_NO_COMMAND = re.compile(r"No such command ((['\"]).*\2)\.(?: Did you mean|$)", re.DOTALL)
_ENGINES = "It is podman's or docker's, and podbot has nothing in its place."
_PUBLIC = ("image", "sandbox.memory", "sandbox.shm", "sandbox.network", "agent.frame_limit")  # keys of texts
_HIDES = ("config set", "login", "logout")  # a word too many of these can be a secret
_UNEXPECTED = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)


def usage_error(exc: Any, argv: Sequence[str]) -> UsageError:
    """Converts an error that the parser found in ``argv`` to one of podbot's. ``exc``: one of the parser's own."""
    context = getattr(exc, "ctx", None)
    command = context.command_path if context is not None else _command_in(argv)
    reason, hint = _EXPLAINED.get(type(exc).__name__, _other)(exc, argv)
    return UsageError(command=command, reason=" ".join(reason.split()).rstrip("."), hint=hint)


def _command_in(argv: Sequence[str]) -> str:
    """The command of ``argv``; the parser does not say it with some errors."""
    before = scan(argv, COMMON, stop_at_word=True)
    command = find(before.words) if before is not None else None
    return " ".join(["podbot", *(command.path if command is not None else ())])


def _no_command(_exc: Any, _argv: Sequence[str]) -> tuple[str, str]:
    return "a command is missing", ""


def _no_option(exc: Any, argv: Sequence[str]) -> tuple[str, str]:
    if isinstance(exc.ctx.command, SessionCommand) and (mount := _attached_mount(exc.option_name, argv)):
        return "-v is --verbose", mount_hint(mount)
    return f"there is no option {exc.option_name}", _instead_of(exc.option_name, exc.ctx, argv)


def _attached_mount(option: str, argv: Sequence[str]) -> str:
    """The mount in a word such as ``-v/a:/b``, of which the parser takes each letter for an option; or empty."""
    words = argv[: argv.index("--") if "--" in argv else None]
    found = (re.fullmatch(r"-v=?([^=]*[/:].*)", word, re.DOTALL) for word in words if option[1:2] in word)
    return next((match[1] for match in found if match), "")


def _no_argument(exc: Any, _argv: Sequence[str]) -> tuple[str, str]:
    if exc.ctx.command_path == "podbot config set" and (typed := exc.ctx.params.get("key")):
        key, equals, value = typed.partition("=")
        if equals:
            line = "podbot config set KEY VALUE"
            if _is_shown(key, value):
                line = repeated(["podbot", "config", "set", key, value], line, _LONGEST)
            return "VALUE is missing", f"A blank stands between KEY and VALUE: `{line}`."
    command = find(exc.ctx.command_path.split()[1:])
    arguments = command.arguments if command is not None else ()
    shown = next((one.metavar for one in arguments if one.name == exc.param.name), "") or exc.param.name.upper()
    return f"{shown.removesuffix('…')} is missing", f"Usage: `{_line(exc.ctx)}`."


def _bad_option(exc: Any, argv: Sequence[str]) -> tuple[str, str]:
    """A value is missing, or one was given to a switch. An agent can have a switch of the same name: ``claude -c``."""
    name = exc.option_name
    if not exc.message.endswith("requires an argument."):
        return f"{name} takes no value", ""
    command = find(_command_in(argv).split()[1:])
    if command is None or not command.takes_words:
        return f"{name} needs a value", ""
    own = next((one for one in (*command.options, *command.common) if name in one.spelled), None)
    if own is not None and name not in AGENTS_SWITCHES:
        return f"{name} needs a value", f"Write `{name} {own.metavar.replace('{agents}', '|'.join(AGENT_KINDS))}`."
    called = f"{name} is {own.spelled[0]}. " if own is not None and own.spelled[0] != name else ""
    if command.path == ("run",) and (meant := _image_in(argv)):
        return f"{name} needs a value", meant.hint
    typed = " ".join(["podbot", *command.path, *command.grammar[1:]])
    if argv[-1] == name and "--" not in argv:
        typed = repeated(["podbot", *argv[:-1], "--", name], typed, _LONGEST)
    return f"{name} needs a value", called + _behind(typed)


def _bad_value(exc: Any, argv: Sequence[str]) -> tuple[str, str]:
    """For podbot's numbers in its own words, not in those of the parser."""
    if exc.param is None:  # the table's own check of a combination
        return exc.message, ""
    command = find(exc.ctx.command_path.split()[1:]) if exc.ctx is not None else None
    option = next((one for one in command.options if one.name == exc.param.name), None) if command is not None else None
    if option is None or option.takes != "number":
        return f"{exc.param.opts[0]}: {exc.message}", ""
    least = f" from {option.least}" if option.least is not None else ""
    most = f" to {option.most}" if option.most is not None else ""
    name, value = option.spelled[0], _value_of(option, argv)
    number = option.default if option.default is not None else 100 if option.least == 0 else 1
    duration = re.fullmatch(r"([0-9]{1,4}) ?(s|m|h)[a-z]*", value) if option.metavar == "S" else None
    if duration is not None:
        number = int(duration[1]) * {"s": 1, "m": 60, "h": 3600}[duration[2]]
    behind = [piece.strip("[]…") for piece in command.grammar if piece != "[OPTIONS]"] if command is not None else []
    line = " ".join([exc.ctx.command_path, name, str(number), *behind])
    what = f"{name}: {shown_word(value)} is not" if value else f"{name} is not"
    return f"{what} a whole number{least}{most}", f"Write {'seconds: ' if duration else ''}`{line}`."


def _value_of(option: Option, argv: Sequence[str]) -> str:
    """The last value of ``option`` in ``argv``, in any of its spellings; or empty."""
    found = ""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        for spelled in option.spelled:
            attached = word.removeprefix(f"{spelled}=" if spelled.startswith("--") else spelled)
            if word == spelled:
                found = following
            elif attached != word:
                found = attached
    return found


def _other(exc: Any, argv: Sequence[str]) -> tuple[str, str]:
    text = exc.format_message()
    if text.startswith("Missing command"):
        return _no_command(exc, argv)
    if found := _NO_COMMAND.match(text):
        quote, word = found[1][0], found[1][1:-1]
        return f"there is no command {quote}{masked(word)}{quote}", _command_instead(found[1][1:-1], exc.ctx, argv)
    if found := _UNEXPECTED.match(text):
        path = exc.ctx.command_path.partition(" ")[2]
        instead = ARGUMENTS.get(path, "")
        if path in _HIDES:
            return "it has a word too many", f"Usage: `{_line(exc.ctx)}`."
        if path == "config show" and found[1] in KEYS:
            instead = f"`podbot config get {found[1]}` prints one value."
        return f"{masked(found[1])!r} is not expected here", instead or f"Usage: `{_line(exc.ctx)}`."
    return text, ""


# By the names of the parser's classes, which Typer does not export: the reason and a hint, which may be empty.
_EXPLAINED = {
    "NoArgsIsHelpError": _no_command,
    "NoSuchOption": _no_option,
    "MissingParameter": _no_argument,
    "BadOptionUsage": _bad_option,
    "BadParameter": _bad_value,
}


def _command_instead(word: str, context: Any, argv: Sequence[str]) -> str:
    """The command that is meant by ``word``: what podbot has for a habit, or a similar one of the same group."""
    group = context.command_path.split()[1:]
    if habit := HABITS.get(" ".join([*group, word])):
        return habit.replace("{agents}", ", ".join(AGENT_KINDS))
    if not group and word in known():
        return f"`{_run_agent(word, argv)}` runs it."
    if not group and (line := _run_instead(word) or before_command.image_instead(word, argv)):
        return line
    begin = "".join(f"{name} " for name in group)
    others = {words.removeprefix(begin) for words in HABITS if words.startswith(begin)}
    if near := command_meant(word, context.command.commands, others):
        return f"Did you mean `{context.command_path} {near}`?"
    return f"`{context.command_path} --help` lists the commands."


def _run_agent(agent: str, argv: Sequence[str]) -> str:
    """The command line for an agent that was typed as a command, with the words behind it."""
    behind = argv[argv.index(agent) + 1 :] if agent in argv else []
    own = own_words(behind, [agent])
    words = behind[own + (behind[own : own + 1] == ["--"]) :]
    line = ["podbot", "run", agent, *behind[:own], *(["--", *words] if words else [])]
    return repeated(line, f"podbot run {agent} [PATH] [-- WORDS…]", _LONGEST)


def _run_instead(word: str) -> str:
    """What to type for a word that can only be meant for `podbot run`: a path, a repository, a sentence; or empty."""
    if any(map(str.isspace, word)):
        line = repeated(["podbot", "run", ".", "--", word], "podbot run . -- PROMPT", _LONGEST)
        return f"Words for an agent follow --: `{line}`."
    if os.path.isfile(word):
        return "That is a file; `podbot run DIRECTORY` runs an agent in a directory."
    try:
        path = read_operands([word], lambda _: False).path
    except UsageError as exc:
        return HABITS["clone"] if "--repo" in exc.hint else ""
    return f"`{repeated(['podbot', 'run', word], 'podbot run PATH', _LONGEST)}` runs an agent there." if path else ""


def _instead_of(option: str, context: Any, argv: Sequence[str]) -> str:
    """What to type in place of an unknown ``option``."""
    takes_words = isinstance(context.command, SessionCommand)
    if context.command_path == "podbot" and (hint := _in_front(option, argv)):
        return hint
    habit = OPTION_HABITS.get(context.command_path.partition(" ")[2], {}).get(option, "")
    if option in ("--volume", "--bind") and is_mount(mount := _after(option, argv)):
        habit = mount_hint(mount)
    if takes_words and not habit and option in PODMANS:
        habit = f"{_ENGINES} `{context.command_path} --help` lists podbot's options."
    if context.command_path == "podbot run" and (meant := _image_in(argv, option)):
        typed = next((at for at, word in enumerate(argv) if _spells(word, option)), 0)
        return meant.hint if typed > meant.at or not habit else f"{habit} {meant.hint}"
    if takes_words and option in AGENTS_TOO and option in argv:  # not as a part of -it, which is podman's
        return f"{habit} {_agents_option(context, option, argv)}"
    near = nearest(option, [name for name in _options(context) if name[:3] == option[:3]], _SIMILAR)
    if habit or not takes_words:
        return habit or (f"Did you mean {near}?" if near else "")
    return f"{f'Did you mean {near}? ' if near else ''}{_agents_option(context, option, argv)}"


def _in_front(option: str, argv: Sequence[str]) -> str:
    """What to type for an option of an agent's, or of a command, that has no command in front of it; or empty."""
    if option not in AGENTS_FIRST:
        return before_command.instead_of(option, argv, _LONGEST)
    general = f"podbot run -- {option}"
    is_first = _spells(argv[0], option)
    return _behind(repeated(["podbot", "run", "--", *argv], general, _LONGEST) if is_first else general)


def _after(option: str, argv: Sequence[str]) -> str:
    """The value of an ``option`` that podbot does not have, or empty."""
    found = (
        following if word == option else word.removeprefix(f"{option}=")
        for word, following in zip(argv, [*argv[1:], ""], strict=True)
        if word.partition("=")[0] == option
    )
    return next(found, "")


def _image_in(argv: Sequence[str], unknown: str = "") -> Any:
    from podbot.cli.meant_images import image_in

    return image_in(argv, unknown)


def _options(context: Any) -> list[str]:
    return [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]


def _line(context: Any) -> str:
    """The command with its arguments, as its usage shows them; the options are left out."""
    pieces = context.command.collect_usage_pieces(context)
    return " ".join([context.command_path, *(piece for piece in pieces if piece != "[OPTIONS]")])


def _agents_option(context: Any, option: str, argv: Sequence[str]) -> str:
    """A remedy with the command line to type if the unknown ``option`` is meant for the agent."""
    end = argv.index("--") if "--" in argv else len(argv)
    known = {name for parameter in context.command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    exact = [at for at in range(end) if _spells(argv[at], option)]
    line = _line(context)
    if exact:
        # A word in front that is no operand of `run` is the agent's, too.
        start = argv.index("run") + 1 if context.command_path == "podbot run" and "run" in argv else exact[0]
        at = min(exact[0], start + own_words(argv[start:], []))
        before, words = argv[:at], [*argv[at:end], *argv[end + 1 :]]
        # The words after an unknown option may be its value or podbot's own, which only the operator knows.
        mixed = any(word.partition("=")[0] in known or _is_operand(word) for word in argv[exact[0] + 1 : end])
        if not mixed and is_repeatable(argv):
            line = repeated(["podbot", *before, "--", *words], line, _LONGEST)
    return _behind(line)


def _is_shown(key: str, value: str) -> bool:
    """Whether a value of a key may be repeated: it is one, and no other value of that key can be a secret."""
    from podbot.config.coerce import from_text
    from podbot.config.models import Origin

    if key not in KEYS or (KEYS[key].kind == "string" and key not in _PUBLIC) or KEYS[key].kind in ("list", "table"):
        return False
    try:
        return from_text(KEYS[key], value, Origin("flag", "argument VALUE")) is not None
    except PodbotError:
        return False


def _behind(line: str) -> str:
    return f"Options for the agent follow --: `{line}`."


def _spells(word: str, option: str) -> bool:
    """Whether ``word`` is ``option``, also as ``--model=opus`` or ``-phi``."""
    return word.partition("=")[0] == option or (not option.startswith("--") and word.startswith(option))


def _is_operand(word: str) -> bool:
    try:
        return read_operands([word]) != Operands()
    except UsageError:
        return False
