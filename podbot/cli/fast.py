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
}
_EXEC = {"-w": "workdir", "--workdir": "workdir", "-e": "env", "--env": "env"}
_EXEC_SWITCHES = {"-d": "detach", "--detach": "detach"}
_HOST = {
    "-w": "workspace",
    "--workspace": "workspace",
    "--repo": "repo",
    "--branch": "branch",
    "--agent": "agent",
    "--agent-mode": "agent_mode",
    "--name": "name",
    "--acp-delegation": "delegation",
    "--frame-limit": "frame_limit",
    "--transcript": "transcript",
}
_TOKEN_SWITCHES = {"--once": "once", "--json": "as_json"}
_PS_SWITCHES = {"-a": "include_stopped", "--all": "include_stopped", "--json": "as_json"}


@dataclass
class _Seen:
    values: dict[str, list[str]] = field(default_factory=dict)
    switches: set[str] = field(default_factory=set)
    verbose: int = 0
    words: list[str] = field(default_factory=list)
    rest: list[str] | None = None  # what stood behind "--"


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
    after = _scan(tail, _EXEC, _EXEC_SWITCHES, stop_at_word=False)
    g = _globals(before, after)
    if after is None or g is None or len(after.words) != 1 or not after.rest or not after.words[0]:
        return None
    from podbot.cli.exec import ExecArgs, execute

    args = ExecArgs(
        session=after.words[0],
        command=tuple(after.rest),
        detach="detach" in after.switches,
        workdir=_last(after, "workdir"),
        env=tuple(after.values.get("env", ())),
    )
    return lambda: execute(g, args)


def _ps(before: _Seen, tail: list[str]) -> Callable[[], int] | None:
    after = _scan(tail, {}, _PS_SWITCHES, stop_at_word=False)
    g = _globals(before, after)
    if after is None or g is None or after.words or after.rest is not None:
        return None
    from podbot.cli.ps import PsArgs, execute

    args = PsArgs(include_stopped="include_stopped" in after.switches, as_json="as_json" in after.switches)
    return lambda: execute(g, args)


def _host(before: _Seen, tail: list[str]) -> Callable[[], int] | None:
    after = _scan(tail, _HOST, {}, stop_at_word=False)
    g = _globals(before, after)
    if after is None or g is None or after.words:
        return None
    from podbot.cli.host import execute
    from podbot.cli.selection import CloneFlags, host_keys, selected

    others = host_keys(*(_last(after, name) for name in ("agent", "agent_mode", "delegation", "frame_limit")))
    args = selected(
        words=after.rest,
        name=_last(after, "name"),
        workspace=_last(after, "workspace"),
        clone=CloneFlags(_last(after, "repo"), _last(after, "branch")),
        keep=None,
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

    args = TokenArgs(tuple(after.words), once="once" in after.switches, as_json="as_json" in after.switches)
    return None if args.mistake else lambda: execute(g, args)


def _scan(argv: list[str], options: dict[str, str], switches: dict[str, str], *, stop_at_word: bool) -> _Seen | None:
    """Read options; None at the first thing that is not one of the plain forms."""
    seen = _Seen()
    words = iter(range(len(argv)))
    for at in words:
        word = argv[at]
        if word == "--" and not stop_at_word:
            seen.rest = argv[at + 1 :]
            return seen
        if not word.startswith("-"):
            if stop_at_word:
                seen.rest = argv[at:]
                return seen
            seen.words.append(word)
        elif word in ("-v", "-vv", "--verbose"):
            seen.verbose += 2 if word == "-vv" else 1
        elif word in switches:
            seen.switches.add(switches[word])
        elif (name := options.get(word) or _GLOBALS.get(word)) and at + 1 < len(argv):
            next(words)
            seen.values.setdefault(name, []).append(argv[at + 1])
        else:
            return None
    return seen


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
    )
    return Globals.current


def _last(seen: _Seen, name: str) -> str | None:
    values = seen.values.get(name)
    return values[-1] if values else None
