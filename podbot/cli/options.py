"""The types of commands, options and arguments of the command line, and the options that several commands share.

The table (:mod:`podbot.cli.commands`) consists of them. They are plain values without Typer and the rest of podbot,
because the fast path and the guard of ``podbot host`` read them before anything else is loaded.
"""

# No `from __future__ import annotations`: a NamedTuple would compile each annotation from text. The first call of
# `compile` in a process takes 0.7 ms, and each annotation 0.01 ms.

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from podbot.cli.globals import Globals

HELP = ("-h", "--help")
VERSION = ("--version", "-V")

Takes = Literal["nothing", "one", "many", "number", "count"]


class Option(NamedTuple):
    """One option of a command.

    ``takes``: nothing (a switch: True or False), one word, one word for each occurrence (a tuple), a number between
    ``least`` and ``most``, or nothing, and occurrences are counted. ``metavar`` may contain ``{agents}``.
    """

    name: str  # of the argument of the command's function
    spelled: tuple[str, ...]
    help: str
    takes: Takes = "nothing"
    metavar: str = ""
    off: tuple[str, ...] = ()  # spellings that turn the switch off, one for each of `spelled`; its default is then None
    default: str | int | None = None  # for a word or a number that is not given
    least: int | None = None
    most: int | None = None
    completes: str = ""  # complete_NAME or after_NAME of podbot.cli.completion

    @property
    def absent(self) -> Any:
        """The value if the option is not given."""
        if self.takes == "nothing":
            return None if self.off else False
        if self.takes == "count":
            return 0
        return () if self.takes == "many" else self.default


class Argument(NamedTuple):
    """One argument: a word, or None if it is not given; ``many``: all remaining words, as a tuple."""

    name: str
    metavar: str = ""
    help: str = ""
    many: bool = False
    required: bool = False
    hidden: bool = False
    completes: str = ""
    names: str = ""  # "files" or "dirs": what else it may name, for completion

    @property
    def shown(self) -> str:
        """Its name in the command's usage, in brackets if it may be left out."""
        return self.metavar if self.required or self.metavar.startswith("[") else f"[{self.metavar}]"


# --- before or after every command's name ------------------------------------------------------

COMMON = (
    Option("config", ("--config", "-c"), "Configuration file.", "one", "FILE"),
    Option("engine_socket", ("--engine-socket",), "Engine endpoint: unix:///path, tcp://, ssh://…", "one", "URI"),
    Option("image", ("--image",), "Image of the sandbox.", "one", "REF", completes="image"),
    Option("verbose", ("--verbose", "-v"), "More messages; twice shows tracebacks.", "count"),
    Option("quiet", ("--quiet", "-q"), "Only warnings and errors on stderr."),
    Option("log_format", ("--log-format",), "Format of messages on stderr.", "one", "text|json", default=""),
    Option("log_file", ("--log-file",), "Write messages to this file instead of stderr.", "one", "FILE", default=""),
)

# --- shared by several commands ----------------------------------------------------------------

ALL_SESSIONS = ("--all", "-a")
YES = Option("yes", ("--yes", "-y"), "Do not ask.")
DRY_RUN = Option("dry_run", ("--dry-run",), "Show what would be done and do nothing.")

