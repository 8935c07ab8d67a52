"""Plans the clone: what is cloned, and from where. Pure; raises ConfigError only."""

from __future__ import annotations

import re
from typing import Any

from podbot.config.checks import TOKEN, shown
from podbot.config.models import AppConfig
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired
from podbot.frozen import Frozen
from podbot.launch.github_auth import source_of
from podbot.launch.names import LABEL
from podbot.launch.refused_paths import refusal, reserved_targets
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import LaunchRequest, ResourcePlan

# Compiled where they are used: most sessions have no clone, and it takes 0.5 ms.
# Managed users of an enterprise have an underscore in their names.
_OWNER = r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}\Z"
_NAME = r"[A-Za-z0-9._-]{1,100}\Z"
_LONGEST_BRANCH = 244  # bytes; its lock file must still fit into a directory entry
# What git refuses in the name of a branch (git-check-ref-format), and anything that is not UTF-8.
_NO_BRANCH = r"[\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\A[/.-]|[/.]\Z"
_ADDRESS = r"[A-Za-z][A-Za-z0-9+.-]*://|[^/:@]+@[^/:]+:"
_HOST = r"[a-z0-9.-]+(?::[0-9]+)?\Z"
_PLAIN_PATH = r"(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99})+/?\Z"
_FORM = "Write it as owner/name, such as octo/hello."
_CLONE_FLAGS = ("workspace.depth", "workspace.submodules")
_REPO = f"{LABEL}.repo"
_DEFAULT_PORTS = {"https": 443, "http": 80}


