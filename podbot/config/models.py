"""The configuration as typed, frozen values: the only definition of every key, default and type.

These are frozen dataclasses (``podbot.frozen``), not pydantic models: pydantic's import costs 35-60 ms, as much as a
whole ``podbot exec``, and errors must name the key, its origin and a similar key anyway (ADR 0002).
Each field's ``metadata["doc"]`` is its description in the reference page and in ``config init``;
``metadata["example"]`` is a value to show if the default is not instructive.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from podbot.agents.registry import AgentMode, Permissions, names
from podbot.frozen import Frozen, field

AgentKind = str  # one of AGENT_KINDS
WorkspaceSource = Literal["github_clone", "host_mount", "none"]
SelinuxLabelMode = Literal["disable_for_container", "keep_default"]
Profile = Literal["hardened", "minimal", "privileged", "sealed"]
Delegation = Literal["none", "fs", "terminal", "all"]
McpServers = Literal["strip", "pass"]
Guard = Literal["report", "protect", "off"]

AGENT_KINDS: tuple[AgentKind, ...] = names()


def key(default: Any, doc: str, example: Any = None) -> Any:
    """A configuration key: its default, its description, and an example."""
    metadata = {"doc": doc, "example": example}
    if isinstance(default, dict):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


class Origin(Frozen):
    """Where a value came from. ``detail``: the flag (or the argument, in words), the variable, or the file's path.

    ``override`` is a value from a Python caller that named no flag. ``project``: the name of the project table of the
    file that has the value, or empty.
    """

    kind: Literal["flag", "override", "environment", "file", "default"]
    detail: str = ""
    project: str = ""

    def __str__(self) -> str:
        return self.on_line(None)

    def on_line(self, line: int | None) -> str:
        """As text, with the line of a file if it is known."""
        if self.kind == "flag" and not self.detail.startswith("-"):
            return self.detail
        names = {"environment": "variable", "file": "config file"}
        text = f"{names.get(self.kind, self.kind)} {self.detail}".strip()
        text = text if line is None else f"{text}, line {line}"
        return f"{text}, project {self.project}" if self.project else text


DEFAULT_ORIGIN = Origin("default")

DEFAULT_ENGINE = "podman"


class GitHubConfig(Frozen):
    """``[github]``: the token that a clone and `--github-access` use, and the GitHub App that can make it."""

    auth: str | None = key(
        None,
        "Where the token comes from: app, gh (your `gh` login), env:NAME (a variable) or none. Unset, the App if one"
        " is set, otherwise none.",
        "gh",
    )
    app_id: int | None = key(None, "GitHub App id.", 12345)
    installation_id: int | None = key(None, "Installation of the App on the repository's owner.", 67890)
    private_key_path: str | None = key(
        None, "PEM file with the App's RSA private key.", "/home/you/.config/podbot/github-app.pem"
    )
    server_url: str = key(
        "https://github.com", "GitHub server that repositories are cloned from; tokens are sent to it only."
    )
    api_url: str | None = key(None, "API address; unset, it follows server_url.", "https://api.github.com")
    permissions: Mapping[str, str] = key(
        {"contents": "write", "pull_requests": "write", "metadata": "read"},
        "Permissions that a token is limited to.",
    )


class WorkspaceConfig(Frozen):
    """``[workspace]``: the source code that the agent works on."""

    source: WorkspaceSource = key(
        "github_clone",
        "Clone a repository, mount a host directory, or neither (none: only for `podbot.sandbox` of the library).",
    )
    base_dir: str = key("/work", "Directory inside the sandbox that clones go to (github_clone).")
    depth: int | None = key(None, "Number of commits that a clone gets; unset, the whole history (github_clone).", 50)
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
        "Files left by the agent that act on the host: report them at the end; also protect git's configuration"
        " and hooks; or off (host_mount).",
    )


class CredsConfig(Frozen):
    """``[creds]``: which of the operator's agent credentials go into the sandbox."""

    copy_claude: bool = key(True, "Copy ~/.claude into the sandbox of an agent that can use it: claude, custom.")
    copy_codex: bool = key(True, "Copy ~/.codex into the sandbox of an agent that can use it: codex, custom.")
    copy_refresh_tokens: bool = key(
        True,
        "Copy the token that renews a login, too. Without it the agent is logged out when the copied access token ends,"
        " and cannot end the host's login.",
    )
    copy_podbot: bool = key(True, "Use the login that `podbot login` made for the agent, instead of the host's.")


