"""The types of podbot's data about an agent. The data is in the other modules of this package, one for each agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podbot.agents.login_state import LoginFiles, LoginState
from podbot.agents.registry import AgentMode, Permissions
from podbot.frozen import Frozen

Command = tuple[str, ...]

HOME = "/root"  # of the sandbox's user
# Files that podbot mounts in every sandbox, defined here for agents whose own files name them.
GITCONFIG = "/run/podbot/gitconfig"
ASKPASS = "/run/podbot/askpass"
OWN_LOGIN = "/run/podbot/login"  # the directory with the login that podbot keeps

TRUSTED = "<trusted>"  # a word in a command that ``Agent.trust`` replaces

# Reasons why a file is not copied with a family of credentials.
PAST = "a record of sessions in other projects"
SETTINGS_OF_OTHERS = "it names other projects, with their settings and keys of tool servers"
CACHE = "the agent recreates it by itself"
HOST = "it belongs to processes or programs of this host"
REPLACED = "podbot puts the login in by itself"


class Login(Frozen):
    """How an agent logs in inside a sandbox, where no browser can be opened.

    ``variables``: each contains a login, or selects one. ``methods``: ids of the ACP login methods that work inside;
    ``others``: ids of those that do not, as measured. ``advice``: what the operator can do on the host instead.
    ``instead``: the keys and tokens that nothing renews, in place of a copy that can end the host's login.
    ``needed``: false if it has a model without a login. ``workspace``: files there from which it takes variables.
    ``judge``: what it would log in with, from the files beside its login, its variables, the time in seconds since the
    epoch, and the command that starts it; it knows every place outside the workspace where this agent looks.
    """

    variables: tuple[str, ...]
    methods: frozenset[str]
    advice: str
    others: frozenset[str] = frozenset()
    instead: str = ""
    needed: bool = True
    workspace: tuple[str, ...] = ()
    judge: Callable[[LoginFiles, Mapping[str, str], float, Command], LoginState] | None = None


class KeyLogin(Frozen):
    """A login that podbot makes of a key, for an agent that does not look for it in the variable.

    ``variables``: with the key. ``path``: the login's file below the home; ``text``: its content, from the key.
    """

    variables: tuple[str, ...]
    path: str
    text: Callable[[str], str]


class OwnLogin(Frozen):
    """A login that podbot keeps for an agent: its own flow makes it, and sessions renew it (ADR 0042).

    ``path``: the login file below the home. ``command``: the agent's own login flow on a terminal, which cannot open a
    browser. ``hint``: what to do in it that it does not say. ``directory_variable``: the agent's variable for the
    directory of that file alone; if it has none, ``path`` is a link, which the agent must follow when it writes.
    ``env``: for the flow. ``texts``: other files below the home that select this login.

    ``kept``, ``fixed`` and ``tokens`` are fields of the file as names separated by dots, ``*`` for any one: those that
    are kept, those of them that a session may not change, and those of which a login needs one. ``refresh``: the one
    that renews the others, without which the agent works until its access token ends; empty if it has no family.
    """

    path: str
    command: Command
    kept: tuple[str, ...]
    tokens: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    refresh: str = ""
    hint: str = ""
    directory_variable: str = ""
    env: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}


class ThroughGateway(Frozen):
    """What leads an agent to the gateway, where its own variables do not.

    ``words``: follow the name of its own program. ``files``: text of read-only files, by their places inside.
    """

    env: Mapping[str, str] = {}
    words: Command = ()
    files: Mapping[str, str] = {}


class Family(Frozen):
    """The directory in the operator's home with an agent's login, which is copied into the sandbox.

    The configuration key ``creds.copy_NAME`` enables it. ``login``: the file at its top with the login. ``excluded``:
    reason -> patterns, separated by blanks, of names at its top that are not copied. ``variable``: the agent's own,
    which names another directory. ``files``: at its top, of which the agent's login is judged.
    """

    name: str
    directory: str
    login: str
    excluded: Mapping[str, str]
    variable: str
    files: tuple[str, ...]

    @property
    def target(self) -> str:
        """The family's path inside, such as ``/root/.claude``."""
        return f"{HOME}/{self.directory}"

    def reason_to_exclude(self, name: str) -> str | None:
        """Why ``name``, at the top of the family, is not copied; None if it is."""
        from fnmatch import fnmatchcase

        rows = self.excluded.items()
        return next((why for why, names in rows if any(fnmatchcase(name, pattern) for pattern in names.split())), None)


