"""The only definition of the command line: every command with its arguments, options and help.

Typer's commands (:mod:`podbot.cli.app`), the fast path without Typer (:mod:`podbot.cli.fast`) and the check that the
reference page names every option are made from it (ADR 0024).
"""

# Without `from __future__ import annotations`, like podbot.cli.options, because it is on the fast path.

from podbot.cli.machine_commands import LOGIN_COMMANDS, MACHINE
from podbot.cli.options import (
    ALL_SESSIONS,
    MCP,
    PLAN,
    SANDBOX,
    SESSION,
    WORKSPACE,
    YES,
    Argument,
    CarryOut,
    Command,
    Option,
)
from podbot.cli.session_commands import SESSION_COMMANDS

__all__ = ["BY_PATH", "COMMANDS", "EPILOG", "GROUPS", "HELP_TEXT", "CarryOut", "Command", "find"]

_KEY = Argument("key", "KEY", "The key, such as sandbox.memory.", required=True, completes="key")
_OF_PROJECT = Option(
    "workspace", ("--workspace", "-w"), "For a session on this directory: its project's values.", "one", "PATH"
)
UNIT_WORDS = ("install", "uninstall", "status")  # words of `podbot token-daemon` that are no session's name

HELP_TEXT = "Run any AI coding agent inside a Podman sandbox."
EPILOG = "Start with, in a project: podbot run. The documentation: podbot docs"
GROUPS = {
    "config": "Show, edit, find or check the configuration.",
    "history": "List or remove kept conversations.",
    "image": "Build, update, list or remove sandbox images.",
    "net": "Show or change what a filtered session may reach.",
}


def find(words: list[str]) -> Command | None:
    """The command named by the first of ``words``."""
    return BY_PATH.get(tuple(words[:1])) or BY_PATH.get(tuple(words[:2]))


