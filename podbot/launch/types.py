"""Values that cross rooms on the way from a request to a running agent. All frozen, all plain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from podbot.agents.registry import AgentMode
from podbot.config.models import AgentKind, Delegation, McpServers, WorkspaceSource
from podbot.launch.command import ExecSpec

__all__ = [
    "AgentPlan", "ContainerSpec", "CredentialSource", "ExecSpec", "GitFile", "HostFacts", "Keep", "LaunchPlan",
    "LaunchRequest", "Limits", "LinkFacts", "LinkedGit", "Mount", "OwnFile", "PathFacts", "RepositoryFacts",
    "ResourcePlan", "SandboxPlan", "Security", "Subcommand",
]  # fmt: skip

Subcommand = Literal["run", "host", "sandbox"]
Keep = Literal["always", "never", "when_unsaved"]


@dataclass(frozen=True)
class LaunchRequest:
    """What the caller wants of this one session, beyond configuration.

    ``words``: what stood after ``--`` (an agent's extra arguments; for kind ``custom`` the whole
    command). ``tty``: whether the caller has a terminal on both stdin and stdout.
    ``trusted_workspace``: the workspace path was typed by the operator, so it is its own allowed root.
    ``repo``: ``owner/name`` to clone, for workspace.source = github_clone; ``branch``: None is the default one.
    ``github_access``: ``owner/name`` that a session on a mounted workspace gets a GitHub token for.
    ``follow_links``: a link in the workspace's path may lead out of the repository that it lies in.
    """

    subcommand: Subcommand = "run"
    name: str | None = None
    words: tuple[str, ...] = ()
    tty: bool = False
    trusted_workspace: bool = False
    repo: str | None = None
    branch: str | None = None
    github_access: str | None = None
    follow_links: bool = False


@dataclass(frozen=True)
class LinkFacts:
    """A symbolic link on the way to a host path. ``path``: its own, after resolving every link before it.

    ``leads_to``: after resolving every link. ``repository``: the nearest directory at or above the link's own that
    has a ``.git``.
    """

    path: str
    leads_to: str
    repository: str | None = None


@dataclass(frozen=True)
class PathFacts:
    """A host path after resolving every link. ``kind`` of what is there now.

    ``spelled``: the workspace's path as the operator spells it, absolute and normal, when that is another one.
    ``links``: all of them on the way, and on the way of ``spelled``.
    """

    given: str
    resolved: str
    kind: Literal["directory", "other", "missing", "unreadable"]
    spelled: str | None = None
    links: tuple[LinkFacts, ...] = ()


@dataclass(frozen=True)
class CredentialSource:
    """An agent's own directory in the operator's home, which is copied to ``target`` inside."""

    family: str  # "claude" or "codex"; creds.copy_<family> selects it
    given: str  # as the home spells it
    source: str  # after resolving every link
    target: str
    logged_in: bool = False  # the login's file is in it


@dataclass(frozen=True)
class LinkedGit:
    """The git directory that a workspace's ``.git`` file names, outside the workspace.

    ``directory``: what is to be mounted: the common git directory of a linked worktree, a submodule's own one;
    empty when ``reason`` says why podbot does not follow the file. The workspace's content is hostile, and so is
    ``names``, the path in the file; a directory without a reason has been seen to point back to the workspace.
    """

    names: str
    kind: Literal["worktree", "submodule"] = "worktree"
    directory: str = ""
    relative: bool = False  # the path in the file
    reason: str | None = None
    remedy: str = ""


@dataclass(frozen=True)
class RepositoryFacts:
    """What git keeps of the workspace. ``worktrees``: where the repository's linked worktrees are, by its own records.

    Locked ones are left out, and those over a limit counted in ``more``. All of it can have been written by an agent,
    so none of these paths was looked at.
    """

    linked: LinkedGit | None = None
    worktrees: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class GitFile:
    """A file or directory of the workspace's git directory that is there, and is no link."""

    path: str
    is_file: bool