class SandboxConfig(Frozen):
    """``[sandbox]``: how tightly the container is confined."""

    privileged: bool = key(False, "The same as profile = 'privileged'.")
    profile: Profile = key(
        "hardened", "Confinement: hardened, minimal or privileged; or sealed, for a sandbox without an agent."
    )
    mount_dev_fuse: bool = key(
        False, "Add /dev/fuse to the sandbox: nested containers are then fast with large images, too.", True
    )
    own_user_ids: bool = key(
        False, "On a rootful engine, give each session user ids that nobody else has, so root inside is not root.", True
    )
    selinux_label_mode: SelinuxLabelMode = key(
        "disable_for_container", "SELinux: switch labels off for the container, or keep the engine's default."
    )
    memory: str = key(
        "50%", "Memory limit: a share of the machine's memory (50%), a whole number and b, k, m or g, or none.", "2g"
    )
    cpus: float | None = key(None, "CPU limit, in cores (1.5 is one and a half).", 1.5)
    pids: int = key(2048, "Maximum number of processes and threads; 0 is no limit.", 512)
    nofile: int = key(65_536, "Maximum number of open files of one process; 0 is the engine's own limit.", 4096)
    shm: str = key(
        "1g", "Size of /dev/shm, which counts as the sandbox's memory: a whole number and b, k, m or g.", "2g"
    )
    network: str = key(
        "default",
        "filtered (only the hosts of [network]), none, default (the engine's own: everything), host, or the name of"
        " an engine network.",
        "filtered",
    )
    extra_mounts: tuple[str, ...] = key(
        (), "More mounts, each 'SOURCE:TARGET' or 'SOURCE:TARGET:ro'.", ("/home/you/reference:/reference:ro",)
    )
    publish: tuple[str, ...] = key(
        (),
        "Ports of the sandbox that this host offers, each '[[ADDRESS:]PORT:]PORT'; without ADDRESS on 127.0.0.1.",
        ("3000:3000",),
    )
    env: Mapping[str, str] = key(
        {}, "Variables for the sandbox. Not for secrets: see agent.env_allowlist.", {"TZ": "UTC"}
    )
    ca_certificates: str | None = key(
        None,
        "PEM file on this host with certificate authorities, such as your company's, that programs inside trust, too.",
        "/home/you/company-ca.pem",
    )
    packages: tuple[str, ...] = key(
        (),
        "Debian packages in podbot's image beside its own; `podbot setup --packages` writes it and builds.",
        ("build-essential", "gh"),
    )
    runtime: str | None = key(None, "OCI runtime for the container.", "crun")


class NetworkConfig(Frozen):
    """``[network]``: what a sandbox with network = "filtered" can reach."""

    allow: tuple[str, ...] = key(
        ("@models", "@registries", "@github"),
        "Hosts that the sandbox can reach: HOST, *.HOST (its subdomains), HOST:PORT, or @SET, a named set of hosts."
        " Without a port, 443 and 80.",
        ("@models", "@registries", "docs.example.com"),
    )
    deny: tuple[str, ...] = key((), "Hosts that it cannot reach, whatever allow says.", ("gist.github.com",))
    private: tuple[str, ...] = key(
        (),
        "Hosts and addresses of your own networks or this host that it can reach; each needs its port, unless that is"
        " 443 or 80.",
        ("gitlab.example.com", "127.0.0.1:11434"),
    )


