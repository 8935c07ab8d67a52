"""``collect_facts``: the only place that looks at the host before planning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from podbot.agents.registry import agent, families
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue, PathError
from podbot.launch.agent_plan import TERMINAL_VARIABLES
from podbot.launch.mounts import extra_mount
from podbot.launch.security import FUSE
from podbot.launch.types import CredentialSource, GitFile, HostFacts, LaunchRequest, PathFacts, RepositoryFacts
from podbot.places import exposed, home_dir, state_dir
from podbot.session.memory import machine_memory, most_files, most_processes
from podbot.session.paths import (
    expanded,
    kind_of,
    links_on,
    may_be_in,
    other_homes,
    path_facts,
    spelled_path,
    with_protected,
)
from podbot.session.repository import look_at_repository
from podbot.session.timezone import time_zone

_GIT_SECONDS = 5
_GIT_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


def collect_facts(
    config: AppConfig,
    request: LaunchRequest,
    *,
    environ: Mapping[str, str],
    runtime_dir: str,
    engine_socket_path: str | None = None,
) -> HostFacts:
    """Resolve paths, read the git identity, and take the variables that planning needs. Changes nothing.

    ``runtime_dir``: podbot's own, without the session. ``engine_socket_path``: None for an engine
    that is not on a unix socket. Raises InvalidValue for a path that cannot be one, PathError when
    the working directory is gone, UnsafeDirectory when others can exchange podbot's state directory.
    """
    home = os.path.realpath(home_dir(environ))
    try:
        cwd = os.getcwd()
    except OSError as exc:
        raise PathError(path=".", operation="find the working directory", reason=exc.strerror or str(exc)) from exc
    name, email = _git_identity(environ)
    workspace = _workspace(config, request, environ, home, cwd)
    repository = _repository(workspace)
    wanted = {*TERMINAL_VARIABLES, "XDG_CONFIG_HOME", *config.agent.env_allowlist}
    facts = HostFacts(
        home=home,
        cwd=cwd,
        uid=os.getuid(),
        env={key: environ[key] for key in wanted if key in environ},
        nonce=os.urandom(3).hex(),
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        runtime_dir=os.path.realpath(runtime_dir),
        state_dir=os.path.realpath(state_dir(environ)),
        exposed=tuple(exposed(state_dir(environ))),
        engine_socket_dir=os.path.dirname(os.path.realpath(engine_socket_path)) if engine_socket_path else None,
        workspace=workspace,
        repository=repository,
        git_files=_git_files(config, workspace, repository),
        allowed_roots=_allowed_roots(config, home),
        extra_mounts=_extra_mounts(config, home),
        dev_fuse=os.access(FUSE, os.R_OK | os.W_OK),  # an ordinary user's sandbox gets no more than the user
        memory=machine_memory(),
        nofile=most_files(),
        nproc=most_processes(),
        time_zone=time_zone(environ),
        git_name=name,
        git_email=email,
        credentials=_credentials(home_dir(environ)),
        private_key=_private_key(config, home),
        settings=_settings(config, workspace),
        homes=other_homes(),
    )
    return with_protected(facts)


def _workspace(
    config: AppConfig, request: LaunchRequest, environ: Mapping[str, str], home: str, cwd: str
) -> PathFacts | None:
    given = config.workspace.host_path
    if given is None or not given.strip():
        return None
    path = expanded(given, home)
    if not os.path.isabs(path):
        if not request.trusted_workspace:
            raise _not_absolute(config, "workspace.host_path", given)
        path = os.path.join(cwd, path)
    found = path_facts(given, path)
    spelled = spelled_path(found, environ, cwd)
    # Where a shell says that it is may itself be behind a link.
    links = dict.fromkeys((*found.links, *(links_on(spelled) if spelled is not None else ())))
    return PathFacts(given, found.resolved, found.kind, spelled, tuple(links))


def _repository(workspace: PathFacts | None) -> RepositoryFacts:
    if workspace is None or workspace.kind != "directory":
        return RepositoryFacts()
    return look_at_repository(workspace.resolved, os.getuid())


def _settings(config: AppConfig, workspace: PathFacts | None) -> tuple[str, ...]:
    if workspace is None or workspace.kind != "directory":
        return ()
    return tuple(name for name in agent(config.agent.kind).settings if may_be_in(workspace.resolved, name))


def _git_files(config: AppConfig, workspace: PathFacts | None, repository: RepositoryFacts) -> tuple[GitFile, ...]:
    if workspace is None or workspace.kind != "directory" or config.workspace.guard != "protect":
        return ()
    from podbot.session.git_files import git_files

    return git_files(workspace.resolved, repository.linked)


def _allowed_roots(config: AppConfig, home: str) -> tuple[PathFacts, ...]:
    roots = []
    for given in config.workspace.allowed_roots:
        path = expanded(given, home)
        if not os.path.isabs(path):
            raise _not_absolute(config, "workspace.allowed_roots", given)
        roots.append(path_facts(given, path))
    return tuple(roots)


def _extra_mounts(config: AppConfig, home: str) -> tuple[PathFacts, ...]:
    sources = []
    for text in config.sandbox.extra_mounts:
        given, _, _ = extra_mount(config, text)
        path = expanded(given, home)
        if not os.path.isabs(path):
            raise _not_absolute(config, "sandbox.extra_mounts", given)
        sources.append(path_facts(given, path))
    return tuple(sources)


def _private_key(config: AppConfig, home: str) -> tuple[str, ...]:
    """Where the App's key lies, so that no mount hands it out. A path that cannot be one is refused elsewhere."""
    path = expanded((config.github.private_key_path or "").strip(), home)
    if not os.path.isabs(path) or "\0" in path:
        return ()
    return tuple(dict.fromkeys((os.path.normpath(path), os.path.realpath(path))))


def _not_absolute(config: AppConfig, field: str, given: str) -> InvalidValue:
    # Relative to the working directory, a configured path would mean whatever a repository put there.
    return InvalidValue(
        field=field,
        origin=str(config.origin(field)),
        reason=f"{given!r} is not an absolute path",
        hint="A path in the configuration begins with / or ~/; only one typed on the command line may be relative.",
    )


def _credentials(home: str) -> tuple[CredentialSource, ...]:
    """The credential families that are there. A link to nowhere is not; what cannot be read is refused later."""
    found = []
    for family in families().values():
        given = os.path.join(home, family.directory)
        if kind_of(given) != "missing":
            logged_in = os.path.isfile(os.path.join(given, family.login))
            found.append(CredentialSource(family.name, given, os.path.realpath(given), family.target, logged_in))
    return tuple(found)


def _git_identity(environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The operator's own git name and e-mail address, as far as they are set; never a repository's.

    GIT_DIR=/dev/null makes git find no repository wherever it stands (measured, in one with its own
    user.name), and still read the system's and the user's files with what they include.
    """
    import subprocess

    env = {name: environ[name] for name in _GIT_VARIABLES if name in environ}
    try:
        done = subprocess.run(
            ["git", "config", "--null", "--get-regexp", r"^user\.(name|email)$"],
            env={**env, "GIT_DIR": "/dev/null"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    found: dict[str, str] = {}
    for entry in done.stdout.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        # A later file overrides an earlier one. A line break would end the line of a commit's header.
        if value.strip() and value.isprintable():
            found[key] = value.strip()
    return found.get("user.name"), found.get("user.email")
