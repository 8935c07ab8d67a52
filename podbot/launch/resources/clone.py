"""What is cloned, and from where. Pure; raises ConfigError only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from podbot.config.models import AppConfig
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired
from podbot.launch.labels import LABEL
from podbot.launch.refused_paths import refusal, reserved_targets
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import LaunchRequest

# Managed users of an enterprise have an underscore in their names.
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z", re.ASCII)
_LONGEST_BRANCH = 244  # bytes; a lock file of that name must still fit a directory entry
# What git refuses in the name of a branch (git-check-ref-format), and what is no UTF-8.
_NO_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\A[/.-]|[/.]\Z")
# A token of any kind, in an address too, and one that was cut.
_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?:gh[a-z]_|github_pat_)[A-Za-z0-9]{10}", re.ASCII)
_FORM = "Write it as owner/name, such as octo/hello."
_CLONE_FLAGS = ("workspace.depth", "workspace.submodules")
_REPO = f"{LABEL}.repo"
_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class ClonePlan:
    """A clone inside the sandbox. ``branch`` None: the repository's default one; ``depth`` None: all of history."""

    repo: str  # owner/name
    branch: str | None
    url: str
    server: str  # scheme, host and port
    directory: str  # inside the sandbox
    depth: int | None = None
    submodules: bool = False

    def described(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "repo": self.repo,
            "branch": self.branch,
            "url": self.url,
            "directory": self.directory,
            "depth": self.depth,
            "submodules": self.submodules,
        }


class Server(NamedTuple):
    """``origin``: scheme, host and port as git prints them; ``base``: what a repository's path follows."""

    origin: str
    base: str


def plan_clone(config: AppConfig, request: LaunchRequest) -> ClonePlan | None:
    """The clone that is wanted; None for a mounted workspace.

    Raises IllegalCombination when both are asked for, MissingRequired when the repository is not named,
    InvalidValue for a name that cannot be one.
    """
    if request.repo is None:
        _check_no_clone_flags(config, request)
        return None
    _check_alone(config, request, request.repo)
    name = checked_repo(request.repo).rpartition("/")[2]
    if request.branch is not None:
        checked_branch(request.branch)
    server = server_of(config.github.server_url)
    return ClonePlan(
        repo=request.repo,
        branch=request.branch,
        url=f"{server.base}/{request.repo}.git",
        server=server.origin,
        directory=_directory(config, name),
        depth=config.workspace.depth,
        submodules=config.workspace.submodules,
    )


def plan(context: Context) -> Part:
    """The clone that the workspace is, if it is one."""
    clone = context.workspace.clone
    if clone is None:
        return Part(labels={_REPO: ""})
    branch = "its default branch" if clone.branch is None else f"branch {clone.branch}"
    note = f"cloning {clone.url}, {branch}, into {clone.directory}"
    return Part(clone, labels={_REPO: clone.repo}, notes=(note,))


def checked_repo(text: str, flag: str = "--repo") -> str:
    """``text`` when GitHub could have a repository of that name. Raises InvalidValue, which repeats no token."""
    owner, slash, name = text.partition("/")
    reason = None
    if _TOKEN.search(text):
        raise InvalidValue(
            field="repository",
            origin=f"flag {flag}",
            reason="it looks like a GitHub token, which does not belong on a command line",
            hint=f"Revoke that token. {_FORM}",
        )
    if "://" in text or text.startswith("git@"):
        reason = "an address is not a repository's name"
    elif not slash or "/" in name:
        reason = f"{text[:80]!r} is not owner/name"
    elif not _OWNER.match(owner):
        reason = f"{owner[:80]!r} is not the name of a user or an organization"
    elif not _NAME.match(name) or name in (".", ".."):
        reason = f"{name[:120]!r} is not the name of a repository"
    elif name.lower().endswith(".git"):
        reason = "no repository's name ends in .git"
    if reason is not None:
        raise InvalidValue(field="repository", origin=f"flag {flag}", reason=reason, hint=_repo_hint(text, flag))
    return text


