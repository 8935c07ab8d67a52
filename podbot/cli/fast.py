"""The fast lane: ``exec``, ``ps`` and ``host`` without importing Typer (40 ms, a third of a whole exec).

``token-daemon`` is on it for its memory: Typer, and pydantic that it imports, are 10 MB that would be kept for good.

It knows only the plain forms of those commands. Anything else, and everything wrong, returns
None and is Typer's to parse and to explain; ``tests/cli/test_fast.py`` holds that both lanes read
the same command lines the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from podbot.cli.globals import LOG_FORMATS, Globals

_GLOBALS = {
    "-c": "config",
    "--config": "config",
    "--engine-socket": "engine_socket",
    "--image": "image",
    "--log-format": "log_format",
    "--log-file": "log_file",
}
_EXEC = {
    "-w": "workdir",
    "--workdir": "workdir",
    "-e": "env",
    "--env": "env",
    "-u": "user",
    "--user": "user",
    "--env-file": "env_file",
}
_EXEC_SWITCHES = {
    "-d": ("detach", True),
    "--detach": ("detach", True),
    "-i": ("interactive", True),
    "--interactive": ("interactive", True),
    "-t": ("tty", True),
    "--tty": ("tty", True),
    "-T": ("tty", False),
    "--no-tty": ("tty", False),
}
_HOST = {
    "-w": "workspace",
    "--workspace": "workspace",
    "--repo": "repo",
    "--branch": "branch",
    "--github-access": "access",
    "--agent": "agent",
    "--agent-mode": "agent_mode",
    "--name": "name",
    "--acp-delegation": "delegation",
    "--frame-limit": "frame_limit",
    "--transcript": "transcript",
}
_HOST_SWITCHES = {"--ask": ("ask", True), "--no-history": ("history", False), "--no-guard": ("guard", False)}
_TOKEN_SWITCHES = {"--once": ("once", True), "--json": ("as_json", True)}
_PS_SWITCHES = {
    "-a": ("include_stopped", True),
    "--all": ("include_stopped", True),
    "--json": ("as_json", True),
}

_Switches = dict[str, tuple[str, bool]]  # option -> what it sets; of two that set the same the later one counts


@dataclass
class _Seen:
    values: dict[str, list[str]] = field(default_factory=dict)
    switches: dict[str, bool] = field(default_factory=dict)
    verbose: int = 0
    words: list[str] = field(default_factory=list)
    rest: list[str] | None = None  # what stood behind "--", or from the first word on


def parse(argv: list[str]) -> Callable[[], int] | None:
    """What to run for ``argv`` (without the program's name), or None for the other lane."""
    before = _scan(argv, {}, {}, stop_at_word=True)
    if before is None or before.rest is None or not before.rest:
        return None
    command, tail = before.rest[0], before.rest[1:]
    if command == "exec":
        return _exec(before, tail)
    if command == "ps":
        return _ps(before, tail)
    if command == "host":
        return _host(before, tail)
    if command == "token-daemon":
        return _token_daemon(before, tail)
    return None


def _exec(before: _Seen, tail: list[str]) -> Callable[[], int] | None:
    after = _scan(tail, _EXEC, _EXEC_SWITCHES, stop_at_word=True)
    g = _globals(before, after)
    if after is None or g is None or not after.rest or not after.rest[0] or after.rest[1:] == ["--"]:
        return None
    from podbot.cli.exec import ExecArgs, command_words, execute

    args = ExecArgs(
        session=after.rest[0],
        command=command_words(after.rest[1:]),
        detach=after.switches.get("detach", False),
        workdir=_last(after, "workdir"),
        env=tuple(after.values.get("env", ())),
        user=_last(after, "user"),
        env_files=tuple(after.values.get("env_file", ())),
        tty=after.switches.get("tty"),
        interactive=after.switches.get("interactive", False),
    )
    return lambda: execute(g, args)


def _ps(before: _Seen, tail: list[str]) -> Callable[[], int] | None:
    after = _scan(tail, {}, _PS_SWITCHES, stop_at_word=False)
    g = _globals(before, after)
    if after is None or g is None or after.words or after.rest is not None:
        return None
    from podbot.cli.ps import PsArgs, execute

    args = PsArgs(**after.switches)
    return lambda: execute(g, args)


def _host(before: _Seen, tail: list[str]) -> Callable[[], int] | None:
    after = _scan(tail, _HOST, _HOST_SWITCHES, stop_at_word=False)
    g = _globals(before, after)
    if after is None or g is None or after.words:
        return None
    from podbot.cli.host import execute
    from podbot.cli.selection import CloneFlags, agent_keys, host_keys, selected

    others = {
        **agent_keys(_last(after, "agent"), _last(after, "agent_mode"), ask="ask" in after.switches),
        **host_keys(_last(after, "delegation"), _last(after, "frame_limit")),
    }
    args = selected(
        words=after.rest,
        name=_last(after, "name"),
        workspace=_last(after, "workspace"),
        clone=CloneFlags(_last(after, "repo"), _last(after, "branch"), access=_last(after, "access")),
        keep=None,
        history=after.switches.get("history", True),
        guard=after.switches.get("guard", True),
        dry_run=False,
        as_json=False,
        others=others,
    )
    transcript = _last(after, "transcript")
    return lambda: execute(g, args, transcript)


def _token_daemon(before: _Seen, tail: list[str]) -> Callable[[], int] | None:
    after = _scan(tail, {}, _TOKEN_SWITCHES, stop_at_word=False)
    g = _globals(before, after)
    if after is None or g is None or after.rest is not None:
        return None
    from podbot.cli.token_daemon import TokenArgs, execute

    args = TokenArgs(tuple(after.words), **after.switches)
    return None if args.mistake else lambda: execute(g, args)


def _scan(argv: list[str], options: dict[str, str], switches: _Switches, *, stop_at_word: bool) -> _Seen | None:
    """Read options; None at the first thing that is not one of the plain forms."""
    seen = _Seen()
    at = 0
    while at < len(argv):
        word = argv[at]
        if word == "--" and not stop_at_word:
            seen.rest = argv[at + 1 :]
            return seen
        if word.startswith("-"):
            read = _long if word.startswith("--") else _short
            taken = read(seen, word, argv[at + 1 : at + 2], options | _GLOBALS, switches)
            if not taken:
                return None
            at += taken
            continue
        if stop_at_word:
            seen.rest = argv[at:]
            return seen
        seen.words.append(word)
        at += 1
    return seen


def _long(seen: _Seen, word: str, following: list[str], options: dict[str, str], switches: _Switches) -> int:
    """``--name``, ``--name VALUE`` or ``--name=VALUE``: how many words it is, 0 when it is none of them."""
    name, equals, value = word.partition("=")
    if name in options:
        return _valued(seen, options[name], [value] if equals else [], following)
    return 0 if equals else _switched(seen, name, switches)


def _short(seen: _Seen, word: str, following: list[str], options: dict[str, str], switches: _Switches) -> int:
    """``-d``, ``-dit``, ``-w DIR`` or ``-wDIR``: as :func:`_long`."""
    letters = word[1:]
    for at, letter in enumerate(letters, 1):
        if name := options.get(f"-{letter}"):
            return _valued(seen, name, [letters[at:]] if letters[at:] else [], following)
        if not _switched(seen, f"-{letter}", switches):
            return 0
    return 1 if letters else 0


def _valued(seen: _Seen, name: str, attached: list[str], following: list[str]) -> int:
    value = attached or following
    seen.values.setdefault(name, []).extend(value)
    return (2 - len(attached)) if value else 0


def _switched(seen: _Seen, flag: str, switches: _Switches) -> int:
    if flag in {"-v", "--verbose"}:
        seen.verbose += 1
    elif flag in switches:
        name, value = switches[flag]
        seen.switches[name] = value
    else:
        return 0
    return 1


def _globals(before: _Seen, after: _Seen | None) -> Globals | None:
    if after is None:
        return None
    if any((_last(seen, "log_format") or "") not in LOG_FORMATS for seen in (before, after)):
        return None
    given = {name: _last(after, name) or _last(before, name) for name in _GLOBALS.values()}
    Globals.current = Globals(
        config=given["config"],
        engine_socket=given["engine_socket"],
        image=given["image"],
        verbose=before.verbose + after.verbose,
        log_format=given["log_format"] or "",
        log_file=given["log_file"] or "",
    )
    return Globals.current


def _last(seen: _Seen, name: str) -> str | None:
    values = seen.values.get(name)
    return values[-1] if values else None
