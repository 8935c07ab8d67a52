"""The commands for sessions that exist, a part of the table of the command line (:mod:`podbot.cli.commands`)."""

# Without `from __future__ import annotations`, like podbot.cli.options, because it is on the fast path.

from podbot.cli.options import ALL_SESSIONS, Argument, Command, Option

_RUNS = (
    Option("user", ("--user", "-u"), "User to run it as: names or numbers.", "one", "USER[:GROUP]"),
    Option("workdir", ("--workdir", "-w"), "Where to run it.", "one", "DIR"),
    Option("env", ("--env", "-e"), "Set a variable; K alone passes your value.", "many", "K=V", completes="variable"),
    Option("env_file", ("--env-file",), "Set variables from a file, one a line: K=V or K.", "many", "FILE"),
)
_FILTERED = Argument("session", "SESSION", "A running session.", required=True, completes="session")
_HOSTS = Argument(
    "hosts", "HOST[:PORT]…", "HOST, *.HOST, HOST:PORT or @SET.", many=True, required=True, completes="host_set"
)
_JSON = Option("as_json", ("--json",), "Print a JSON array.")
_TIME = Option("time", ("--time", "-t"), "Seconds before processes are killed.", "number", "S", (), 10, 0, 3600)

SESSION_COMMANDS = (
    # As with `podman exec`, podbot's options end at SESSION: everything after it, including options, is the command.
    Command(
        ("exec",),
        "exec:invoke",
        """Run a command, or a shell, in a running container.

        The command gets a terminal if both stdin and stdout are terminals. podbot exits with its status, and
        terminates it when podbot itself is terminated. Options precede SESSION; everything after it is the command.

        Example: podbot exec podbot-shop-1a2b3c git status

        Example: podbot exec podbot-shop-1a2b3c
        """,
        (
            Argument("session", "SESSION", "Container.", required=True, completes="session"),
            Argument("command", "[[--] CMD…]", "Command to run in it; none opens a shell.", many=True),
        ),
        (
            Option("detach", ("--detach", "-d"), "Attach no streams; wait for the command and exit with its status."),
            Option(
                "interactive",
                ("--interactive", "-i"),
                "Attach stdin (the default), or give it no input.",
                off=("--no-interactive", "-I"),
            ),
            Option(
                "tty",
                ("--tty", "-t"),
                "Give it a terminal if podbot has one (the default), or none.",
                off=("--no-tty", "-T"),
            ),
            *_RUNS,
        ),
        usage=("[OPTIONS]", "SESSION", "[--] [CMD…]"),
        ends_at_word=True,
    ),
    Command(
        ("open",),
        "exec:open_shell",
        """Open a shell in a running session.

        The same as `podbot exec SESSION` without a command: bash if the image has it, else sh.

        Example: podbot open shop
        """,
        (Argument("session", "SESSION", "Session, or another container.", required=True, completes="session"),),
        _RUNS,
    ),
    Command(
        ("ps",),
        "ps:invoke",
        """List podbot's sessions.

        Example: podbot ps --filter agent=claude --format '{{.Name}} {{.State}}'
        """,
        options=(
            Option("all_", ALL_SESSIONS, "Include stopped sessions."),
            Option("names_only", ("--quiet", "-q"), "Print names only."),
            Option(
                "filters",
                ("--filter", "-f"),
                "Only those that fit, such as agent=claude.",
                "many",
                "KEY=VALUE",
                completes="filter",
            ),
            Option(
                "template",
                ("--format",),
                "Print fields such as {{.Name}} and {{.State}}; or json.",
                "one",
                "TEMPLATE",
                completes="template",
            ),
            _JSON,
        ),
    ),
    Command(
        ("inspect",),
        "inspect:invoke",
        """Show all that is known of sessions.

        That is the state, podbot's record, the plan without secrets, and the confinement that the engine and the kernel
        report.

        Example: podbot inspect --json shop
        """,
        (Argument("sessions", "SESSION…", "Sessions to show.", required=True, many=True, completes="session"),),
        (_JSON,),
    ),
    Command(
        ("cp",),
        "cp:invoke",
        """Copy files between this machine and a running session.

        A path in a session is written NAME:PATH. Directories are copied with all that is in them; DIR/. is the content.
        What comes from a session is the agent's: look at it before you use it.

        Example: podbot cp shop:/tmp/report.html .

        Example: podbot cp fixtures shop:/work
        """,
        (
            Argument("source", "SRC", "A path, or NAME:PATH.", required=True, completes="copy", names="files"),
            Argument("target", "DST", "NAME:PATH, or a path.", required=True, completes="copy", names="files"),
        ),
        (
            Option("limit", ("--limit",), "The most that is copied; default 4g.", "one", "SIZE"),
            Option("as_json", ("--json",), "Print what was copied and what was left out as JSON."),
        ),
    ),
    Command(
        ("logs",),
        "logs:invoke",
        """Print what a session's agent has printed.

        Only sessions that were started with --logs, or with session.logs = true, record it. Control sequences are left
        out, because the agent chooses them and they can do anything to a terminal; --raw prints them.

        Example: podbot logs --tail 20 shop
        """,
        (Argument("session", "SESSION", "The session.", required=True, completes="session"),),
        (
            Option("follow", ("--follow", "-f"), "Also print what follows, until the session ends."),
            Option("tail", ("--tail", "-n"), "Only the last N lines.", "number", "N", least=0),
            Option("raw", ("--raw",), "Print the recorded bytes as they are."),
        ),
    ),
    Command(
        ("report",),
        "report_command:invoke",
        """Show what hosted sessions have left in their workspaces.

        podbot run says at its end what the agent left that acts on this machine, and that a clone was kept. An editor
        swallows what podbot host says, and its sessions often end after it. So it is kept until you ask for it here:
        the newest first, each once; SESSION or --all shows it again. The newest 100 reports are kept. This needs no
        engine.

        Example: podbot report

        Example: podbot report --json podbot-shop-1a2b3c
        """,
        (Argument("session", "[SESSION]", "Only this session's, also if it was shown before.", completes="report"),),
        (
            Option("all_", ALL_SESSIONS, "Include reports that were shown before."),
            Option(
                "guard_exit",
                ("--guard-exit",),
                "Exit with 3 if one of them names files that act at git status or cd, or if podbot cannot find out."
                " Such a report then does not count as shown.",
            ),
            _JSON,
        ),
        check="report_command:mistake",
    ),
    Command(
        ("net", "show"),
        "net:show",
        """Print what a filtered session may reach.

        Named sets, such as @registries, are shown as their hosts.
        """,
        (_FILTERED,),
        (Option("as_json", ("--json",), "Print JSON."),),
    ),
    Command(
        ("net", "log"),
        "net:log",
        """Print a filtered session's connections and refusals.

        The log shows hosts, ports, sizes and reasons, and is removed with the session.

        Example: podbot net log shop --refused
        """,
        (_FILTERED,),
        (
            Option("refused", ("--refused",), "Only what was refused."),
            Option("follow", ("--follow", "-f"), "Also print what follows, until the session ends."),
            Option("tail", ("--tail", "-n"), "Only the last N entries.", "number", "N", least=0),
            Option("as_json", ("--json",), "Print an object of JSON on each line."),
        ),
    ),
    Command(
        ("net", "allow"),
        "net:allow",
        """Allow a running session to reach more hosts.

        In effect at once, and until the session ends. Without a port, 443 and 80. For later sessions, use network.allow
        in the configuration.

        Example: podbot net allow shop docs.example.com

        Example: podbot net allow shop '*.example.com' api.example.org:8443 @containers
        """,
        (_FILTERED, _HOSTS),
        (Option("as_json", ("--json",), "Print the rules in effect as JSON."),),
    ),
    Command(
        ("net", "deny"),
        "net:deny",
        """Deny hosts to a running session.

        In effect at once, and until the session ends. Open connections to them are closed. A denial is stronger than
        what allows the host.

        Example: podbot net deny shop gist.github.com
        """,
        (_FILTERED, _HOSTS),
        (Option("as_json", ("--json",), "Print the rules in effect as JSON."),),
    ),
    Command(
        ("start",),
        "start:invoke",
        """Restart kept sessions with their tokens, logins and guard.

        The sandbox then runs without a podbot process: use `podbot exec` to work in it, `podbot stop` to stop it.

        Example: podbot start shop
        """,
        (Argument("sessions", "SESSION…", "Sessions to start.", required=True, many=True, completes="session"),),
        (_JSON,),
    ),
    Command(
        ("restart",),
        "start:restart",
        """Stop kept sessions and start them again.

        Nothing is removed, and a stopped session is only started. A podbot that runs the session ends with it. A
        session that would be removed at its end is refused, before anything is stopped.

        Example: podbot restart shop
        """,
        (Argument("sessions", "SESSION…", "Sessions to restart.", required=True, many=True, completes="session"),),
        (_TIME, _JSON),
    ),
    Command(
        ("stop",),
        "stop:invoke",
        """Stop sessions, and remove those that are not kept.

        A session with --keep, or whose clone has unsaved work, is only stopped. Other programs' containers are never
        touched.
        """,
        (Argument("sessions", "SESSION…", "Sessions to stop.", many=True, completes="session"),),
        (
            Option("all_", ALL_SESSIONS, "All of podbot's sessions."),
            _TIME,
            Option("remove", ("--rm",), "Also remove kept sessions and unsaved work."),
            _JSON,
        ),
    ),
    Command(
        ("rm",),
        "stop:remove",
        """Remove stopped sessions with all that is in them.

        Unsaved work in a clone is removed, too. A session that runs is refused; --force stops and removes it.

        Example: podbot rm shop
        """,
        (Argument("sessions", "SESSION…", "Sessions to remove.", many=True, completes="session"),),
        (
            Option("all_", ALL_SESSIONS, "All stopped sessions; with --force, all sessions."),
            Option("force", ("--force", "-f"), "Also stop and remove sessions that run."),
            _JSON,
        ),
    ),
)
