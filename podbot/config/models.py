"""The configuration as typed, frozen values: the one place that names every key, default and type.

Plain dataclasses and not pydantic models: pydantic costs 35-60 ms at import, a third of a whole
``podbot exec``, and errors here must name the key, its origin and a near miss anyway (ADR 0002).
Each field's ``metadata["doc"]`` is the sentence that the reference page and ``config init`` print;
``metadata["example"]`` is a value to show where the default would teach nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from podbot.agents.registry import AgentMode, Permissions, names

AgentKind = str  # one of AGENT_KINDS
WorkspaceSource = Literal["github_clone", "host_mount"]
SelinuxLabelMode = Literal["disable_for_container", "keep_default"]
Profile = Literal["hardened", "minimal", "privileged"]
Delegation = Literal["none", "fs", "terminal", "all"]
McpServers = Literal["strip", "pass"]
Guard = Literal["report", "protect", "off"]

AGENT_KINDS: tuple[AgentKind, ...] = names()


def key(default: Any, doc: str, example: Any = None) -> Any:
    """A configuration key: its default, the sentence that documents it, and a value to show."""
    metadata = {"doc": doc, "example": example}
    if isinstance(default, dict):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


class Origin(NamedTuple):
    """Where a value came from. ``detail``: the flag (or the argument, in words), the variable, or the file's path.

    ``override`` is a value that a Python caller handed over without naming a flag.
    """

    kind: Literal["flag", "override", "environment", "file", "default"]
    detail: str = ""

    def __str__(self) -> str:
        if self.kind == "flag" and not self.detail.startswith("-"):
            return self.detail
        names = {"environment": "variable", "file": "config file"}
        return f"{names.get(self.kind, self.kind)} {self.detail}".strip()


DEFAULT_ORIGIN = Origin("default")

DEFAULT_ENGINE = "podman"


@dataclass(frozen=True)
class GitHubConfig:
    """``[github]``: the App whose installation tokens a clone and `--github-access` use."""

    app_id: int | None = key(None, "GitHub App id.", 12345)
    installation_id: int | None = key(None, "Installation of the App on the repository's owner.", 67890)
    private_key_path: str | None = key(
        None, "PEM file with the App's RSA private key.", "/home/you/.config/podbot/github-app.pem"
    )
    server_url: str = key(
        "https://github.com", "GitHub server: clones come from it, and tokens are answered to it only."
    )
    api_url: str | None = key(None, "API address; unset, it follows server_url.", "https://api.github.com")
    permissions: Mapping[str, str] = key(
        {"contents": "write", "pull_requests": "write", "metadata": "read"},
        "Permissions that a token is limited to.",
    )


@dataclass(frozen=True)
class WorkspaceConfig:
    """``[workspace]``: where the agent sees source code."""

    source: WorkspaceSource = key("github_clone", "Clone a repository, or mount a host directory.")
    base_dir: str = key("/work", "Directory inside the sandbox that clones go to (github_clone).")
    depth: int | None = key(None, "Commits of history that a clone gets; unset, all of it (github_clone).", 50)
    submodules: bool = key(False, "Clone the submodules, too (github_clone).")
    host_path: str | None = key(None, "Host directory to mount (host_mount).", "/home/you/src/project")
    container_path: str = key(
        "host", "Absolute target of the mount; 'host' means the same path as on the host (host_mount).", "/workspace"
    )
    allowed_roots: tuple[str, ...] = key(
        (),
        "Host directories below which host_path may lie; an entry in ~/.NAME or /opt allows it there.",
        ("/home/you/src",),
    )
    read_only: bool = key(False, "Mount the workspace read-only.")
    guard: Guard = key(
        "report",
        "What the agent leaves in the workspace that acts on the host: report it at the end; protect git's"
        " configuration and hooks as well; or off (host_mount).",
    )


@dataclass(frozen=True)
class CredsConfig:
    """``[creds]``: which of the operator's agent credentials go into the sandbox."""

    copy_claude: bool = key(True, "Copy ~/.claude into the sandbox of an agent that can use it: claude, custom.")
    copy_codex: bool = key(True, "Copy ~/.codex into the sandbox of an agent that can use it: codex, custom.")