class FirstRun(Frozen):
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
        """Its path inside."""
        return f"{HOME}/{self.path}"


class Conversations(Frozen):
    """Where an agent keeps its conversations. Only this directory is mounted, never the agent's whole home.

    ``target``: the directory inside the sandbox. ``resume``: the agent's words that continue the latest one.
    ``env``: what the agent needs for it.
    """

    target: str
    resume: tuple[str, ...]
    env: Mapping[str, str] = {}


class Build(Frozen):
    """How an agent is installed in podbot's image: npm packages, each pinned to one version.

    ``adapter``: ``package@version`` of its adapter for the Agent Client Protocol; empty if it needs none.
    ``megabytes``: the size of both in the image, measured. ``remove``: patterns below npm's ``node_modules`` of files
    that are not needed. ``env``: variables of the image. ``node``: its programs that Node runs.
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
        """The npm packages: ``package@version`` of the agent and of its adapter."""
        own = f"{self.package}@{self.version}"
        return (own, self.adapter) if self.adapter else (own,)


class Page(Frozen):
    """Text for ``docs/reference/agents.md``, in Markdown; ``make docs`` writes the page's tables from it.

    ``permissions``: (mode, empty for every one; what the agent does with "full"; with "ask"). ``fixed``: (a setting
    that podbot makes, why). ``optional``: (a variable that an operator could set, its effect without a network).
    ``store``: what else the conversations' directory needs. ``resume``: how `podbot run` continues a conversation, and
    ``editor``: what an editor can do with one after a restart; empty where none is kept.
    """

    permissions: tuple[tuple[str, str, str], ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()
    optional: tuple[tuple[str, str], ...] = ()
    store: str = ""
    resume: str = ""
    editor: str = ""


class Agent(Frozen):
    """A kind of agent.

    ``commands`` and ``asking``: what starts it for agent.permissions = "full" and "ask". ``trust``: makes the word
    :data:`TRUSTED` of a command from the directory that the agent starts in; None: it is not to trust it.
    ``env`` is what it needs inside, ``permission_env`` what else it needs for either; neither the operator nor a
    repository can change them. ``defaults``: variables that the operator can set and a repository cannot; the
    agent treats an empty one as not set. ``files``: text of read-only files, by their places inside; ``key_files``:
    those that replace some of them if the agent's login is a key in the variable that they are listed for.
    ``login_files``: text of read-only files that make it look for its login in the file that is copied.
    ``no_connectors``: text of read-only files that keep the connectors of its account (mail, drive, apps) out of it.
    ``login`` None: podbot does not know. ``all_families``: which logins it can use is the operator's to say.
    ``settings``: where it takes settings from the workspace that run commands; ``settings_asked``: when it asks first.
    ``through``: settings for keys that the gateway holds, from API -> address, and API -> the variable of its key.
    ``refused``: places below a home that are never mounted, nor mounted over: logins and settings.
    """

    commands: Mapping[AgentMode, Command]
    asking: Mapping[AgentMode, Command]
    trust: Callable[[str | None], str] | None = None
    env: Mapping[str, str] = {}
    permission_env: Mapping[Permissions, Mapping[str, str]] = {}
    defaults: Mapping[str, str] = {}
    files: Mapping[Permissions, Mapping[str, str]] = {}
    key_files: Mapping[str, Mapping[str, str]] = {}
    login_files: Mapping[str, str] = {}
    no_connectors: Mapping[str, str] = {}
    login: Login | None = None
    family: Family | None = None
    own_login: OwnLogin | None = None
    key_login: KeyLogin | None = None
    all_families: bool = False
    first_run: FirstRun | None = None
    settings: tuple[str, ...] = ()
    settings_asked: str = ""
    refused: tuple[str, ...] = ()
    through: Callable[[Mapping[str, str], Mapping[str, str]], ThroughGateway] | None = None
    conversations: Conversations | None = None
    build: Build | None = None
    page: Page = Page()

    def can_use(self, family: str) -> bool:
        """Whether the credentials of this family log the agent in."""
        return self.all_families or (self.family is not None and self.family.name == family)


def api_key_advice(name: str) -> str:
    """The part of :attr:`Login.advice` that says how an API key gets in."""
    return f'pass in an API key: `-e {name}`, or agent.env_allowlist = ["{name}"]'
