"""The command line: every command, its arguments, options and help. They are defined here and nowhere else.

Typer's commands (:mod:`podbot.cli.app`), the fast path that does without Typer (:mod:`podbot.cli.fast`) and the check
that the reference page names every option are made from it (ADR 0024).
"""

# Without `from __future__ import annotations`, as podbot.cli.options: it is on the fast path.

from typing import TYPE_CHECKING, Any, NamedTuple

from podbot.cli.options import ALL_SESSIONS, PLAN, SESSION, WORKSPACE, YES, Argument, Option

if TYPE_CHECKING:
    from podbot.cli.globals import Globals

HELP_TEXT = "Run any AI coding agent inside a Podman sandbox."
EPILOG = "Start with: podbot setup, then, in a project: podbot run"
GROUPS = {
    "config": "Show, write, find or check the configuration.",
    "history": "Conversations that later sessions can continue: list them, remove them.",
    "image": "Build the sandbox image; list those that are there.",
}


class Command(NamedTuple):
    """One command. Every one has the options of :data:`~podbot.cli.options.COMMON`, too.

    ``help`` may contain ``{known}``, the names of the agents that can be installed.

    ``runs`` names a function of ``podbot.cli`` as MODULE:FUNCTION. It gets the merged options of COMMON as
    :class:`~podbot.cli.globals.Globals` and, by name, the value of every argument and option of its own, and returns
    podbot's exit code.
    """

    path: tuple[str, ...]
    runs: str
    help: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    usage: tuple[str, ...] = ()  # for the help's first line, where it says more than the parser's own
    takes_words: bool = False  # what stands behind the first "--" is a value of its own, `words`
    ends_at_word: bool = False  # its options end at the first argument
    check: str = ""  # a function as in `runs`, of the same values: what is wrong with them together, or ""
    fast: bool = False  # its module does without Typer and rich

    def carry_out(self, g: "Globals", values: dict[str, Any]) -> int:
        """Import the command's module and call its function; returns podbot's exit code."""
        code: int = _imported(self.runs)(g, **values)
        return code

    def mistake(self, values: dict[str, Any]) -> str:
        """What is wrong with ``values`` together; empty when they are fine."""
        return _imported(self.check)(**values) if self.check else ""


