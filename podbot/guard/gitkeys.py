"""The keys of git's configuration that act, and which of a file's entries are findings. Pure, and mostly data.

A key acts if it runs a program, leads git to another file or place, weakens its safety, or has it read a file whose
content then leaves the machine. Ordinary keys (remotes, branches, identities, ``core.bare``) are in ``gitordinary``, so
a commit, a fetch or a new branch causes no finding. A key that is in neither list is a newer git's, or of a program
that keeps its settings there, and a finding too.
"""

from __future__ import annotations

from podbot.guard.gitordinary import OF_OTHERS, ORDINARY
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_FETCHED = ("refs/remotes/", "refs/tags/", "refs/notes/", "refs/pull/")
_WORDS = ("true", "false", "yes", "no", "on", "off", "0", "1", "")
_LFS = (
    "git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs smudge --skip -- %f", "git-lfs filter-process",
    "git-lfs filter-process --skip",
)  # fmt: skip


def _anything(_value: str | None) -> bool:
    return True


def _program(value: str | None) -> bool:
    """Whether the value names a program; a boolean selects git's builtin."""
    return value is not None and value.lower() not in _WORDS


def _shell(value: str | None) -> bool:
    return value is not None and value.lstrip().startswith("!")


def _helper(value: str | None) -> bool:
    """Whether it is ``ext::COMMAND`` or another transport that is a program, or an option in place of a host."""
    return value is not None and ("::" in value or value.startswith("-"))


def _filter(value: str | None) -> bool:
    """Whether it is another program than git-lfs, which `git lfs install --local` writes."""
    return value not in _LFS


def _off(value: str | None) -> bool:
    """Whether it may be false: git accepts ``00`` and ``0k`` as well. A key without a value is true."""
    return value is not None and value.lower() not in ("true", "yes", "on", "1")


def _on(value: str | None) -> bool:
    return value is None or value.lower() not in ("false", "no", "off", "0", "")


def _elsewhere(value: str | None) -> bool:
    """Whether the path may lead out of the repository: ``~``, ``%(prefix)`` and ``:(optional)`` are git's own."""
    return value is not None and (value.startswith(("/", "~", "%", ":")) or ".." in value.split("/"))


def _path(value: str | None) -> bool:
    """Whether the name of a tool or a suffix of files is a path, which git does not check."""
    return value is not None and "/" in value


def _shared(value: str | None) -> bool:
    """Whether other users may write the repository."""
    return value is None or value.lower() not in ("umask", "false", "no", "off", "0", "")


def _other_than(*ordinary: str) -> Callable[[str | None], bool]:
    return lambda value: value is None or value.lower() not in ordinary


def _overwrites(value: str | None) -> bool:
    """Whether a fetch writes other references than those that are there for it."""
    _, _, written = (value or "").partition(":")
    return written not in ("", "FETCH_HEAD") and not written.startswith(_FETCHED)


def _outside_modules(value: str | None) -> bool:
    return value is None or not value.startswith((".git/modules/", "modules/")) or ".." in value.split("/")