class ClonePlan(ResourcePlan):
    """A clone inside the sandbox. ``branch``: None is the default branch; ``depth``: None is all of history.

    ``auth``: the source of the token that reads it; see ``launch.github_auth``.
    """

    repo: str  # owner/name
    branch: str | None
    url: str
    server: str  # scheme, host and port
    directory: str  # inside the sandbox
    depth: int | None = None
    submodules: bool = False
    auth: str = "app"

    def described(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {
            "repo": self.repo,
            "branch": self.branch,
            "url": self.url,
            "directory": self.directory,
            "depth": self.depth,
            "submodules": self.submodules,
        }


class Server(Frozen):
    """``origin``: scheme, host and port as git prints them; ``base``: the prefix of repositories' paths."""

    origin: str
    base: str


def plan_clone(config: AppConfig, request: LaunchRequest) -> ClonePlan | None:
    """The requested clone; None for a mounted workspace.

    Raises IllegalCombination when both are requested, MissingRequired when the repository is not named, and
    InvalidValue for an invalid name.
    """
    if request.repo is None:
        _check_no_clone_flags(config, request)
        return None
    _check_alone(config, request, request.repo)
    name = checked_repo(request.repo, str(request.origin("repo")), config.github.server_url).rpartition("/")[2]
    if request.branch is not None:
        checked_branch(request.branch, str(request.origin("branch")))
    server = server_of(config.github.server_url)
    return ClonePlan(
        repo=request.repo,
        branch=request.branch,
        url=f"{server.base}/{request.repo}.git",
        server=server.origin,
        directory=_directory(config, name),
        depth=config.workspace.depth,
        submodules=config.workspace.submodules,
        auth=source_of(config).auth,
    )


def plan(context: Context) -> Part:
    """The clone, if the workspace is one."""
    clone = context.workspace.clone
    if clone is None:
        return Part(labels={_REPO: ""})
    branch = "its default branch" if clone.branch is None else f"branch {clone.branch}"
    note = f"cloning {clone.url}, {branch}, into {clone.directory}"
    return Part(clone, labels={_REPO: clone.repo}, notes=(note,))


def checked_repo(text: str, origin: str, server_url: str, *, clones: bool = True) -> str:
    """``text`` if it is a valid repository name on GitHub. Raises InvalidValue, which never repeats a token.

    ``server_url``: the key; a name is proposed for an address on that server only. ``clones``: it is to be cloned.
    """
    owner, slash, name = text.partition("/")
    reason, hint = None, ""
    if re.search(TOKEN, text):
        reason = "it looks like a GitHub token, which does not belong on a command line"
        hint = f"Revoke that token. {_FORM}"
    elif re.match(_ADDRESS, text):
        reason, hint = _of_address(text, server_url, clones=clones)
    elif not slash or "/" in name:
        reason = f"{shown(text, 80)} is not owner/name"
    elif not re.match(_OWNER, owner):
        reason = f"{shown(owner, 80)} is not the name of a user or an organization"
    elif not re.match(_NAME, name) or name in (".", ".."):
        reason = f"{shown(name, 120)} is not the name of a repository"
    elif name.lower().endswith(".git"):
        reason = "no repository's name ends in .git"
    if reason is not None:
        raise InvalidValue(field="repository", origin=origin, reason=reason, hint=hint or _named(text) or _FORM)
    return text


def _of_address(text: str, server_url: str, *, clones: bool) -> tuple[str, str]:
    """Why an address is refused, and what to write; without the login that it may contain."""
    from urllib.parse import urlsplit

    reason = "an address is not a repository's name"
    is_url = "://" in text
    try:
        parts = urlsplit(text if is_url else "ssh://" + text.replace(":", "/", 1))
        own, host, port = urlsplit(server_url), (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return reason, _FORM
    scheme, path = parts.scheme.lower(), parts.path
    at = host if port in (None, _DEFAULT_PORTS.get(scheme)) else f"{host}:{port}"
    is_web = scheme in _DEFAULT_PORTS
    if host == own.hostname and (not is_web or (port or _DEFAULT_PORTS[scheme]) == _port_of(own)):
        base = own.path.rstrip("/") if is_web else ""
        return reason, _named(path.removeprefix(base)) or _FORM
    if not re.match(_HOST, at):
        return reason, _FORM
    is_plain = is_web and re.match(_PLAIN_PATH, path)
    address = f"{scheme}://{at}{path}" if is_plain else "this address"
    if not clones:
        return f"{address} is on {at}, and podbot has tokens only for {own.hostname} (github.server_url)", _FORM
    wanted = address if is_plain else "it"
    reason = f"{address} is on {at}, and podbot clones only from {own.hostname} (github.server_url)"
    return reason, f"Clone {wanted} yourself, and name its directory in place of the repository."


def _port_of(url: Any) -> int | None:
    port: int | None = url.port
    return port or _DEFAULT_PORTS.get(url.scheme)


def _named(path: str) -> str:
    """A remedy with the owner and the name at the beginning of ``path``, if both are valid; or empty."""
    parts = [part for part in re.sub(r"(?s)[?#].*", "", path).split("/") if part]
    if len(parts) >= 2:
        name = re.sub(r"\.git\Z", "", parts[1], flags=re.IGNORECASE)
        if re.match(_OWNER, parts[0]) and re.match(_NAME, name) and name not in (".", ".."):
            if len(parts) > 3 and parts[2] == "tree" and _is_branch(branch := "/".join(parts[3:])):
                return f"Write {parts[0]}/{name}, and name the branch {branch} by itself."
            return f"Write {parts[0]}/{name}."
    return ""


def checked_branch(text: str, origin: str) -> str:
    """``text`` if it is a valid branch name by the rules of git-check-ref-format. Raises InvalidValue."""
    if not _is_branch(text):
        name = text.removeprefix("refs/heads/")
        raise InvalidValue(
            field="branch",
            origin=origin,
            reason=f"{shown(text, 80)} cannot be the name of a branch",
            hint=f"Write {name}."
            if _is_branch(name) and name.isprintable()
            else "Write it as `git branch` shows it, such as main, without origin/ or refs/heads/.",
        )
    return text


def _is_branch(text: str) -> bool:
    """Whether ``text`` is a branch name. git would accept ``refs/…`` and ``@``, but they mean ``main`` or HEAD."""
    special = text in ("", "@", "HEAD") or text.startswith("refs/")
    return not special and not re.search(_NO_BRANCH, text) and len(text.encode()) <= _LONGEST_BRANCH


def server_of(url: str) -> Server:
    """``github.server_url`` in one normal form, because git compares host and port as text."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""  # in lower case
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    origin = f"{parts.scheme}://{host}{port}"
    return Server(origin, origin + parts.path.rstrip("/"))


def _check_alone(config: AppConfig, request: LaunchRequest, repo: str) -> None:
    """Check that only one workspace was requested. A directory named in the file only is ignored."""
    if request.trusted_workspace:
        raise IllegalCombination(
            field="repository",
            value=repo[:80],
            origin=str(request.origin("repo")),
            reason=f"{config.workspace.host_path} is named as the workspace, too",
            hint="Leave one of the two out: a repository is cloned inside the sandbox, a directory is mounted.",
        )
    if config.workspace.source != "github_clone":
        raise IllegalCombination(
            field="workspace.source",
            value=config.workspace.source,
            origin=str(config.origin("workspace.source")),
            reason=f"a repository ({repo[:80]}) was named, and only github_clone clones one",
            hint='Set workspace.source = "github_clone", or name no repository.',
        )


def _check_no_clone_flags(config: AppConfig, request: LaunchRequest) -> None:
    """Without a repository, refuse flags that are for one and a source that needs one."""
    for key in ("branch", *_CLONE_FLAGS):
        is_branch = key == "branch"
        origin = request.origin(key) if is_branch else config.origin(key)
        is_given = request.branch is not None if is_branch else origin.kind == "flag"
        if is_given:
            hint = "Name a repository to clone, or leave it out."
            if request.trusted_workspace:
                why = f": the agent works on the branch that {config.workspace.host_path} has" if is_branch else ""
                hint = f"Leave it out{why}. Or name a repository to clone in place of the directory."
            reason = "it is only for a clone, and no repository is named"
            raise InvalidValue(field=key, origin=str(origin), reason=reason, hint=hint)
    if config.workspace.source != "github_clone":
        return
    if config.workspace.host_path:
        raise IllegalCombination(
            field="workspace.source",
            value="github_clone",
            origin=str(config.origin("workspace.source")),
            reason=f"workspace.host_path ({config.origin('workspace.host_path')}) is only used with host_mount",
            hint='Set workspace.source = "host_mount".',
        )
    raise MissingRequired(
        field="a workspace",
        hint="Set workspace.host_path and workspace.source = host_mount, or name a repository to clone.",
    )


def _directory(config: AppConfig, name: str) -> str:
    """``base_dir/name``. Raises InvalidValue for a path that is reserved in the sandbox."""
    given = config.workspace.base_dir
    parts = [part for part in given.split("/") if part]
    base = "/" + "/".join(parts)
    reason = None
    if not given.startswith("/") or "." in parts or ".." in parts:
        reason = f"{shown(given, 80)} is not an absolute path without '.' and '..'"
    elif not given.isprintable():
        reason = "it has a character that cannot be shown"
    else:
        reason = refusal(base, reserved_targets())  # also refuses a directory that contains a reserved path
    if reason is not None:
        raise InvalidValue(
            field="workspace.base_dir",
            origin=str(config.origin("workspace.base_dir")),
            reason=reason,
            hint="Choose a directory of the sandbox such as /work.",
        )
    return f"{base}/{name}"
