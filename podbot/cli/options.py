"""What an option and an argument of the command line are, and those that several commands have.

The table (:mod:`podbot.cli.commands`) is made of them. Plain values, without Typer and without the rest of podbot:
the fast path and the guard of ``podbot host`` read them before anything else is loaded.
"""

# No `from __future__ import annotations`: a NamedTuple compiles each annotation that is text, which takes 1 ms here.

from typing import Any, Literal, NamedTuple

HELP = ("-h", "--help")

Takes = Literal["nothing", "one", "many", "number", "count"]


class Option(NamedTuple):
    """One option of a command.

    ``takes``: nothing (it is a switch: True or False), one word, one word each time it stands there (a tuple), a number
    between ``least`` and ``most``, or nothing and it is counted. ``metavar`` may contain ``{agents}``.
    """

    name: str  # of the value that the command's function gets
    spelled: tuple[str, ...]
    help: str
    takes: Takes = "nothing"
    metavar: str = ""
    off: tuple[str, ...] = ()  # what turns the switch off, one for each of `spelled`; it is None when not given
    default: str | int | None = None  # of a word or a number that is not given
    least: int | None = None
    most: int | None = None
    completes: str = ""  # complete_NAME of podbot.cli.completion

    @property
    def absent(self) -> Any:
        """The value when the option is not given."""
        if self.takes == "nothing":
            return None if self.off else False
        if self.takes == "count":
            return 0
        return () if self.takes == "many" else self.default


class Argument(NamedTuple):
    """One argument: a word, None when it is not given; ``many``: all that are left, a tuple."""

    name: str
    metavar: str = ""
    help: str = ""
    many: bool = False
    required: bool = False
    hidden: bool = False
    completes: str = ""


# --- before or after every command's name ------------------------------------------------------

COMMON = (
    Option("config", ("--config", "-c"), "Configuration file.", "one", "FILE"),
    Option("engine_socket", ("--engine-socket",), "Engine endpoint: unix:///path, tcp://, ssh://…", "one", "URI"),
    Option("image", ("--image",), "Image of the sandbox.", "one", "REF"),
    Option("verbose", ("--verbose", "-v"), "Say more; twice shows tracebacks.", "count"),
    Option("log_format", ("--log-format",), "Form of messages on stderr.", "one", "text|json", default=""),
    Option("log_file", ("--log-file",), "Write messages there, and not to stderr.", "one", "FILE", default=""),
)

# --- of several commands -----------------------------------------------------------------------

ALL_SESSIONS = ("--all", "-a")
YES = Option("yes", ("--yes", "-y"), "Do not ask.")
DRY_RUN = Option("dry_run", ("--dry-run",), "Show what would be done and do nothing.")

WORKSPACE = (
    Option("workspace", ("--workspace", "-w"), "Host directory that the agent works on.", "one", "PATH"),
    Option("follow_links", ("--follow-links",), "Let a link in that path lead out of the repository that it lies in."),
    Option("repo", ("--repo",), "GitHub repository to clone in the sandbox.", "one", "OWNER/NAME"),
    Option("branch", ("--branch",), "With --repo: which branch, if not the default one.", "one", "NAME"),
    Option("depth", ("--depth",), "With --repo: a shallow clone of N commits.", "number", "N"),
    Option("submodules", ("--submodules",), "With --repo: clone the submodules, too.", off=("--no-submodules",)),
    Option(
        "github_access",
        ("--github-access",),
        "With --workspace: a GitHub token for this one repository.",
        "one",
        "OWNER/NAME",
    ),
    Option("agent", ("--agent",), "Which agent to run.", "one", "{agents}", completes="agent"),
)
SESSION = (
    Option("ask", ("--ask",), "Have the agent ask before it acts."),
    Option("name", ("--name",), "Name of the session.", "one", "NAME"),
    Option("keep", ("--keep",), "Keep the container, stopped, or remove it afterwards.", off=("--rm",)),
    Option("no_history", ("--no-history",), "Keep no conversation, and continue none."),
    Option("no_guard", ("--no-guard",), "Do not look at what the agent leaves that acts on this machine."),
)
PLAN = (DRY_RUN, Option("as_json", ("--json",), "With --dry-run: the plan as JSON."))
