"""Frozen, plain values that cross rooms on the way from a request to a running agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self, TypeVar

from podbot.agents.login_state import LoginState
from podbot.agents.registry import AgentMode
from podbot.config.models import AgentKind, Delegation, McpServers, Origin, WorkspaceSource
from podbot.container_spec import ContainerSpec, Mount
from podbot.exec_spec import ExecSpec
from podbot.frozen import Frozen, field

__all__ = [
    "AgentPlan", "Certificates", "CredentialSource", "GitFile", "HostFacts", "Keep", "LaunchPlan", "LaunchRequest",
    "LinkFacts", "LinkedGit", "OwnFile", "PathFacts", "RepositoryFacts", "ResourcePlan", "SandboxPlan",
    "SessionSubcommand", "Subcommand",
]  # fmt: skip

SessionSubcommand = Literal["run", "host"]  # those with an agent
Subcommand = Literal[SessionSubcommand, "sandbox"]
Keep = Literal["always", "never", "when_unsaved"]


class LaunchRequest(Frozen):
    """The caller's request for this one session, in addition to the configuration.

    ``words``: the arguments after ``--`` (added to the agent's; for kind ``custom`` the whole command). ``tty``:
    whether both stdin and stdout are terminals.
    ``trusted_workspace``: the operator typed the workspace's path, so it is its own allowed root.
    ``repo``: ``owner/name`` to clone, for workspace.source = github_clone; ``branch``: None is the default one.
    ``github_access``: the ``owner/name`` for which a session on a mounted workspace gets a GitHub token.
    ``follow_links``: a link in the workspace's path may lead out of its repository.
    ``env``: variables for the agent, whose values are treated as secrets. ``mounts``: ``SOURCE[:TARGET][:ro]``, which
    the operator typed, so each source is its own allowed root and may be relative. ``publish``:
    ``[[ADDRESS:]PORT:]PORT``. ``allow``: hosts that the filtered network allows (see ``network.allow``); with them, the
    network is filtered unless another one was chosen for this session. The four add to what the configuration has.
    ``flags``: field -> the option that set it, for error messages, as in LoadOptions.
    """

    _elsewhere = {  # noqa: RUF012 - as ClassVar in the base
        "agent": 'The agent is set in the configuration: LoadOptions(overrides={"agent.kind": "claude"}).',
        "workspace": "The workspace is set in the configuration: LoadOptions(overrides={"
        '"workspace.source": "host_mount", "workspace.host_path": "/home/you/src"}).',
        "image": 'The image is set in the configuration: LoadOptions(overrides={"image": "localhost/podbot:latest"}).',
    }
    name: str | None = None
    words: tuple[str, ...] = ()
    tty: bool = False
    trusted_workspace: bool = False
    repo: str | None = None
    branch: str | None = None
    github_access: str | None = None
    follow_links: bool = False
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: tuple[str, ...] = ()
    publish: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    flags: Mapping[str, str] = field(default_factory=dict)

    def origin(self, name: str) -> Origin:
        """Where the field ``name`` came from, in the caller's words."""
        return Origin("flag", self.flags.get(name, f"LaunchRequest.{name}"))


class LinkFacts(Frozen):
    """A symbolic link in a host path. ``path``: its own, after resolving every link before it.

    ``leads_to``: its target, after resolving every link. ``repository``: the nearest directory at or above the
    link's own that has a ``.git``.
    """

    path: str
    leads_to: str
    repository: str | None = None


class PathFacts(Frozen):
    """A host path after resolving every link. ``kind``: what is there now.

    ``spelled``: the workspace's path as the operator writes it, absolute and normal, if it differs.
    ``links``: all links in the path, in ``spelled``, and on the way to where a relative path begins.
    """

    given: str
    resolved: str
    kind: Literal["directory", "other", "missing", "circle", "unreadable"]
    spelled: str | None = None
    links: tuple[LinkFacts, ...] = ()


class CredentialSource(Frozen):
    """An agent's own directory in the operator's home, which is copied to ``target`` inside."""

    family: str  # "claude" or "codex"; creds.copy_<family> selects it
    given: str  # below the home, with links
    source: str  # after resolving every link
    target: str
    logged_in: bool = False  # whether it contains a login that works
    renews: bool = False  # whether that login has a token that is replaced when it is used
    files: Mapping[str, bytes | str] = field(default_factory=dict, repr=False)  # of which its login is judged
    alone: bool = False  # whether that login can be kept apart from the family's other files


class LinkedGit(Frozen):
    """The git directory outside the workspace that its ``.git`` file names.

    ``directory``: the directory to mount, which is the common git directory of a linked worktree or a submodule's own;
    empty when podbot does not follow the file for ``reason``. The workspace's content is hostile, including
    ``names``, the path in the file; a directory without a reason was checked to point back to the workspace.
    """

    names: str
    kind: Literal["worktree", "submodule"] = "worktree"
    directory: str = ""
    relative: bool = False  # whether the path in the file is relative
    reason: str | None = None
    remedy: str = ""


class RepositoryFacts(Frozen):
    """The workspace's git data. ``worktrees``: paths of the repository's linked worktrees, from its own records.

    Locked ones are omitted, and those over a limit are counted in ``more``. ``settings``: those of the repository's
    configuration that ``launch.git_settings`` looks at. An agent may have written all of it, so none of these paths
    was accessed.
    """

    linked: LinkedGit | None = None
    worktrees: tuple[str, ...] = ()
    more: int = 0
    settings: tuple[tuple[str, str], ...] = ()


class GitFile(Frozen):
    """An existing file or directory of the workspace's git directory that is not a link."""

    path: str
    is_file: bool


class Certificates(Frozen):
    """Certificate authorities for a sandbox, each a PEM block. None of them is secret.

    ``path``: the file of sandbox.ca_certificates, and ``additional`` what it has; ``system_path``: the file with this
    host's own list, and ``system`` that list.
    """

    path: str
    additional: tuple[str, ...]
    system_path: str
    system: tuple[str, ...]


class HostFacts(Frozen):
    """Everything that planning needs to know of the host; collected once, by ``session.facts``."""

    home: str
    cwd: str
    uid: int
    env: Mapping[str, str] = field(repr=False)  # only the variables that planning reads; may hold secrets
    nonce: str  # six hex digits for the session's name
    created: str  # ISO 8601, UTC, with microseconds: it tells sessions of one name apart
    runtime_dir: str  # podbot's own runtime directory, without the session
    state_dir: str  # podbot's own state directory, which outlives a reboot
    exposed: tuple[str, ...] = ()  # warnings about parent directories of state_dir that a group can write
    engine_socket_dir: str | None = None  # directory of the engine's unix socket
    cwd_links: tuple[LinkFacts, ...] = ()  # through which the operator entered cwd: every relative path begins there
    workspace: PathFacts | None = None  # workspace.host_path
    allowed_roots: tuple[PathFacts, ...] = ()
    repository: RepositoryFacts = RepositoryFacts()  # of the workspace
    git_files: tuple[GitFile, ...] = ()  # for workspace.guard = protect: the first is `.git`
    extra_mounts: tuple[PathFacts, ...] = ()  # sources, in the order of `extra_mounts.wanted_mounts`
    protected: tuple[str, ...] = ()  # targets of links at refused paths, which are refused too
    named_only: tuple[str, ...] = ()  # the same for paths that are refused unless workspace.allowed_roots names them
    homes: tuple[str, ...] = ()  # of other users, as far as the host lists them
    dev_fuse: bool = True
    memory: int = 0  # bytes that the machine has, or podbot's own cgroup may use; 0 is unknown
    nofile: int = 0  # files that a process started here may have open at most; 0 is unknown
    nproc: int = 0  # processes that this user may have at most; 0 is unknown
    kernel: tuple[int, int] = (0, 0)  # its release, major and minor; (0, 0) is unknown
    time_zone: str | None = None  # in the form of the variable TZ
    git_name: str | None = None
    git_email: str | None = None
    credentials: tuple[CredentialSource, ...] = ()  # families that exist, in the order of their table
    login_dirs: tuple[tuple[str, str], ...] = ()  # (family, directory) for those that an agent's own variable names
    login_variables: tuple[str, ...] = ()  # names of those that are set here and log the configured agent in
    own_logins: tuple[str, ...] = ()  # agents with a login of podbot's own, as far as planning needs them
    own_login: bytes | str | None = field(default=None, repr=False)  # that of the configured agent
    settings: tuple[str, ...] = ()  # files of ``Agent.settings`` that exist in the workspace
    placeholder: str = field(default="", repr=False)  # 32 random hex digits, for keys that a sandbox does not get
    certificates: Certificates | None = field(default=None, repr=False)  # None: sandbox.ca_certificates is not set
    private_key: tuple[str, ...] = ()  # github.private_key_path, as given and after resolving every link


class OwnFile(Frozen):
    """A file that podbot writes on the host and mounts read-only at ``target``."""

    target: str
    text: str
    executable: bool = False


class ResourcePlan(Frozen):
    """A resource's plan: a frozen value that it uses while the sandbox is open. See ``launch.resources``.

    ``slow_to_end``: its end can take seconds, and a client that has left does not wait for it.
    """

    slow_to_end: ClassVar[bool] = False

    def described(self) -> object:
        """The plan as plain values, without secrets."""
        raise NotImplementedError

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """Whether this plan, read from the record of ``sandbox``, is one that podbot would make on this host.

        A record may have been changed: what the resource makes and removes must be podbot's own.
        """
        del sandbox, facts
        return True

    def refreshed(self, facts: HostFacts) -> Self:
        """The plan for a container that is restarted, with the current state of this host."""
        del facts
        return self


ValueT = TypeVar("ValueT")


class SandboxPlan(Frozen):
    """Everything decided about a sandbox, whatever runs in it; nothing is left to decide when it is opened.

    ``runtime_dir``: the session's own directory. ``files_dir``: the session's host directory for ``files``.
    ``linked_git``: a git directory that is mounted too, and checked again right before the container is created.
    ``image_agent``: the agent that the image must have. ``resources``: by name, in the order in which they are opened.
    ``notes``: lines that the operator must see. ``limit_origins``: where the limits of memory and of processes were
    set, for other podbots that run a command here.
    """

    session: str
    source: WorkspaceSource
    container: ContainerSpec
    keep: Keep
    runtime_dir: str
    files_dir: str
    workspace: Mount | None = None
    linked_git: LinkedGit | None = None
    image_agent: AgentKind | None = None
    files: tuple[OwnFile, ...] = ()
    resources: Mapping[str, ResourcePlan] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    limit_origins: Mapping[str, str] = field(default_factory=dict)

    def find(self, kind: type[ValueT]) -> ValueT | None:
        """The plan of type ``kind`` among the resources, or None."""
        return next((plan for plan in self.resources.values() if isinstance(plan, kind)), None)


class AgentPlan(Frozen):
    """The agent that is started in a sandbox, and the settings of its protocol.

    ``delegation``: which capabilities of the client of ``host`` are not masked. ``mcp_servers``: whether the client's
    MCP servers are passed on. ``extra_methods``: methods that the agent may call at the client, in addition to the
    known ones. ``frame_limit``: bytes; a longer frame is refused. ``logs``: its output is recorded.
    ``login``: what it will log in with; None if podbot does not know.
    """

    kind: AgentKind
    mode: AgentMode
    command: ExecSpec
    delegation: Delegation = "none"
    mcp_servers: McpServers = "strip"
    extra_methods: tuple[str, ...] = ()
    frame_limit: int = 64 << 20
    logs: bool = False
    login: LoginState | None = None


class LaunchPlan(Frozen):
    """Everything decided about a session with an agent: its sandbox, and the agent in it."""

    subcommand: SessionSubcommand
    sandbox: SandboxPlan
    agent: AgentPlan
