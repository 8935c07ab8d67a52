"""The command line as Typer sees it: names, options, help. What a command does is in its own file."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from podbot._version import __version__
from podbot.cli import config as config_commands
from podbot.cli import history as history_commands
from podbot.cli import image as image_commands
from podbot.cli.common import (
    ConfigOption,
    ImageOption,
    LogFileOption,
    LogFormatOption,
    SocketOption,
    VerboseOption,
    global_options,
)
from podbot.cli.completion import complete_agent, complete_host_mode, complete_run_mode, complete_session
from podbot.cli.doctor import doctor
from podbot.cli.globals import Globals
from podbot.cli.grammar import PlainCommand, SessionCommand
from podbot.cli.selection import CloneFlags, agent_keys, check_plan_json, host_keys, selected
from podbot.cli.setup import setup
from podbot.config.models import AGENT_KINDS

app = typer.Typer(
    name="podbot",
    help="Run any AI coding agent inside a Podman sandbox.",
    epilog="Start with: podbot setup, then, in a project: podbot run",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"podbot {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    ctx: typer.Context,
    config: ConfigOption = None,
    engine_socket: SocketOption = None,
    image: ImageOption = None,
    verbose: VerboseOption = 0,
    log_format: LogFormatOption = "",
    log_file: LogFileOption = "",
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    ctx.obj = Globals.current = Globals(config, engine_socket, image, verbose, log_format, log_file)


_AGENTS = "|".join(AGENT_KINDS)
OperandsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[AGENT] [PATH]",
        help="Which agent, and the host directory that it works on; as --agent and --workspace.",
        autocompletion=complete_agent,
    ),
]
NoOperands = Annotated[list[str] | None, typer.Argument(hidden=True)]
WorkspaceOption = Annotated[
    str | None, typer.Option("--workspace", "-w", metavar="PATH", help="Host directory that the agent works on.")
]
FollowLinksOption = Annotated[
    bool, typer.Option("--follow-links", help="Let a link in that path lead out of the repository that it lies in.")
]
RepoOption = Annotated[
    str | None, typer.Option("--repo", metavar="OWNER/NAME", help="GitHub repository to clone in the sandbox.")
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="With --repo: which branch, if not the default one.")
]
DepthOption = Annotated[
    int | None, typer.Option("--depth", metavar="N", help="With --repo: a shallow clone of N commits.")
]
SubmodulesOption = Annotated[
    bool | None, typer.Option("--submodules/--no-submodules", help="With --repo: clone the submodules, too.")
]
AccessOption = Annotated[
    str | None,
    typer.Option(
        "--github-access", metavar="OWNER/NAME", help="With --workspace: a GitHub token for this one repository."
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar=_AGENTS, help="Which agent to run.", autocompletion=complete_agent),
]
AskOption = Annotated[bool, typer.Option("--ask", help="Have the agent ask before it acts.")]
NameOption = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the session.")]
KeepOption = Annotated[
    bool | None, typer.Option("--keep/--rm", help="Keep the container, stopped, or remove it afterwards.")
]
NoHistoryOption = Annotated[bool, typer.Option("--no-history", help="Keep no conversation, and continue none.")]
NoGuardOption = Annotated[
    bool, typer.Option("--no-guard", help="Do not look at what the agent leaves that acts on this machine.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done and do nothing.")]
PlanJsonOption = Annotated[bool, typer.Option("--json", help="With --dry-run: the plan as JSON.")]


@app.command(cls=SessionCommand)
@global_options
def run(
    g: Globals,
    behind: list[str],
    operands: OperandsArgument = None,
    workspace: WorkspaceOption = None,
    follow_links: FollowLinksOption = False,
    repo: RepoOption = None,
    branch: BranchOption = None,
    depth: DepthOption = None,
    submodules: SubmodulesOption = None,
    github_access: AccessOption = None,
    agent: AgentOption = None,
    agent_mode: Annotated[
        str | None,
        typer.Option("--agent-mode", metavar="podbot", help="How it runs.", autocompletion=complete_run_mode),
    ] = None,
    ask: AskOption = False,
    name: NameOption = None,
    keep: KeepOption = None,
    no_history: NoHistoryOption = False,
    no_guard: NoGuardOption = False,
    guard_exit: Annotated[
        bool, typer.Option("--guard-exit", help="Exit with 3 when something was left that runs at git status or cd.")
    ] = False,
    dry_run: DryRunOption = False,
    as_json: PlanJsonOption = False,
) -> None:
    """Run an agent in a sandbox, on a directory of yours or on a clone.

    The agent has full permissions inside and sees of the host's files the workspace, the git directory that it
    leads to, a copy of its login, and its own conversations. On a terminal the current directory is the workspace
    when none is named. Words for the agent stand behind --. The sandbox is removed when the agent ends, unless it
    holds a clone with unsaved work; podbot exits with the agent's status.

    Example: podbot run codex ~/src/shop

    Example: podbot run . -- --model opus

    Example: podbot run --repo octo/hello --branch main
    """
    from podbot.cli import operands as typed
    from podbot.cli.run import execute

    check_plan_json("podbot run", dry_run=dry_run, as_json=as_json)
    given = typed.read_operands(operands or ())
    typed.refuse_twice(given, agent=agent, workspace=workspace, repo=repo)
    agent_flag = typed.AGENT if given.agent else "--agent"
    args = selected(
        words=behind,
        name=name,
        workspace=given.path or workspace,
        follow_links=follow_links,
        workspace_flag=typed.PATH if given.path else "--workspace",
        clone=CloneFlags(repo, branch, depth, submodules, github_access),
        keep=keep,
        history=not no_history,
        guard=not no_guard,
        dry_run=dry_run,
        as_json=as_json,
        others=agent_keys(given.agent or agent, agent_mode, ask=ask, flag=agent_flag),
    )
    raise typer.Exit(execute(g, replace(args, guard_exit=guard_exit)))


@app.command(cls=SessionCommand)
@global_options
def host(
    g: Globals,
    behind: list[str],
    operands: NoOperands = None,
    workspace: WorkspaceOption = None,
    follow_links: FollowLinksOption = False,
    repo: RepoOption = None,
    branch: BranchOption = None,
    depth: DepthOption = None,
    submodules: SubmodulesOption = None,
    github_access: AccessOption = None,
    agent: AgentOption = None,
    agent_mode: Annotated[
        str | None,
        typer.Option(
            "--agent-mode",
            metavar="acp|codex_app_server",
            help="Protocol that it speaks.",
            autocompletion=complete_host_mode,
        ),
    ] = None,
    ask: AskOption = False,
    name: NameOption = None,
    keep: KeepOption = None,
    no_history: NoHistoryOption = False,
    no_guard: NoGuardOption = False,
    acp_delegation: Annotated[
        str | None,
        typer.Option(
            "--acp-delegation", metavar="none|fs|terminal|all", help="What the agent may use of the editor's machine."
        ),
    ] = None,
    frame_limit: Annotated[
        str | None, typer.Option("--frame-limit", metavar="SIZE", help="Longest frame that is handed on.")
    ] = None,
    transcript: Annotated[
        str | None, typer.Option("--transcript", metavar="FILE", help="Add what passes to this file, redacted.")
    ] = None,
    dry_run: DryRunOption = False,
    as_json: PlanJsonOption = False,
) -> None:
    """Serve an agent to an editor over stdin and stdout.

    For an editor's settings, not for a terminal: the editor starts this command and speaks ACP (or the
    Codex App Server's protocol) with the agent in the sandbox. Nothing but frames of it ever reaches stdout.

    Example: podbot host --workspace . --agent claude
    """
    from podbot.cli.host import execute
    from podbot.cli.operands import refuse_words

    check_plan_json("podbot host", dry_run=dry_run, as_json=as_json)
    refuse_words(operands or ())
    args = selected(
        words=behind,
        name=name,
        workspace=workspace,
        follow_links=follow_links,
        clone=CloneFlags(repo, branch, depth, submodules, github_access),
        keep=keep,
        history=not no_history,
        guard=not no_guard,
        dry_run=dry_run,
        as_json=as_json,
        others={**agent_keys(agent, agent_mode, ask=ask), **host_keys(acp_delegation, frame_limit)},
    )
    raise typer.Exit(execute(g, args, transcript))


# As for `podman exec`, podbot's options end at SESSION: what stands behind it is the command's, options included.
@app.command("exec", cls=PlainCommand, context_settings={"allow_interspersed_args": False})
@global_options
def exec_(
    g: Globals,
    session: Annotated[str, typer.Argument(metavar="SESSION", autocompletion=complete_session, help="Container.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[[--] CMD…]", help="Command to run in it; none opens a shell.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Attach no stream; wait for the command and exit with its status.")
    ] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Attach stdin; podbot does so in any case.")
    ] = False,
    tty: Annotated[
        bool | None,
        typer.Option("--tty/--no-tty", "-t/-T", help="A terminal, if podbot has one, which is the default; or none."),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="USER[:GROUP]", help="Who runs it: names or numbers.")
    ] = None,
    workdir: Annotated[str | None, typer.Option("--workdir", "-w", metavar="DIR", help="Where to run it.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", metavar="K=V", help="A variable for it; K alone passes yours on.")
    ] = None,
    env_file: Annotated[
        list[str] | None, typer.Option("--env-file", metavar="FILE", help="Variables for it, one to a line: K=V or K.")
    ] = None,
) -> None:
    """Run a command in a running container; without one, open a shell.

    It gets a terminal when stdin and stdout both are one. podbot exits with its status, and ends it
    when podbot itself is ended. Options stand before SESSION; everything behind it is the command.

    Example: podbot exec podbot-shop-1a2b3c git status

    Example: podbot exec podbot-shop-1a2b3c
    """
    from podbot.cli.exec import ExecArgs, command_words, execute

    args = ExecArgs(
        session=session,
        command=command_words(command or ()),
        detach=detach,
        workdir=workdir,
        env=tuple(env or ()),
        user=user,
        env_files=tuple(env_file or ()),
        tty=tty,
        interactive=interactive,
    )
    raise typer.Exit(execute(g, args))


@app.command()
@global_options
def ps(
    g: Globals,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Stopped sessions too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON array.")] = False,
) -> None:
    """List podbot's sessions."""
    from podbot.cli.ps import PsArgs, execute

    raise typer.Exit(execute(g, PsArgs(all_, as_json)))