_ACTS: Mapping[Callable[[str | None], bool], Mapping[str, str]] = {
    _anything: {
        "alias": "* *.command",
        "annex": "commitmessage-command freezecontent-command http-headers-command pre-init-file rsync-options"
        " secure-erase-command ssh-options thawcontent-command web-options youtube-dl-command",
        "attr": "tree",  # attributes select filters and drivers; those of a tree are not in any file
        # mergeoptions: `-F FILE` puts the file's content into the message of the commit (measured)
        "branch": "*.mergeoptions",
        "browser": "*.cmd *.path",
        "cola": "blameviewer",
        "core": "alternaterefscommand askpass attributesfile editor gitproxy hookspath pager sshcommand"
        " virtualfilesystem worktree",
        "credential": "helper *.helper",
        "cvsexportcommit": "cvsdir",
        "cvsimport": "* *.*",
        "daemon": "* *.*",  # services that `git daemon` offers
        "delta": "pager *.pager",
        "diff": "external *.command *.textconv",
        "difftool": "*.cmd *.path",
        "fetch": "bundleuri uriprotocols fsck.*",
        "fsck": "*",
        "fsmonitor": "socketdir",
        "gc": "recentobjectshook",
        "git-p4": "host password port",  # `port = rsh:COMMAND`
        "gitcvs": "authdb dbdriver dbname dbpass dbuser enabled logfile"
        " *.authdb *.dbdriver *.dbname *.dbpass *.dbuser *.enabled *.logfile",
        "gitflow": "path.hooks",
        "gpg": "mintrustlevel program *.program *.defaultkeycommand *.allowedsignersfile *.revocationfile",
        "gui": "diffopts editor historybrowser",
        "guitool": "*.cmd",
        "gvfs": "cache-server sharedcache",
        "help": "htmlpath",
        "hook": "*.command *.enabled *.event",
        "http": "cookiefile curloptresolve delegation emptyauth extraheader followredirects pinnedpubkey proactiveauth"
        " proxy proxyauthmethod proxysslcainfo proxysslcert proxysslkey savecookies schannelcheckrevoke"
        " schannelusesslcainfo sslcainfo sslcapath sslcert sslcerttype sslcipherlist sslkey sslkeytype sslverify"
        " sslversion getanyfile receivepack uploadarchive uploadpack"
        " *.cookiefile *.curloptresolve *.delegation *.emptyauth *.extraheader *.followredirects *.pinnedpubkey"
        " *.proactiveauth *.proxy *.proxyauthmethod *.proxysslcainfo *.proxysslcert *.proxysslkey *.savecookies"
        " *.schannelcheckrevoke *.schannelusesslcainfo *.sslcainfo *.sslcapath *.sslcert *.sslcerttype"
        " *.sslcipherlist *.sslkey *.sslkeytype *.sslverify *.sslversion",
        "imap": "host sslverify tunnel",
        "include": "path",
        "includeif": "*.path",
        "init": "templatedir",
        "instaweb": "gitwebdir httpd modulepath",
        "interactive": "difffilter",
        "jump": "grepcmd",
        "lfs": "standalonetransferagent storage *.standalonetransferagent customtransfer.*.args"
        " customtransfer.*.path extension.*.clean extension.*.smudge",
        "maintenance": "repo",
        "man": "*.cmd *.path",
        "merge": "*.driver",
        "mergetool": "*.cmd *.layout *.path",  # git evaluates a layout of vimdiff as shell code
        "promisor": "acceptfromserver acceptfromserverurl",
        "protocol": "allow *.allow",
        "pull": "octopus twohead",  # names of strategies: git runs git-merge-NAME
        "push": "pushoption",
        "rebase": "instructionformat",  # `%n` begins a new step, such as `exec COMMAND` (measured)
        "receive": "fsck.*",
        "remote": "*.proxy *.proxyauthmethod *.receivepack *.uploadpack *.vcs"
        " *.annex-cost-command *.annex-hooktype *.annex-rsync-options *.annex-shell *.annex-ssh-options"
        " *.annex-start-command *.annex-stop-command",
        "safe": "barerepository directory",
        "scalar": "repo",
        "sendemail": "cccmd headercmd identity sendmailcmd smtpencryption smtpserver smtpserveroption smtpssl"
        " smtpsslcertpath smtpsslclientcert smtpsslclientkey tocmd"
        " *.cccmd *.headercmd *.sendmailcmd *.smtpencryption *.smtpserver *.smtpserveroption *.smtpssl"
        " *.smtpsslcertpath *.smtpsslclientcert *.smtpsslclientkey *.tocmd",
        "secrets": "*",  # git-secrets, which runs in a hook: `secrets.providers` are commands
        "sequence": "editor",
        "sideband": "allowcontrolcharacters *.allowcontrolcharacters",
        "stgit": "editor mergetool pager smtpserver alias.*",
        "svn": "authorsprog configdir file pager repackflags strategy template",
        "tar": "*.command",
        "tig": "bind.*",
        "trace2": "eventtarget normaltarget perftarget",
        "trailer": "*.cmd *.command",
        "transfer": "credentialsinurl",
        "uploadpack": "blobpackfileuri packobjectshook",
        "url": "*.insteadof *.pushinsteadof",
    },
    _filter: {"filter": "*.clean *.process *.smudge"},
    _program: {"core": "fsmonitor", "pager": "*"},
    _shell: {"submodule": "*.update"},
    _helper: {
        "branch": "*.remote",  # `gh pr checkout` writes the address of a fork
        "remote": "*.url",
        "submodule": "*.url",
        "svn-remote": "*.pushurl *.url",
    },
    _outside_modules: {"submodule": "*.gitdir"},
    _elsewhere: {
        "blame": "ignorerevsfile",
        "commit": "template",
        "diff": "orderfile",
        "format": "outputdirectory signaturefile",
        "gc": "repackfilterto",
        "mailmap": "file",
        "sendemail": "aliasesfile *.aliasesfile *.file",
        "svn": "authorsfile",
    },
    # A tool's name is that of a file which git's script reads: `../../x` is one of the workspace (measured).
    _path: {"diff": "guitool tool", "format": "suffix", "merge": "guitool tool"},
    # Podbot does not read the references of other formats, for example those that replace objects.
    _other_than("files"): {"extensions": "refstorage"},
    _shared: {"core": "sharedrepository"},
    _off: {
        "clean": "requireforce",
        "core": "protecthfs protectntfs",
        "credential": "protectprotocol sanitizeprompt usehttppath *.protectprotocol *.sanitizeprompt *.usehttppath",
        "fetch": "fsckobjects",
        "instaweb": "local",
        "merge": "verifysignatures",
        "receive": "fsckobjects",
        "transfer": "fsckobjects",
    },
    _on: {"fsmonitor": "allowremote"},
}
_HIDES: Mapping[Callable[[str | None], bool], Mapping[str, str]] = {
    _anything: {"core": "bigfilethreshold excludesfile"},  # of a file above that size, a diff shows no content
    _on: {
        "core": "ignorecase ignorestat usereplacerefs",
        "diff": "relative *.binary",
        "sparse": "expectfilesoutsideofpatterns",
    },
    _off: {"core": "filemode symlinks trustctime"},
    _other_than("default"): {"core": "checkstat"},
    _other_than("none"): {"diff": "ignoresubmodules", "submodule": "*.ignore"},
    _other_than("normal", "all", "true", "yes", "on", "1"): {"status": "showuntrackedfiles"},
}
"""Keys because of which `git status` or `git diff` do not show all changes."""
_PUSHES: Mapping[Callable[[str | None], bool], Mapping[str, str]] = {
    _anything: {
        "branch": "*.pushremote",
        "lfs": "pushurl url",
        "remote": "pushdefault *.lfspushurl *.lfsurl *.push *.pushurl",
    },
    _on: {"push": "followtags", "remote": "*.mirror", "submodule": "recurse"},
    _other_than("simple", "current", "nothing"): {"push": "default"},
    _other_than("check", "no", "false", "off", "0"): {"push": "recursesubmodules"},
    _overwrites: {"remote": "*.fetch"},
}
"""Keys that say where the next `git push` goes to and what it pushes, or which branches a fetch writes."""
TABLES = (_ACTS, _HIDES, _PUSHES)
_ADDRESSES = {"branch": ("remote",), "remote": ("url",), "submodule": ("url",)}
KEYS: dict[str, dict[str, Callable[[str | None], bool]]] = {}
"""By section and name: whether a value acts. ``*`` is a subsection, or any name in a section such as ``alias``."""
for _tables in TABLES:
    for _acts, _table in _tables.items():
        for _section, _names in _table.items():
            KEYS.setdefault(_section, {}).update(dict.fromkeys(_names.split(), _acts))

