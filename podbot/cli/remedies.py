"""What the command line advises after an error, in its own words: commands and options.

The errors are the library's, whose callers have no command line, so their own remedies name causes and keys only.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from typing import Final

from podbot import errors
from podbot.errors import PodbotError

_ENGINE: Final = "`podbot doctor` tests the engine."
_OWN_WORDS: Final = "`podbot doctor` checks the engine; with -v podbot prints the engine's own words."

# By class: the text, in which {remedy} is the library's remedy, {with_options} the same with what _OPTIONS adds, and
# any other name is a field of the error.
_ADVICE: Final[dict[type[PodbotError], str]] = {
    errors.AddressUnusable: "Choose another one with --http; port 0 is any free one.",
    errors.AgentNotInImage: (
        "`podbot setup {agent}` installs it in podbot's own image. If this is an image of yours, add {agent} to its"
        " Containerfile and to its label io.podbot.agents."
    ),
    errors.AlreadyStarted: "`podbot exec {session}` opens a shell in it.",
    errors.ClientBroken: "Check the program that starts `podbot host`: it must send newline-delimited JSON.",
    errors.CommandSurvived: "`podbot stop --time 0 {container}` ends everything in that session.",
    errors.ConnectionFailed: f"{{remedy}} {_ENGINE}",
    errors.ContainerNotFound: "`podbot ps -a` lists podbot's sessions.",
    errors.CreateFailed: "`podbot run --dry-run --json` shows the plan; `podbot doctor` checks the engine.",
    errors.EngineNotInstalled: (
        "{install}, or name an engine that runs elsewhere with --engine-socket. `podbot doctor` shows what else is"
        " missing."
    ),
    errors.EngineGone: "When it is back, `podbot ps -a` shows what is left and `podbot stop` removes it.",
    errors.EngineStorageFull: (
        "Free some: `podbot image rm --all` removes images that nothing needs, and `podbot stop --rm NAME` a session"
        " that `podbot ps -a` lists, with its unsaved work. Then try again. {engine_hint}"
    ),
    errors.GitNotInImage: "`podbot doctor --image` shows what an image needs; `podbot setup` builds one that has it.",
    errors.HealthCheckFailed: f"{{remedy}} {_ENGINE}",
    errors.HistoryNotFound: "`podbot history ls` lists the projects.",
    errors.LoginFailed: "Run `podbot login {agent}` again; a login that was kept before is unchanged.",
    errors.MachineNotReady: (
        "{with_options} `podbot doctor --fix` shows the commands that podbot can run for you, and asks."
    ),
    errors.NameTaken: "Choose another --name. `podbot ps -a` shows whether it is a session of podbot's.",
    errors.NetworkNotFound: (
        "Use `--network` with default, filtered, none, host, or a network that the engine has. {engine_hint}"
    ),
    errors.NoGateway: "{remedy} `podbot ps` lists the sessions that run.",
    errors.NoImageBuilder: (
        "Name an image that exists on the engine: `image` in the configuration, or --image. The engine's own tools"
        " remove images."
    ),
    errors.NoLog: "The output of an agent is recorded with `podbot run --logs`, or session.logs = true.",
    errors.NotATerminalCommand: ("At a terminal use `podbot run`; `podbot host --dry-run` shows what host would do."),
    errors.NotOurs: "`podbot ps -a` lists podbot's sessions. Use the engine's own tools for other containers.",
    errors.PermissionDenied: (
        "Use your own rootless socket (`podbot doctor` shows how), or ask for access to this one."
    ),
    errors.RemoveFailed: "`podbot stop --rm {container}` tries again.",
    errors.ReportNotFound: "`podbot report --all` shows all that are kept.",
    errors.RepairFailed: ("Run it by hand to see all of its output; `podbot doctor` shows what is still missing."),
    errors.SandboxDied: "{remedy} `podbot ps -a` shows what is left.",
    errors.SandboxStopped: "`podbot start {container}` starts a kept session.",
    errors.ServiceStartFailed: "`podbot doctor` shows the cause; the service's output is in {log}.",
    errors.SessionExists: (
        "Choose another --name, or end that session with `podbot stop {session}`; with --rm, if it is to be kept, and"
        " its unsaved work is lost."
    ),
    errors.SessionKept: (
        "Choose another --name. `podbot start {session}` restarts it; `podbot stop --rm {session}` removes it, and its"
        " unsaved work is lost."
    ),
    errors.HistoryInUse: "{remedy} `podbot stop --rm NAME` does both, and its unsaved work is lost.",
    errors.SessionNotRestorable: (
        "{remedy} `podbot stop {session}` stops it; `podbot stop --rm {session}` removes it, and its unsaved work is"
        " lost."
    ),
    errors.SessionRecordUnknown: (
        "Use the podbot that wrote it. If that is gone, `podbot stop --rm {session}` removes its container, and then"
        " the record's directory can be removed."
    ),
    errors.SessionRuns: (
        "`podbot stop {session}` ends it, and removes it unless it is to be kept. `podbot rm --force {session}` removes"
        " it in any case, and its unsaved work is lost."
    ),
    errors.StartFailed: "`podbot doctor` checks the engine for the usual causes.",
    errors.StopFailed: "Try `podbot stop --time 0 {container}`.",
    errors.TerminalTooSmall: "Enlarge it, or run the agent without a terminal (`podbot run … < prompt`).",
    errors.TokenSessionMissing: (
        "`podbot ps` lists the sessions, with a column TOKEN if one of them has a token. One that is started with"
        " --repo or --github-access gets it."
    ),
    errors.UnknownKey: "{remedy} `podbot docs reference/config` describes every key, with its variable.",
    errors.UnsafeStore: "Move it away, or start with --no-history.",
    errors.UsageError: "`{command} --help` shows its usage.",
}
_NO_WORKSPACE: Final = (
    "Name a directory (`--workspace PATH`), or a repository to clone (`--repo OWNER/NAME`). podbot takes the"
    " current directory only for `podbot run` on a terminal."
)
_NO_IMAGE: Final = (
    "`podbot setup` writes the key. It takes podbot's own image if the engine has it, and otherwise builds it in about"
    " a minute."
)
# What the library's remedies call by configuration keys, arguments or in words, and the options and commands for it.
_OPTIONS: Final = (
    (re.compile(r"agent\.kind = (?!custom)(\w+( or \w+)*)"), r"\g<0> (`--agent`)"),
    (re.compile(r"agent\.mode = (\w+)\b(?! or)"), r"\g<0> (`--agent-mode \1`)"),
    (re.compile(r"agent\.mode = \w+( or \w+)+"), r"\g<0> (`--agent-mode`)"),
    (re.compile(r"the editor start host"), "the editor start `podbot host`"),
    (re.compile(r"sandbox\.network = \w+"), r"\g<0> (`--network`)"),
    (
        re.compile(r"Set network\.private = (\S+) for sessions that start from then on\."),
        r"`podbot config set network.private \1` opens it for later sessions, and PODBOT_NETWORK_PRIVATE=\1 for one.",
    ),
    (re.compile(r"workspace\.host_path"), r"\g<0> (`--workspace PATH`)"),
    (
        re.compile(r"Clone (https?://\S+?/([\w.-]+?)(?:\.git)?/?) yourself, and name its directory .+"),
        r"Clone it yourself, `git clone \1 ./\2`, and name its directory with `-w ./\2` in place of the repository.",
    ),
    (
        re.compile(r"or, if you chose the path yourself, pass LaunchRequest\(trusted_workspace=True\)"),
        "or name it on the command line (`--workspace PATH`)",
    ),
    (re.compile(r"name the branch (\S+) by itself"), r"`--branch \1`"),
    (re.compile(r"Everything is reachable with sandbox\.network = default"), r"\g<0> (`--network default`)"),
    (re.compile(r"a repository to clone"), r"\g<0> (`--repo OWNER/NAME`)"),
    (re.compile(r"Leave the allowed hosts out"), "Leave `--allow` out"),
    (re.compile(r"A single file is copied into a session"), r"\g<0> (`podbot cp`)"),
    (re.compile(r"set follow_links"), "add `--follow-links`"),
    (re.compile(r"Allow more bytes"), r"\g<0> (`--limit SIZE`)"),
    (re.compile(r"Have root give this user a range .+ build again"), r"\g<0>: `podbot doctor` has the command"),
    (
        re.compile(r"removing kept sessions that are no longer needed"),
        r"\g<0> (`podbot ps -a` lists them; `podbot stop --rm NAME` removes one, and its unsaved work is lost)",
    ),
    (re.compile(r"Remove the sessions? .+ first"), r"\g<0> (`podbot stop --rm NAME`; its unsaved work is lost)"),
)
# Set-up asks first, so without a terminal it refuses. Not in a text that says so already, or asks for the help only.
_SETUP: Final = re.compile(r"`(podbot (?:--config [^`]+ )?setup(?:(?! --(?:yes|help)\b) [^` ]+)*)`")
_PAGE: Final = re.compile(r"page ([a-z-]+/[a-z-]+) of the documentation")
# By class and reason, for reasons that have a remedy of their own.
_BY_REASON: Final[dict[tuple[type[PodbotError], object], str]] = {
    (errors.SessionNotRestorable, errors.SessionNotRestorable.NOT_KEPT): (
        "Only sessions that were started with --keep can be restarted, and clones with unsaved work."
    ),
    (errors.SessionNotRestorable, errors.SessionNotRestorable.CLONE_RUNS): (
        "End its agent. If work is left that is not pushed, `podbot start {session}` starts it then."
    ),
    (errors.TokenSessionMissing, errors.TokenSessionMissing.NONE): (
        "A session gets one when it is started with --repo or --github-access, and --github-auth or github.auth."
    ),
    (errors.NoGateway, errors.NoGateway.OTHER): (
        "Start a session with `--network filtered`: one that exists keeps its network."
    ),
    (errors.ImageNotRemoved, errors.ImageNotRemoved.MISSING): "`podbot image ls` lists podbot's images.",
    (errors.StartFailed, errors.StartFailed.UNKNOWN): _OWN_WORDS,
    (errors.RemoveFailed, errors.RemoveFailed.CHANGING): "Try again; with -v podbot prints the engine's own words.",
    (errors.StartFailed, errors.StartFailed.RUNS): "`podbot stop {container}` ends it; then start it again.",
    (errors.ExecFailed, errors.ExecFailed.NOT_RUNNING): "`podbot start {container}` starts a kept session.",
    (errors.ExecFailed, errors.ExecFailed.LOST): (
        "`podbot stop {container}` ends them; `podbot start {container}` then starts a kept session."
    ),
    (errors.ExecFailed, errors.ExecFailed.NOT_STARTED): _OWN_WORDS,
}
_SYSTEMCTLS: Final = ("start", "stop", "restart", "run", "enable", "disable")
# These say in their hint what to do, which is better than the text above.
_HINT_WINS: Final = (errors.CommandSurvived, errors.CreateFailed, errors.StartFailed, errors.UsageError)


def remedy_of(exc: PodbotError, *, terminal: bool = True) -> str:
    """What the operator can do at the command line, or empty. ``terminal``: podbot can ask there."""
    remedy = _remedy_of(exc)
    if str(exc.fields.get("origin", "")).startswith("flag "):  # and not a variable
        remedy = remedy.replace("Unset it", "Leave it out").replace("or unset it", "or leave it out")
    return remedy if terminal else _SETUP.sub(r"`\1 --yes`", remedy)


def _remedy_of(exc: PodbotError) -> str:
    if isinstance(exc, errors.TokenSessionMissing) and (near := _unit_word(exc.session)):
        return f"Did you mean `podbot token-daemon {near}`?"
    if isinstance(exc, errors.TokenSessionMissing) and exc.session in _SYSTEMCTLS:
        return (
            f"There is no command {exc.session}, and it counts as a session's name: `podbot token-daemon` runs the"
            " daemon here, `podbot token-daemon install` as a service."
        )
    if special := _by_its_state(exc):
        return special
    if isinstance(exc, errors.MissingRequired) and exc.field == "image":
        return f"{_no_configuration()}{_NO_IMAGE}"
    text = _ADVICE.get(type(exc))
    if text is None or (isinstance(exc, _HINT_WINS) and exc.hint):
        return with_options(exc.remedy)
    names = {"remedy": exc.remedy, "with_options": with_options(exc.remedy)}
    return text.format_map(exc.fields | names).strip().replace("  ", " ")


def _no_configuration() -> str:
    """Where podbot looked for a configuration and found none: with sudo and without HOME it is another place."""
    from podbot.cli.globals import Globals
    from podbot.config.load import config_location

    path, _, exists = config_location(Globals.current.load_options(os.environ, {}, {}))
    return "" if exists else f"There is no configuration file {path}. "


def _by_its_state(exc: PodbotError) -> str:
    """The remedy for an error whose class alone does not say what to do; empty for others."""
    if isinstance(exc, errors.AlreadyStarted) and exc.state == exc.CHANGING:
        return "`podbot ps -a` shows when that is done."
    if isinstance(exc, errors.MissingRequired) and exc.field == "a workspace":
        return _NO_WORKSPACE
    if isinstance(exc, errors.ConfigFileNotFound) and exc.reason == exc.MISSING:
        return f"Correct the path, or write the file with `podbot --config {shlex.quote(exc.path)} config init`."
    if isinstance(exc, errors.ImageNotFound):
        return " ".join(filter(None, (exc.hint, _another_image(exc), exc.engine_hint)))
    return _by_its_reason(exc) or _BY_REASON.get((type(exc), exc.fields.get("reason")), "").format_map(exc.fields)


def _by_its_reason(exc: PodbotError) -> str:
    if type(exc) is not errors.PathError:  # its subclasses have advice
        return ""
    parent = os.path.dirname(os.path.abspath(exc.path)) if "\0" not in exc.path else ""
    if exc.reason == os.strerror(errno.ENOENT) and exc.operation.startswith("write") and os.path.isdir(parent):
        return f"No file can be made in {parent}: choose another directory."
    if exc.reason == errors.PathError.IS_LINK:
        return f"Write its target: {os.path.realpath(exc.path)}."
    return ""


def _another_image(exc: errors.ImageNotFound) -> str:
    from podbot.images.recipe import load_recipe

    if exc.image == load_recipe().image:
        return "`podbot setup` builds it."
    kind, _, detail = exc.origin.partition(" ")
    undo = {"flag": f"leave out {detail}", "variable": f"unset {detail}", "config": "remove `image` from that file"}
    setup = "podbot setup"
    if kind == "config" and detail.startswith("file "):
        path = re.sub(r", project .*", "", detail.removeprefix("file "), flags=re.DOTALL)
        setup = f"podbot --config {shlex.quote(path)} setup"
    if kind not in undo or detail == "--base":
        return "Check the name, or build it."
    return f"Check the name, or build it. For podbot's own image, {undo[kind]}, and run `{setup}`."


def with_options(remedy: str) -> str:
    """``remedy``, or a fix of doctor's, with the options and commands for what it names, and for its pages."""
    for key, option in _OPTIONS:
        remedy = key.sub(option, remedy, count=1)
    return with_pages(remedy)


def with_pages(text: str) -> str:
    """``text`` with the commands that show the pages which it names."""
    return _PAGE.sub(r"`podbot docs \1`", text)


def _unit_word(session: str) -> str:
    """The word of token-daemon that a session's name is a misspelling of, or empty."""
    from podbot.cli.commands import UNIT_WORDS
    from podbot.config.schema import nearest

    return nearest(session, UNIT_WORDS, 0.8)  # systemctl's `start` is no `status`


def paragraph(exc: PodbotError, *, terminal: bool = True) -> str:
    """The message and the remedy, as they are printed. ``terminal``: see :func:`remedy_of`."""
    remedy = remedy_of(exc, terminal=terminal)
    return f"{exc.message}. {remedy}" if remedy else exc.message