COMMANDS = (
    Command(
        ("run",),
        "run:invoke",
        """Run an agent in a sandbox.

        The agent works on one of your directories, or on a clone of a GitHub repository.

        It has full permissions inside. Of the host's files it sees only the workspace, the workspace's git
        directory, a copy of its login, and its own conversations. On a terminal the current directory is the default
        workspace. Arguments for the agent follow --. The sandbox is removed when the agent ends, unless it contains a
        clone with unsaved work; podbot exits with the agent's status.

        A word that is an agent's name is the agent, any other is the directory: a directory called claude is ./claude.
        Without a terminal nothing is assumed: name a directory or --repo, and run podbot setup before.

        Example: podbot run codex ~/src/shop

        Example: podbot run . -- --model opus

        Example: podbot run --repo octo/hello --branch main

        Example: podbot run . -e OPENAI_API_KEY -p 3000:3000 --mount ~/docs:ro
        """,
        (
            Argument(
                "operands",
                "[AGENT] [PATH]",
                "The agent and the host directory to work on, like --agent and --workspace.",
                many=True,
                completes="operand",
                names="dirs",
            ),
        ),
        (
            *WORKSPACE,
            Option("agent_mode", ("--agent-mode",), "Mode of the agent.", "one", "podbot", completes="run_mode"),
            *SESSION,
            *SANDBOX,
            Option("logs", ("--logs",), "Record the agent's output for podbot logs."),
            Option(
                "guard_exit", ("--guard-exit",), "Exit with 3 if the session left files that act at git status or cd."
            ),
            *PLAN,
        ),
        usage=("[OPTIONS]", "[AGENT] [PATH]", "[-- WORDS…]"),
        takes_words=True,
    ),
    Command(
        ("host",),
        "host:invoke",
        """Serve an agent to an editor over stdin and stdout.

        This is for an editor's settings, not for a terminal: the editor starts this command and uses ACP (or the
        Codex App Server's protocol) to talk to the agent in the sandbox. Only frames of the protocol go to stdout.

        Example: podbot host --workspace . --agent claude
        """,
        (Argument("operands", many=True, hidden=True),),
        (
            *WORKSPACE,
            Option(
                "agent_mode",
                ("--agent-mode",),
                "Protocol of the agent.",
                "one",
                "acp|codex_app_server",
                completes="host_mode",
            ),
            *SESSION,
            *SANDBOX,
            Option(
                "acp_delegation",
                ("--acp-delegation",),
                "What the agent may use of the editor's machine.",
                "one",
                "none|fs|terminal|all",
            ),
            Option("frame_limit", ("--frame-limit",), "Longest frame that is forwarded.", "one", "SIZE"),
            Option("transcript", ("--transcript",), "Append the redacted traffic to this file.", "one", "FILE"),
            *PLAN,
        ),
        usage=("[OPTIONS]", "[-- WORDS…]"),
        takes_words=True,
    ),
    Command(
        ("mcp",),
        "mcp:invoke",
        """Serve sandboxes with tools to an agent, over MCP.

        MCP is the Model Context Protocol.

        This is for an agent's settings: the agent starts this command and talks to it over stdin and stdout. Its tools
        for files, search, a shell and Python work on copies of what --mount names. With --backend podman, the default,
        they work in sandboxes without a network: nothing else of this machine can be reached, and nothing on it
        changes. With --http it serves on loopback instead, to clients that have a token. Needs the extra;
        in a clone of podbot: uv tool install '.[mcp]', or: pipx install '.[mcp]'.

        Example: podbot mcp --mount ~/src/shop

        Example: podbot mcp --mount .:/shop --mount ~/data:/data:*.csv --read-only

        Example: podbot mcp --http 8000
        """,
        options=MCP,
    ),
    *SESSION_COMMANDS,
    *LOGIN_COMMANDS,
    Command(
        ("token-daemon",),
        "token_daemon:invoke",
        """Renew the GitHub tokens of sessions until stopped.

        A podbot that runs or hosts a session renews its token itself, except while a token-daemon runs. The daemon
        serves sessions whose podbot was killed, and lets one process renew all tokens.

        install writes, enables and starts a systemd user unit for it; uninstall removes the unit; status shows the unit
        and every session's token.

        Example: podbot token-daemon install
        """,
        (
            Argument(
                "words",
                f"[SESSION…|{'|'.join(UNIT_WORDS)}]",
                "Sessions whose tokens are renewed; default: all.",
                many=True,
                completes="daemon_word",
            ),
        ),
        (
            Option("once", ("--once",), "Renew the tokens that are due, report, and exit."),
            Option("as_json", ("--json",), "With --once or status: print JSON."),
        ),
        check="token_daemon:mistake",
    ),
    Command(
        ("config", "show"),
        "config:show",
        "Print every effective value as TOML.",
        options=(
            _OF_PROJECT,
            Option("origin", ("--origin",), "Show where each value came from."),
            Option("as_json", ("--json",), "Print JSON with origins."),
        ),
    ),
    Command(
        ("config", "init"),
        "config:init",
        "Write a file with every key, commented out; print its path.",
        options=(Option("force", ("--force",), "Replace an existing file."),),
    ),
    Command(
        ("config", "get"),
        "config:get",
        """Print the value of one key.

        A list or a table is printed as TOML. The status is 1 if the key has no value.

        Example: podbot config get image
        """,
        (_KEY,),
        (_OF_PROJECT, Option("as_json", ("--json",), "Print JSON.")),
    ),
    Command(
        ("config", "set"),
        "config:set_value",
        """Set one key in the configuration file.

        Everything else in the file stays as it is, comments too. The value is written as in a variable PODBOT_*, a list
        as a,b,c and a table as name=value,name=value; or a list or table as TOML. One that begins with - follows --.

        Example: podbot config set sandbox.memory 4g
        """,
        (_KEY, Argument("value", "VALUE", "The value.", required=True, completes="key_value")),
    ),
    Command(
        ("config", "edit"),
        "config:edit",
        """Edit the configuration file, and check it afterwards.

        With $VISUAL, $EDITOR, or the first of sensible-editor, nano and vi.
        """,
    ),
    Command(("config", "path"), "config:path", "Print the path of the file that would be read."),
    Command(("config", "check"), "config:check", "Report whether every layer of the configuration is valid."),
    Command(
        ("history", "ls"),
        "history:ls",
        """List the projects whose conversations are kept.

        It shows their agents, their size on the disk and their last use. This needs no engine, and reads no file that
        an agent wrote.
        """,
        options=(Option("as_json", ("--json",), "As a JSON array."),),
    ),
    Command(
        ("history", "rm"),
        "history:rm",
        """Remove conversations permanently.

        Refused while a session, even a kept one, mounts them.

        Example: podbot history rm ~/src/shop
        """,
        (Argument("project", "[PROJECT]", "A directory, or OWNER/NAME.", completes="project", names="dirs"),),
        (
            Option("all_", ALL_SESSIONS, "Remove the conversations of all projects."),
            Option("agent", ("--agent",), "Remove only those with this agent.", "one", "KIND", completes="agent"),
            YES,
        ),
        check="history:mistake",
    ),
    *MACHINE,
    Command(
        ("completion",),
        "completion_scripts:invoke",
        """Print the script that completes commands in a shell.

        It completes commands, options, names of sessions, agents, images, files and other values.

        Example: podbot completion bash --install
        """,
        (Argument("shell", "[bash|zsh|fish]", "The shell; default: the one in $SHELL.", completes="shell"),),
        (Option("install", ("--install",), "Write it where the shell looks for it, and print the path."),),
    ),
    Command(
        ("help",),
        "help:invoke",
        "Show the help of podbot, or of a command.",
        (Argument("words", "[COMMAND]", "A command.", many=True, completes="command"),),
        usage=("[COMMAND]",),
    ),
    Command(
        ("docs",),
        "docs:invoke",
        """Show the documentation of this podbot.

        Without a PAGE, list the pages. On a terminal a page opens in your pager; elsewhere it is printed as Markdown.

        Example: podbot docs security-model

        Example: podbot docs gpu
        """,
        (Argument("page", "[PAGE]", "A page, a word of its title or headings, or a link.", completes="page"),),
        (Option("path", ("--path",), "Print the path of the page's file."),),
    ),
    Command(("version",), "help:version", "Show podbot's version."),
)
BY_PATH = {command.path: command for command in COMMANDS}