def checked_branch(text: str, origin: str = "flag --branch") -> str:
    """``text`` when git could have a branch of that name, by the rules of git-check-ref-format. Raises InvalidValue."""
    if not _is_branch(text):
        name = text.removeprefix("refs/heads/")
        raise InvalidValue(
            field="branch",
            origin=origin,
            reason=f"{text[:80]!r} cannot be the name of a branch",
            hint=f"Write --branch {name}."
            if _is_branch(name) and name.isprintable()
            else "Write it as `git branch` shows it, such as main, without origin/ or refs/heads/.",
        )
    return text


def _is_branch(text: str) -> bool:
    """``refs/…`` and ``@`` could be branches to git; who types them means ``main``, or HEAD."""
    special = text in ("", "@", "HEAD") or text.startswith("refs/")
    return not special and not _NO_BRANCH.search(text) and len(text.encode()) <= _LONGEST_BRANCH


def server_of(url: str) -> Server:
    """``github.server_url`` in one spelling: git compares host and port as they are written."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""  # in lower case
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    origin = f"{parts.scheme}://{host}{port}"
    return Server(origin, origin + parts.path.rstrip("/"))


def _check_alone(config: AppConfig, request: LaunchRequest, repo: str) -> None:
    """A repository and a directory are two workspaces. One that only the file names gives way."""
    if request.trusted_workspace:
        raise IllegalCombination(
            field="--repo",
            value=repo[:80],
            origin="command line",
            reason=f"--workspace {config.workspace.host_path} names another workspace",
            hint="Leave one of the two out: --repo clones inside the sandbox, --workspace mounts a directory.",
        )
    if config.workspace.source != "github_clone":
        raise IllegalCombination(
            field="workspace.source",
            value=config.workspace.source,
            origin=str(config.origin("workspace.source")),
            reason=f"the repository {repo[:80]} was named, which is only cloned with github_clone",
            hint='Set workspace.source = "github_clone", or name no repository.',
        )


def _check_no_clone_flags(config: AppConfig, request: LaunchRequest) -> None:
    """Without a repository: a flag that is for one, or a source that needs one."""
    hint = "Name the repository: `--repo owner/name`."
    if request.branch is not None:
        raise MissingRequired(field="--repo (for --branch)", hint=hint)
    for key in _CLONE_FLAGS:
        if (origin := config.origin(key)).kind == "flag":
            raise MissingRequired(field=f"--repo (for {origin.detail})", hint=hint)
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
    command = f"podbot {request.subcommand}"
    raise MissingRequired(
        field="a workspace",
        hint="Set LaunchRequest.repo to owner/name, or workspace.source to host_mount."
        if request.subcommand == "sandbox"
        else f"Name the code to work on: `{command} --workspace PATH` or `{command} --repo owner/name`.",
    )


def _directory(config: AppConfig, name: str) -> str:
    """``base_dir/name``. Raises InvalidValue where the sandbox keeps things of its own."""
    given = config.workspace.base_dir
    parts = [part for part in given.split("/") if part]
    base = "/" + "/".join(parts)
    reason = None
    if not given.startswith("/") or "." in parts or ".." in parts:
        reason = f"{given[:80]!r} is not an absolute path without '.' and '..'"
    elif not given.isprintable():
        reason = "it has a character that cannot be shown"
    else:
        reason = refusal(base, reserved_targets())  # which refuses what holds a reserved place, too
    if reason is not None:
        raise InvalidValue(
            field="workspace.base_dir",
            origin=str(config.origin("workspace.base_dir")),
            reason=reason,
            hint="Choose a directory of the sandbox such as /work.",
        )
    return f"{base}/{name}"


def _repo_hint(text: str, flag: str) -> str:
    """What was probably meant by a pasted address; its parts are judged before they are repeated."""
    path = re.sub(r"\A(?:[a-z+]+://[^/]*/|git@[^:/]*:)|[?#].*", "", text, flags=re.DOTALL)
    parts = [part for part in path.split("/") if part][:2]
    if len(parts) == 2:
        name = re.sub(r"\.git\Z", "", parts[1], flags=re.IGNORECASE)
        if _OWNER.match(parts[0]) and _NAME.match(name) and name not in (".", ".."):
            return f"Write {flag} {parts[0]}/{name}."
    return _FORM
