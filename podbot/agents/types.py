"""What podbot has to know of an agent, as types. The data is in the other modules of this package, one an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from podbot.agents.registry import AgentMode, Permissions

Command = tuple[str, ...]

HOME = "/root"  # of the sandbox's user
# Files that podbot mounts in every sandbox, for an agent whose own files have to name them.
GITCONFIG = "/run/podbot/gitconfig"
ASKPASS = "/run/podbot/askpass"

TRUSTED = "<trusted>"  # a word of a command that ``Agent.trust`` makes

# Why a name stays behind when a family of credentials is copied.
PAST = "a record of sessions in other projects"
SETTINGS_OF_OTHERS = "it names other projects, with their settings and keys of tool servers"
CACHE = "the agent makes it again by itself"
HOST = "it belongs to processes or programs of this host"


class Login(NamedTuple):
    """How an agent logs in from inside a sandbox, where no browser can be opened.

    ``variables``: each is a login, or says where one is. ``methods``: ids of the ACP login methods that can finish
    inside; ``others``: ids of those that cannot, as measured. ``advice``: what the operator does on the host instead.
    ``needed`` false: it has a model without a login.
    """

    variables: tuple[str, ...]
    methods: frozenset[str]
    advice: str
    others: frozenset[str] = frozenset()
    needed: bool = True


class Family(NamedTuple):
    """The directory of the operator's home that has an agent's login, and is copied into the sandbox.

    The configuration key ``creds.copy_NAME`` switches it. ``login``: the file at its top that is the login.
    ``excluded``: reason -> patterns for names at its top that are not copied for it, with blanks between.
    """

    name: str
    directory: str
    login: str
    excluded: Mapping[str, str]

    @property
    def target(self) -> str:
        """Where the family lies inside: ``/root/.claude``."""
        return f"{HOME}/{self.directory}"

    def reason_to_exclude(self, name: str) -> str | None:
        """Why ``name``, at the top of the family, is left out; None when it is not."""
        from fnmatch import fnmatchcase

        rows = self.excluded.items()
        return next((why for why, names in rows if any(fnmatchcase(name, pattern) for pattern in names.split())), None)


class FirstRun(NamedTuple):
    """A file of the home without which the agent's first screen asks questions. The sandbox gets a reduced one.

    It accompanies the agent's family, and a login by one of ``variables``. ``path``: below the home. ``reduce``: its
    content from the host's file (empty when there is none), the one trusted directory (None: none is) and the value of
    ``key`` (None: the operator did not let it in, or the agent has no screen to ask about it).
    """

    path: str
    variables: tuple[str, ...]
    key: str
    reduce: Callable[[bytes, str | None, str | None], bytes]

    @property
    def target(self) -> str:
        """Where it lies inside."""
        return f"{HOME}/{self.path}"


class Conversations(NamedTuple):
    """Where an agent keeps its conversations. Only this directory is mounted, never the agent's whole home.

    ``target``: the directory inside the sandbox. ``resume``: the agent's words that continue the latest one.
    ``env`` and ``texts`` (target -> content of a file that is mounted read-only): what the agent needs for it.
    """

    target: str
    resume: tuple[str, ...]
    env: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}


class Build(NamedTuple):
    """How an agent gets into podbot's image: packages of npm, each pinned to one version.

    ``adapter``: ``package@version`` of what speaks the Agent Client Protocol for it; empty where it does so itself.
    ``megabytes``: what both add to the image, measured. ``remove``: patterns below npm's ``node_modules`` of what is
    not needed. ``env``: variables of the image. ``node``: its programs that Node runs.
    """

    package: str
    version: str
    megabytes: int
    adapter: str = ""
    remove: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    node: tuple[str, ...] = ()

    @property
    def specs(self) -> tuple[str, ...]:
        """What npm installs: ``package@version`` of the agent and of its adapter."""
        own = f"{self.package}@{self.version}"
        return (own, self.adapter) if self.adapter else (own,)


class Page(NamedTuple):
    """Text for ``docs/reference/agents.md``, in Markdown; ``make docs`` writes the page's tables from it.

    ``permissions``: (mode, empty for every one; what the agent does with "full"; with "ask"). ``told``: (a setting that
    podbot makes, why). ``left_alone``: (a variable that an operator could set, its effect without a network).
    ``store``: what else the conversations' directory needs. ``resume``: how `podbot run` continues a conversation, and
    ``editor``: what an editor can do with one after a restart; empty where none is kept.
    """

    permissions: tuple[tuple[str, str, str], ...] = ()
    told: tuple[tuple[str, str], ...] = ()
    left_alone: tuple[tuple[str, str], ...] = ()
    store: str = ""
    resume: str = ""
    editor: str = ""


class Agent(NamedTuple):
    """A kind of agent.

    ``commands`` and ``asking``: what starts it for agent.permissions = "full" and "ask". ``trust``: makes the word
    :data:`TRUSTED` of a command from the directory that the agent starts in; None: it is not to trust it.
    ``env`` is what it needs inside, ``permission_env`` what else it needs for either; neither the operator nor a
    repository can change them. ``files``: text of read-only files, by their places inside.
    ``login`` None: podbot does not know. ``all_families``: which logins it can use is the operator's to say.
    ``settings``: where it takes settings from the workspace that run commands; ``settings_asked``: when it asks first.
    ``refused``: places below a home that are never mounted, nor mounted over: logins and settings.
    """

    commands: Mapping[AgentMode, Command]
    asking: Mapping[AgentMode, Command]
    trust: Callable[[str | None], str] | None = None
    env: Mapping[str, str] = {}
    permission_env: Mapping[Permissions, Mapping[str, str]] = {}
    files: Mapping[Permissions, Mapping[str, str]] = {}
    login: Login | None = None
    family: Family | None = None
    all_families: bool = False
    first_run: FirstRun | None = None
    settings: tuple[str, ...] = ()
    settings_asked: str = ""
    refused: tuple[str, ...] = ()
    conversations: Conversations | None = None
    build: Build | None = None
    page: Page = Page()

    def can_use(self, family: str) -> bool:
        """Whether the credentials of this family log the agent in."""
        return self.all_families or (self.family is not None and self.family.name == family)


def api_key_advice(name: str) -> str:
    """The part of :attr:`Login.advice` that says how an API key gets in."""
    return f'pass in an API key: agent.env_allowlist = ["{name}"]'