@app.command()
@global_options
def stop(
    g: Globals,
    sessions: Annotated[
        list[str] | None, typer.Argument(metavar="SESSION…", autocompletion=complete_session, help="Which to stop.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="All of podbot's sessions.")] = False,
    time: Annotated[
        int, typer.Option("--time", "-t", min=0, max=3600, metavar="S", help="Seconds before processes are killed.")
    ] = 10,
    remove: Annotated[
        bool, typer.Option("--rm", help="Remove sessions that were to be kept, and unsaved work, too.")
    ] = False,
) -> None:
    """Stop sessions and remove their containers; kept ones (--keep) are stopped only.

    A clone that holds unsaved work is stopped only, too. Touches nothing that podbot did not start.
    """
    from podbot.cli.stop import StopArgs, execute

    raise typer.Exit(execute(g, StopArgs(tuple(sessions or ()), all_, time, remove)))


@app.command("token-daemon")
@global_options
def token_daemon(
    g: Globals,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SESSION…|install|uninstall|status]",
            autocompletion=complete_session,
            help="Sessions to keep; none means all.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Renew what is due, say so, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --once or status: as JSON.")] = False,
) -> None:
    """Renew the GitHub tokens of sessions until told to end.

    A podbot that runs or hosts a session renews its token, and makes way for a token-daemon while one runs.
    What the daemon is for: sessions whose podbot was killed, and one process that does it for all.

    install writes, enables and starts a systemd user unit for it; uninstall takes that back; status shows the
    unit and every session's token.

    Example: podbot token-daemon install
    """
    from podbot.cli.token_daemon import TokenArgs, execute

    args = TokenArgs(tuple(words or ()), once, as_json)
    if args.mistake:
        raise typer.BadParameter(args.mistake)
    raise typer.Exit(execute(g, args))


app.add_typer(config_commands.app, name="config")
app.add_typer(history_commands.app, name="history")
app.add_typer(image_commands.app, name="image")
app.command()(setup)
app.command()(doctor)