def _imported(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(__import__(f"podbot.cli.{module}", fromlist=[function]), function)


def find(words: list[str]) -> Command | None:
    """The command that ``words`` begins with."""
    return BY_PATH.get(tuple(words[:1])) or BY_PATH.get(tuple(words[:2]))


COMMANDS = (
    Command(
        ("run",),
        "run:invoke",
        """Run an agent in a sandbox, on a directory of yours or on a clone.

        The agent has full permissions inside and sees of the host's files the workspace, the git directory that it
        leads to, a copy of its login, and its own conversations. On a terminal the current directory is the workspace
        when none is named. Words for the agent stand behind --. The sandbox is removed when the agent ends, unless it
        holds a clone with unsaved work; podbot exits with the agent's status.

        Example: podbot run codex ~/src/shop

        Example: podbot run . -- --model opus

        Example: podbot run --repo octo/hello --branch main
        """,
        (
            Argument(
                "operands",
                "[AGENT] [PATH]",
                "Which agent, and the host directory that it works on; as --agent and --workspace.",
                many=True,
                completes="agent",
            ),
        ),
        (
            *WORKSPACE,
            Option("agent_mode", ("--agent-mode",), "How it runs.", "one", "podbot", completes="run_mode"),
            *SESSION,
            Option(
                "guard_exit", ("--guard-exit",), "Exit with 3 when something was left that runs at git status or cd."
            ),
            *PLAN,
        ),
        usage=("[OPTIONS]", "[AGENT] [PATH]", "[-- WORDS…]"),
        takes_words=True,
        fast=True,
    ),
    Command(
        ("host",),
        "host:invoke",
        """Serve an agent to an editor over stdin and stdout.

        For an editor's settings, not for a terminal: the editor starts this command and speaks ACP (or the
        Codex App Server's protocol) with the agent in the sandbox. Nothing but frames of it ever reaches stdout.

        Example: podbot host --workspace . --agent claude
        """,
        (Argument("operands", many=True, hidden=True),),
        (
            *WORKSPACE,
            Option(
                "agent_mode",
                ("--agent-mode",),
                "Protocol that it speaks.",
                "one",
                "acp|codex_app_server",
                completes="host_mode",
            ),
            *SESSION,
            Option(
                "acp_delegation",
                ("--acp-delegation",),
                "What the agent may use of the editor's machine.",
                "one",
                "none|fs|terminal|all",
            ),
            Option("frame_limit", ("--frame-limit",), "Longest frame that is handed on.", "one", "SIZE"),
            Option("transcript", ("--transcript",), "Add what passes to this file, redacted.", "one", "FILE"),
            *PLAN,
        ),
        usage=("[OPTIONS]", "[-- WORDS…]"),
        takes_words=True,
        fast=True,
    ),
    # As for `podman exec`, podbot's options end at SESSION: what stands behind it is the command's, options included.
    Command(
        ("exec",),
        "exec:invoke",
        """Run a command in a running container; without one, open a shell.

        It gets a terminal when stdin and stdout both are one. podbot exits with its status, and ends it
        when podbot itself is ended. Options stand before SESSION; everything behind it is the command.

        Example: podbot exec podbot-shop-1a2b3c git status

        Example: podbot exec podbot-shop-1a2b3c
        """,
        (
            Argument("session", "SESSION", "Container.", required=True, completes="session"),
            Argument("command", "[[--] CMD…]", "Command to run in it; none opens a shell.", many=True),
        ),
        (
            Option("detach", ("--detach", "-d"), "Attach no stream; wait for the command and exit with its status."),
            Option("interactive", ("--interactive", "-i"), "Attach stdin; podbot does so in any case."),
            Option(
                "tty",
                ("--tty", "-t"),
                "A terminal, if podbot has one, which is the default; or none.",
                off=("--no-tty", "-T"),
            ),
            Option("user", ("--user", "-u"), "Who runs it: names or numbers.", "one", "USER[:GROUP]"),
            Option("workdir", ("--workdir", "-w"), "Where to run it.", "one", "DIR"),
            Option("env", ("--env", "-e"), "A variable for it; K alone passes yours on.", "many", "K=V"),
            Option("env_file", ("--env-file",), "Variables for it, one to a line: K=V or K.", "many", "FILE"),
        ),
        usage=("[OPTIONS]", "SESSION", "[--] [CMD…]"),
        ends_at_word=True,
        fast=True,
    ),
    Command(
        ("ps",),
        "ps:invoke",
        "List podbot's sessions.",
        options=(
            Option("all_", ALL_SESSIONS, "Stopped sessions too."),
            Option("as_json", ("--json",), "As a JSON array."),
        ),
        fast=True,
    ),
    Command(
        ("start",),
        "start:invoke",
        """Start kept sessions again, with their tokens, logins and guard.

        The sandbox then runs without a podbot process: `podbot exec` works in it, `podbot stop` stops it.

        Example: podbot start shop
        """,
        (Argument("sessions", "SESSION…", "Which to start.", required=True, many=True, completes="session"),),
    ),
    Command(
        ("stop",),
        "stop:invoke",
        """Stop sessions and remove their containers; kept ones (--keep) are stopped only.

        A clone that holds unsaved work is stopped only, too. Touches nothing that podbot did not start.
        """,
        (Argument("sessions", "SESSION…", "Which to stop.", many=True, completes="session"),),
        (
            Option("all_", ALL_SESSIONS, "All of podbot's sessions."),
            Option("time", ("--time", "-t"), "Seconds before processes are killed.", "number", "S", (), 10, 0, 3600),
            Option("remove", ("--rm",), "Remove sessions that were to be kept, and unsaved work, too."),
        ),
        fast=True,
    ),
    Command(
        ("token-daemon",),
        "token_daemon:invoke",
        """Renew the GitHub tokens of sessions until told to end.

        A podbot that runs or hosts a session renews its token, and makes way for a token-daemon while one runs.
        What the daemon is for: sessions whose podbot was killed, and one process that does it for all.

        install writes, enables and starts a systemd user unit for it; uninstall takes that back; status shows the
        unit and every session's token.

        Example: podbot token-daemon install
        """,
        (
            Argument(
                "words",
                "[SESSION…|install|uninstall|status]",
                "Sessions to keep; none means all.",
                many=True,
                completes="session",
            ),
        ),
        (
            Option("once", ("--once",), "Renew what is due, say so, and end."),
            Option("as_json", ("--json",), "With --once or status: as JSON."),
        ),
        check="token_daemon:mistake",
        fast=True,
    ),
    Command(
        ("config", "show"),
        "config:show",
        "Print every value in force, as TOML.",
        options=(
            Option("origin", ("--origin",), "Say where each value came from."),
            Option("as_json", ("--json",), "As JSON, with origins."),
        ),
    ),
    Command(
        ("config", "init"),
        "config:init",
        "Write a documented file in which every key is commented out, and print where it is.",
        options=(Option("force", ("--force",), "Replace a file that is there."),),
    ),
    Command(("config", "path"), "config:path", "Print the path of the file that would be read."),
    Command(
        ("config", "check"), "config:check", "Load the configuration, every layer of it, and say whether it is valid."
    ),
    Command(
        ("history", "ls"),
        "history:ls",
        """List the projects whose conversations are kept: agents, size on the disk, last use.

        No engine is needed, and nothing that an agent wrote is read.
        """,
        options=(Option("as_json", ("--json",), "As a JSON array."),),
    ),
    Command(
        ("history", "rm"),
        "history:rm",
        """Remove conversations for good.

        Refused while a session mounts them, a kept one included.

        Example: podbot history rm ~/src/shop
        """,
        (Argument("project", "[PROJECT]", "A directory, or OWNER/NAME.", completes="project"),),
        (
            Option("all_", ALL_SESSIONS, "The conversations of all projects."),
            Option("agent", ("--agent",), "Those with this agent only.", "one", "KIND", completes="agent"),
            YES,
        ),
        check="history:mistake",
    ),
    Command(
        ("image", "build"),
        "image:build",
        """Build the sandbox image.

        Agents: {known}; without --agents those that the image has, or claude. What is
        built already is not built again. --from-debian with --no-cache makes the base anew, too.

        Example: podbot image build --agents claude,codex
        """,
        options=(
            Option("agents", ("--agents",), "Agents to build in; empty for none.", "one", "NAME,…"),
            Option("base", ("--base",), "Build on this Debian or Ubuntu image.", "one", "REF", default=""),
            Option("from_debian", ("--from-debian",), "Make the base from this machine's packages, or fail."),
            Option("build_arg", ("--build-arg",), "Another version, or a proxy setting.", "many", "K=V"),
            Option("no_cache", ("--no-cache",), "Use no layer of an earlier build."),
            Option("tag", ("--tag", "-t"), "Name of the image.", "one", "REF", default=""),
        ),
    ),
    Command(
        ("image", "ls"),
        "image:ls",
        "List podbot's images: name, agents and their versions, size, age.",
        options=(Option("as_json", ("--json",), "As a JSON array."),),
    ),
    Command(
        ("setup",),
        "setup:setup",
        """Build the sandbox image and write its name into the configuration.

        Does nothing when that is done already. Agents: {known}; without --agents those that the
        image has, or claude. An image of your own that the configuration names is left alone. A machine on which
        no session could start is refused before anything is built, with the commands that fix it.

        Example: podbot setup --yes --agents claude,codex
        """,
        options=(
            YES,
            Option("agents", ("--agents",), "Agents to build in.", "one", "NAME,…"),
            Option("force", ("--force",), "Build anew although the image is there."),
        ),
    ),
    Command(
        ("doctor",),
        "doctor:doctor",
        """Check the configuration, this machine, the engine and the image, and say how to fix what is wrong.

        With --image REF also what that image lacks: a throw-away container of it, without network and mounts,
        is asked.

        Exits 0 when nothing fails (warnings are fine), 1 otherwise.
        """,
        options=(Option("as_json", ("--json",), "As a JSON array of checks."),),
    ),
)
BY_PATH = {command.path: command for command in COMMANDS}