_OF_A_RULE = {
    f"{section}.{name}": rule
    for rule, tables in (("git.hides", _HIDES), ("git.push", _PUSHES))
    for table in tables.values()
    for section, names in table.items()
    for name in names.split()
}

_plain: dict[str, frozenset[str]] = {}


def _patterns(rest: str) -> tuple[str, ...]:
    """The entries of the lists that may stand for the part of a key behind its section; a subsection may have dots."""
    middle, dot, name = rest.rpartition(".")
    if not dot:
        return (rest, "*")
    return (rest, f"*.{name}", f"{middle}.*", f"{middle.partition('.')[0]}.*.{name}", "*.*")


def _rules(key: str) -> list[Callable[[str | None], bool]] | None:
    """For which values the key acts; None if it is in no list."""
    section, _, rest = key.partition(".")
    patterns = _patterns(rest)
    found = [known[one] for one in patterns if one in known] if (known := KEYS.get(section)) else []
    if found:
        return found
    if not _plain:
        _plain.update({name: frozenset(keys.split()) for name, keys in (*ORDINARY.items(), *OF_OTHERS.items())})
    return None if _plain.get(section, frozenset()).isdisjoint(patterns) else found


def notable(entries: Iterable[tuple[str, str | None]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The entries that act, and those whose keys are in no list: each key with its values, in their order."""
    found: dict[str, list[str | None]] = {}
    for key, value in entries:
        found.setdefault(key, []).append(value)
    acting: dict[str, list[str]] = {}
    unknown: dict[str, list[str]] = {}
    for key, values in found.items():
        rules = _rules(key)
        if rules is None:
            unknown[key] = ["true" if value is None else value for value in values]
        elif rules and (chosen := [value for value in values if any(acts(value) for acts in rules)]):
            acting[key] = ["true" if value is None else value for value in chosen]
    return acting, unknown


def rule_of(key: str) -> str:
    """The catalogue's rule for a key that acts."""
    if key == "core.worktree":
        return "git.worktree"
    section, _, rest = key.partition(".")
    return next((_OF_A_RULE[one] for name in _patterns(rest) if (one := f"{section}.{name}") in _OF_A_RULE), "git.key")


def addresses(entries: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """Where remotes, branches and submodules are. A new one is ordinary; a change leads the next push elsewhere."""
    found: dict[str, list[str]] = {}
    for key, value in entries:
        section, _, rest = key.partition(".")
        if section in _ADDRESSES and rest.rpartition(".")[1:] == (".", *_ADDRESSES[section]):
            found.setdefault(key, []).append(value or "")
    return found


def programs(values: Iterable[str]) -> list[str]:
    """Words in commands that may be paths: scripts of the workspace that git runs because of its configuration."""
    words = [word.strip("'\"!;&|()") for value in values for word in value.split()[:8]]
    return [word for word in words if word and word[0] not in "-$" and _is_plain(word)]


def _is_plain(word: str) -> bool:
    return len(word) < 1000 and not set(word) & set("$`*?\"'<>|;")