class AgentConfig(Frozen):
    """``[agent]``: which agent runs, and how."""

    kind: AgentKind = key("claude", "Which agent runs; custom is a command of your own.")
    mode: AgentMode = key("podbot", "podbot (interactive) for run; acp (its default) or codex_app_server for host.")
    command: str | None = key(None, "Program of a custom agent.", "my-agent")
    args: tuple[str, ...] = key((), "Arguments of a custom agent.", ("--verbose",))
    install: tuple[str, ...] = key(
        (), "Agents in podbot's image, for a build that finds no image; `podbot setup --agents` writes it.", ("claude",)
    )
    versions: Mapping[str, str] = key(
        {},
        "Versions of agents in podbot's image, in place of podbot's own choice; `podbot image update` writes them.",
        {"claude": "2.1.300"},
    )
    env_allowlist: tuple[str, ...] = key(
        (), "Names of host variables whose values the agent gets.", ("ANTHROPIC_API_KEY",)
    )
    permissions: Permissions = key(
        "full", "full: the agent never asks, because the sandbox confines it; ask: it asks before it acts."
    )
    account_connectors: bool = key(
        False,
        "Let the agent use the connectors (mail, drive, apps) of the account that it is logged in to.",
    )
    delegation: Delegation = key(
        "none", "ACP: what the agent may use of the editor's machine: none, fs, terminal or all."
    )
    mcp_servers: McpServers = key(
        "strip", "The editor's MCP servers, with their tokens: strip removes them, pass passes them to the agent."
    )
    extra_methods: tuple[str, ...] = key(
        (),
        "Additional methods that the agent of host may call at the editor, by their exact names.",
        ("_example.com/show",),
    )
    frame_limit: str = key("64m", "Longest frame that host passes on: a whole number and b, k, m or g.")


class SessionConfig(Frozen):
    """``[session]``: what happens to a session when its agent exits."""

    keep: bool = key(
        False,
        "Keep the stopped container when the agent exits. Unset, a clone's container is kept when it has unsaved work.",
    )
    history: bool = key(True, "Keep the agent's conversations, so that later sessions of the project continue them.")
    logs: bool = key(False, "Record what the agent of `podbot run` prints, without known secrets, for `podbot logs`.")


class ProjectChoice(Frozen):
    """The choice among the project tables of the file. ``workspace``: the real path that it was made for.

    ``table``: the name of the table in effect, or empty. ``linked``: a table that would be in effect if links in its
    path were followed, and where its path leads; both empty if there is none.
    """

    workspace: str
    table: str = ""
    linked: tuple[str, str] = ("", "")


class AppConfig(Frozen):
    """A complete, validated configuration. ``origins`` maps dotted keys to the origins of their values.

    ``file``: the absolute path of the file that the caller named (``--config``), or None. ``project``: None if the
    file has no project tables, or if no directory of this host is the workspace.
    """

    engine: str = key(DEFAULT_ENGINE, "Kind of engine that runs sandboxes.")
    engine_socket: str | None = key(
        None, "Engine endpoint; unset, podbot searches for one.", "unix:///run/user/1000/podman/podman.sock"
    )
    image: str | None = key(
        None, "Image of the sandbox; `podbot setup` builds one and writes this key.", "localhost/podbot:latest"
    )
    github: GitHubConfig = field(default_factory=GitHubConfig)
    workspace: WorkspaceConfig = field(default_factory=WorkspaceConfig)
    creds: CredsConfig = field(default_factory=CredsConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    session: SessionConfig = field(default_factory=SessionConfig)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False, repr=False)
    file: str | None = field(default=None, compare=False, repr=False)
    project: ProjectChoice | None = field(default=None, compare=False, repr=False)

    def origin(self, dotted: str) -> Origin:
        """Where the value of ``dotted`` (such as ``agent.kind``) came from."""
        return self.origins.get(dotted, DEFAULT_ORIGIN)


class LoadOptions(Frozen):
    """The arguments of :func:`podbot.config.load_config`, without CLI types.

    ``file``: a configuration file that the caller names. ``overrides``: dotted key -> typed value, the layer of
    highest priority. ``flags``: dotted key, or ``file`` -> the flag that set it, for error messages. ``environ``: the
    environment from which ``PODBOT_*`` is read.
    """

    file: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