@dataclass(frozen=True)
class HostFacts:
    """All that planning needs to know of the host; collected once, by ``session.facts``."""

    home: str
    cwd: str
    uid: int
    env: Mapping[str, str] = field(repr=False)  # only the variables that planning reads; may hold secrets
    nonce: str  # six hex digits for the session's name
    created: str  # ISO 8601, UTC, with microseconds: it tells sessions of one name apart
    runtime_dir: str  # podbot's own runtime directory, without the session
    state_dir: str  # podbot's own state directory, which outlives a reboot
    exposed: tuple[str, ...] = ()  # what is to be said of directories above it that a group can write
    engine_socket_dir: str | None = None  # directory of the engine's unix socket
    workspace: PathFacts | None = None  # workspace.host_path
    allowed_roots: tuple[PathFacts, ...] = ()
    repository: RepositoryFacts = RepositoryFacts()  # of the workspace
    git_files: tuple[GitFile, ...] = ()  # for workspace.guard = protect: the first is `.git`
    extra_mounts: tuple[PathFacts, ...] = ()  # sources, in the order of sandbox.extra_mounts
    protected: tuple[str, ...] = ()  # where links at refused places lead: those are refused as well
    named_only: tuple[str, ...] = ()  # the same for places that are refused unless workspace.allowed_roots names them
    homes: tuple[str, ...] = ()  # of other users, as far as the host lists them
    dev_fuse: bool = True
    memory: int = 0  # bytes that the machine has, or podbot's own cgroup may use; 0 is unknown
    nofile: int = 0  # the most that a process started here may have open; 0 is unknown
    nproc: int = 0  # the same of processes
    time_zone: str | None = None  # as TZ has it
    git_name: str | None = None
    git_email: str | None = None
    credentials: tuple[CredentialSource, ...] = ()  # families that are there, in the order of their table
    settings: tuple[str, ...] = ()  # those of ``Agent.settings`` that are in the workspace
    private_key: tuple[str, ...] = ()  # github.private_key_path, as given and after resolving every link


@dataclass(frozen=True)
class Mount:
    """A bind mount: resolved host source, absolute target."""

    source: str
    target: str
    read_only: bool = False
    is_file: bool = False


@dataclass(frozen=True)
class Security:
    """A sandbox profile, worked out. ``capabilities`` are added to the engine's defaults, ``dropped`` taken from them.

    ``seccomp``: where podbot's seccomp profile lies on the host; None is the engine's own.
    """

    privileged: bool = False
    no_new_privileges: bool = False
    devices: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    selinux_disable: bool = False
    seccomp: str | None = None


@dataclass(frozen=True)
class Limits:
    """Resource limits: memory in bytes and cpus in cores, None is no limit; pids, 0 is none, and None the engine's own.

    ``nofile``: open files of one process, None is the engine's own. ``nproc`` comes with it: an engine that is given
    one of the two sets the other to 1,048,576, which it cannot without CAP_SYS_RESOURCE (measured). ``by_default``:
    names of those that nobody asked for. Where an engine cannot set them, a session starts without.
    """

    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    nofile: int | None = None
    nproc: int | None = None
    by_default: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContainerSpec:
    """The container to create. ``engine.create_body`` turns it into the engine's request."""

    name: str
    image: str
    image_origin: str
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    security: Security
    files: tuple[Mount, ...] = ()  # podbot's own, read-only but for the store of conversations
    link: tuple[str, str] | None = None  # a symbolic link made inside: its path, and where it leads
    limits: Limits = field(default_factory=Limits)
    network: str = "default"
    workdir: str | None = None  # where `podbot exec` starts
    make_workdir: bool = False  # the image need not have it
    env: Mapping[str, str] = field(default_factory=dict)  # public values only: `inspect` shows them
    runtime: str | None = None


@dataclass(frozen=True)
class OwnFile:
    """A file that podbot writes on the host, and that the sandbox sees at ``target``, read-only."""

    target: str
    text: str
    executable: bool = False


class ResourcePlan(Protocol):
    """What a resource works with while the sandbox is open; a frozen value. See ``launch.resources``."""

    def described(self) -> object:
        """As plain values, without secrets."""
        ...


ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class SandboxPlan:
    """Everything decided about a sandbox, whatever runs in it; opening it asks no further question.

    ``runtime_dir``: the session's own. ``files_dir``: on the host, the session's own, where ``files`` are written.
    ``linked_git``: mounted as well; looked at again right before the container is created. ``image_agent``: the agent
    that the image must have. ``resources``: by name, in the order in which they are opened. ``notes``: lines that the
    operator must see.
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

    def find(self, kind: type[ValueT]) -> ValueT | None:
        """The resource whose plan is a ``kind``; None when the sandbox has none."""
        return next((plan for plan in self.resources.values() if isinstance(plan, kind)), None)


@dataclass(frozen=True)
class AgentPlan:
    """The agent that is started in a sandbox, and the settings of its protocol.

    ``delegation``: what the client of ``host`` keeps of its own capabilities. ``mcp_servers``: what becomes of those
    that this client brings along. ``extra_methods``: that the agent may call at the client, beside the known ones.
    ``frame_limit``: bytes; a longer frame is refused.
    """

    kind: AgentKind
    mode: AgentMode
    command: ExecSpec
    delegation: Delegation = "none"
    mcp_servers: McpServers = "strip"
    extra_methods: tuple[str, ...] = ()
    frame_limit: int = 64 << 20


@dataclass(frozen=True)
class LaunchPlan:
    """Everything decided about a session with an agent: its sandbox, and the agent in it."""

    subcommand: Subcommand
    sandbox: SandboxPlan
    agent: AgentPlan