WORKSPACE = (
    Option("workspace", ("--workspace", "-w"), "Host directory that the agent works on.", "one", "PATH"),
    Option("follow_links", ("--follow-links",), "Allow a link in that path to lead out of its repository."),
    Option("repo", ("--repo",), "GitHub repository to clone in the sandbox.", "one", "OWNER/NAME"),
    Option("branch", ("--branch",), "With --repo: branch, if not the default one.", "one", "NAME"),
    Option("depth", ("--depth",), "With --repo: a shallow clone of N commits.", "number", "N"),
    Option("submodules", ("--submodules",), "With --repo: also clone the submodules.", off=("--no-submodules",)),
    Option(
        "github_access",
        ("--github-access",),
        "With --workspace: a GitHub token for this one repository.",
        "one",
        "OWNER/NAME",
    ),
    Option(
        "github_auth",
        ("--github-auth",),
        "Source of the GitHub token.",
        "one",
        "app|gh|env:NAME|none",
        completes="github_auth",
    ),
    Option("agent", ("--agent",), "Which agent to run.", "one", "{agents}", completes="agent"),
)
SESSION = (
    Option("ask", ("--ask",), "Let the agent ask before it acts."),
    Option("name", ("--name",), "Name of the session.", "one", "NAME"),
    Option("keep", ("--keep",), "Keep the container, stopped, or remove it afterwards.", off=("--rm",)),
    Option("no_history", ("--no-history",), "Neither keep nor continue conversations."),
    Option("no_guard", ("--no-guard",), "Do not check for files the agent leaves that act on this machine."),
)
SANDBOX = (
    Option(
        "env",
        ("--env", "-e"),
        "Pass your variable NAME to the agent; its value is not stored.",
        "many",
        "NAME",
        completes="variable",
    ),
    Option("env_file", ("--env-file",), "Pass the variables in a file, one NAME=VALUE a line.", "many", "FILE"),
    Option("mounts", ("--mount",), "Also mount a host directory, at DST or its own path.", "many", "SRC[:DST][:ro]"),
    Option(
        "publish",
        ("--publish", "-p"),
        "Make a port of the sandbox available here, at 127.0.0.1 or ADDRESS.",
        "many",
        "[[ADDRESS:]PORT:]PORT",
    ),
    Option(
        "network",
        ("--network",),
        "filtered, none, default, host, or a network of the engine.",
        "one",
        "NAME",
        completes="network",
    ),
    Option(
        "allow",
        ("--allow",),
        "Also allow this host, with the network filtered.",
        "many",
        "HOST[:PORT]|*.HOST|@SET",
        completes="host_set",
    ),
    Option("memory", ("--memory",), "Memory limit: 4g, 50%, or none.", "one", "SIZE"),
    Option("cpus", ("--cpus",), "CPU limit, in cores.", "one", "N"),
    Option("profile", ("--profile",), "Confinement of the sandbox.", "one", "hardened|minimal|privileged"),
    Option("read_only", ("--read-only",), "Mount the workspace read-only."),
    Option("no_creds", ("--no-creds",), "Copy none of your agents' logins into the sandbox."),
)
PLAN = (DRY_RUN, Option("as_json", ("--json",), "With --dry-run: the plan as JSON."))

# --- of one command ------------------------------------------------------------------------------

MCP = (
    Option(
        "mounts",
        ("--mount",),
        "Offer copies of a host directory or file, at PATH in the workspace, only files that match GLOB.",
        "many",
        "HOST[:PATH][:GLOB]",
    ),
    Option(
        "backend",
        ("--backend",),
        "Where commands run; unsafe-local is this machine, without isolation.",
        "one",
        "podman|unsafe-local",
        default="podman",
        completes="mcp_backend",
    ),
    Option("read_only", ("--read-only",), "Only ls, read_file, glob, grep and the tools for sandboxes."),
    Option("http", ("--http",), "Serve over HTTP on loopback; port 0 is any free one.", "one", "[HOST:]PORT"),
    Option(
        "token_file",
        ("--token-file",),
        "With --http: clients' tokens, one on a line; default: podbot's own file.",
        "one",
        "FILE",
    ),
)


class Command(NamedTuple):
    """One command. Every command also has the options of :data:`~podbot.cli.options.COMMON`; see ``common``.

    ``help`` may contain ``{known}``, the names of the agents that can be installed.

    ``runs`` names a function in ``podbot.cli`` as MODULE:FUNCTION. The function gets the merged options of COMMON as
    :class:`~podbot.cli.globals.Globals` and the values of the command's own arguments and options by name, and
    returns podbot's exit code.
    """

    path: tuple[str, ...]
    runs: str
    help: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    usage: tuple[str, ...] = ()  # see `grammar`, if the arguments do not say it
    takes_words: bool = False  # the words after the first "--" are a separate value, `words`
    ends_at_word: bool = False  # its options end at the first argument
    check: str = ""  # a function as in `runs`, which returns an error about the combination of values, or ""

    @property
    def common(self) -> tuple[Option, ...]:
        """The options of COMMON after its name: not those that it spells itself, as `ps` does -q."""
        own = {word for option in self.options for word in option.spelled}
        return tuple(option for option in COMMON if own.isdisjoint(option.spelled))

    @property
    def grammar(self) -> tuple[str, ...]:
        """What may follow its name, as the help's first line shows it; [OPTIONS] comes first if it is there."""
        return self.usage or ("[OPTIONS]", *(one.shown for one in self.arguments if not one.hidden))

    def carry_out(self, g: "Globals", values: dict[str, Any]) -> int:
        """Import the command's module and call its function; returns podbot's exit code."""
        code: int = _imported(self.runs)(g, **values)
        return code

    def mistake(self, values: dict[str, Any]) -> str:
        """An error about the combination of ``values``, or empty."""
        return _imported(self.check)(**values) if self.check else ""


CarryOut = Callable[[Command, "Globals", dict[str, Any]], int]
"""What is done with a command that was read: given its merged common options and, by name, its values."""


def _imported(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(__import__(f"podbot.cli.{module}", fromlist=[function]), function)