@dataclass(frozen=True)
class SandboxConfig:
    """``[sandbox]``: how tightly the container is confined."""

    privileged: bool = key(False, "The same as profile = 'privileged'.")
    profile: Profile = key("hardened", "Confinement: hardened, minimal or privileged.")
    mount_dev_fuse: bool = key(True, "Give the sandbox /dev/fuse, for nested containers.")
    selinux_label_mode: SelinuxLabelMode = key(
        "disable_for_container", "SELinux: switch labels off for the container, or keep the engine's default."
    )
    memory: str = key(
        "50%", "Memory limit: a share of the machine's memory; or a whole number and b, k, m or g; or none.", "2g"
    )
    cpus: float | None = key(None, "CPU limit, in cores (1.5 is one and a half).", 1.5)
    pids: int = key(2048, "Most processes and threads at a time; 0 is no limit.", 512)
    nofile: int = key(65_536, "Most open files of one process; 0 is the engine's own limit.", 1_000_000)
    network: str = key("default", "default (the engine's own), none, host, or the name of an engine network.")
    extra_mounts: tuple[str, ...] = key(
        (), "More mounts, each 'SOURCE:TARGET' or 'SOURCE:TARGET:ro'.", ("/home/you/reference:/reference:ro",)
    )
    env: Mapping[str, str] = key(
        {}, "Variables for the sandbox. Not for secrets: see agent.env_allowlist.", {"TZ": "UTC"}
    )
    runtime: str | None = key(None, "OCI runtime for the container.", "crun")


@dataclass(frozen=True)
class AgentConfig:
    """``[agent]``: which agent runs, and how."""

    kind: AgentKind = key("claude", "Which agent runs; custom is a command of your own.")
    mode: AgentMode = key("podbot", "podbot (interactive) for run; acp (its default) or codex_app_server for host.")
    command: str | None = key(None, "Program of a custom agent.", "my-agent")
    args: tuple[str, ...] = key((), "Arguments of a custom agent.", ("--verbose",))
    env_allowlist: tuple[str, ...] = key(
        (), "Names of host variables whose values the agent gets.", ("ANTHROPIC_API_KEY",)
    )
    permissions: Permissions = key(
        "full", "full: the agent never asks, for the sandbox is what confines it; ask: it asks before it acts."
    )
    delegation: Delegation = key(
        "none", "ACP: what the agent may use of the editor's machine: none, fs, terminal or all."
    )
    mcp_servers: McpServers = key(
        "strip", "The editor's MCP servers, with their tokens: strip leaves them out, pass hands them to the agent."
    )
    extra_methods: tuple[str, ...] = key(
        (),
        "Methods that the agent of host may call at the editor beside the known ones, spelled exactly.",
        ("_example.com/show",),
    )
    frame_limit: str = key("64m", "Longest frame that host hands on: a whole number and b, k, m or g.")


@dataclass(frozen=True)
class SessionConfig:
    """``[session]``: what becomes of a session."""

    keep: bool = key(
        False,
        "Keep the container, stopped, when the agent ends. Set nowhere, a clone's is kept when it holds unsaved work.",
    )
    history: bool = key(True, "Keep the agent's conversations, so that later sessions of the project continue them.")


@dataclass(frozen=True)
class AppConfig:
    """A whole, validated configuration. ``origins`` maps dotted keys to where the value came from.

    ``file``: the absolute path of the file that the caller named (``--config``); None when nobody named one.
    """

    engine: str = key(DEFAULT_ENGINE, "Kind of engine that runs sandboxes.")
    engine_socket: str | None = key(
        None, "Engine endpoint; unset, podbot looks for one.", "unix:///run/user/1000/podman/podman.sock"
    )
    image: str | None = key(
        None, "Image of the sandbox; `podbot setup` builds one and writes this key.", "localhost/podbot:latest"
    )
    github: GitHubConfig = field(default_factory=GitHubConfig)
    workspace: WorkspaceConfig = field(default_factory=WorkspaceConfig)
    creds: CredsConfig = field(default_factory=CredsConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    session: SessionConfig = field(default_factory=SessionConfig)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False, repr=False)
    file: str | None = field(default=None, compare=False, repr=False)

    def origin(self, dotted: str) -> Origin:
        """Where the value of ``dotted`` (such as ``agent.kind``) came from."""
        return self.origins.get(dotted, DEFAULT_ORIGIN)


@dataclass(frozen=True)
class LoadOptions:
    """What a caller hands to :func:`podbot.config.load_config`; no CLI type in it.

    ``file``: a configuration file named by the caller. ``overrides``: dotted key -> typed value,
    the strongest layer. ``flags``: dotted key -> the flag that set it, for error messages.
    ``environ``: the environment to read ``PODBOT_*`` from.
    """

    file: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
