"""``collect_facts``: the only place that inspects the host before planning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from podbot.agents.registry import agent
from podbot.config.models import AppConfig
from podbot.errors import PathError
from podbot.frozen import replace
from podbot.launch.extra_mounts import KEY as EXTRA
from podbot.launch.extra_mounts import wanted_mounts
from podbot.launch.github_auth import source_of
from podbot.launch.held_keys import BASE_VARIABLES
from podbot.launch.mounts import SAME_PATH, not_absolute
from podbot.launch.network_choice import FILTERED, network_of
from podbot.launch.resources.gateway import HOST_VARIABLES
from podbot.launch.security import FUSE
from podbot.launch.terminal_variables import NAMES as TERMINAL_VARIABLES
from podbot.launch.types import Certificates, GitFile, HostFacts, LaunchRequest, LinkFacts, PathFacts, RepositoryFacts
from podbot.machine import machine_memory, most_files, most_processes
from podbot.places import exposed, home_dir, runtime_root, state_dir
from podbot.session.host_paths import (
    expanded,
    links_on,
    links_to_cwd,
    may_be_in,
    other_homes,
    path_facts,
    spelled_path,
    with_protected,
)
from podbot.session.login_facts import with_logins
from podbot.session.repository import look_at_repository
from podbot.session.timezone import time_zone

GIT_SECONDS = 5.0
_GIT_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


def collect_facts(
    config: AppConfig,
    request: LaunchRequest,
    *,
    environ: Mapping[str, str],
    runtime_dir: str,
    engine_socket_path: str | None = None,
    uid: int | None = None,
) -> HostFacts:
    """Resolve paths, read the git identity, and copy the variables that planning needs. Changes nothing.

    ``runtime_dir`` is podbot's own directory, above the session's. ``engine_socket_path`` is None for an engine
    that is not on a unix socket. ``uid`` is this process's, unless given. Raises InvalidValue for a malformed path and
    for a file of certificates that cannot be passed on, PathError when the working directory does not exist, and
    UnsafeDirectory when other users can replace podbot's state directory.
    """
    uid = os.getuid() if uid is None else uid
    home = os.path.realpath(home_dir(environ, uid))
    try:
        cwd = os.getcwd()
    except OSError as exc:
        raise PathError(path=".", operation="find the working directory", reason=exc.strerror or str(exc)) from exc
    name, email = git_identity(environ)
    cwd_links = links_to_cwd(environ, cwd)
    workspace = _workspace(config, request, environ, home, cwd=cwd, cwd_links=cwd_links)
    repository = _repository(workspace, uid, moved=config.workspace.container_path != SAME_PATH)
    wanted = {*TERMINAL_VARIABLES, "XDG_CONFIG_HOME", *config.agent.env_allowlist, source_of(config).variable}
    filtered = network_of(config, request) == FILTERED
    if filtered:
        wanted |= {*HOST_VARIABLES, *BASE_VARIABLES}
    facts = HostFacts(
        home=home,
        cwd=cwd,
        cwd_links=cwd_links,
        uid=uid,
        env={key: environ[key] for key in wanted if key in environ},
        nonce=os.urandom(3).hex(),
        placeholder=os.urandom(16).hex() if filtered else "",
        created=_now(),
        runtime_dir=os.path.realpath(runtime_dir),
        state_dir=os.path.realpath(state_dir(environ)),
        exposed=tuple(exposed(state_dir(environ))),
        engine_socket_dir=os.path.dirname(os.path.realpath(engine_socket_path)) if engine_socket_path else None,
        workspace=workspace,
        repository=repository,
        git_files=_git_files(config, workspace, repository),
        allowed_roots=_allowed_roots(config, home),
        extra_mounts=_extra_mounts(config, request, home, cwd, cwd_links),
        dev_fuse=os.access(FUSE, os.R_OK | os.W_OK),  # a sandbox gets the device only if the user may open it
        memory=machine_memory(),
        nofile=most_files(),
        nproc=most_processes(),
        kernel=_kernel(config),
        time_zone=time_zone(environ),
        git_name=name,
        git_email=email,
        certificates=_certificates(config, home),
        private_key=_private_key(config, home),
        settings=_settings(config, workspace),
        homes=other_homes(uid),
    )
    return with_protected(with_logins(facts, config, environ))


def facts_without_session(environ: Mapping[str, str]) -> HostFacts:
    """What is known of this host where no session is planned: which directories no agent was ever given."""
    uid = os.getuid()
    return HostFacts(
        home=os.path.realpath(home_dir(environ, uid)),
        cwd="/",
        uid=uid,
        env={},
        nonce="",
        created=_now(),
        runtime_dir=os.path.realpath(runtime_root(environ)),
        state_dir=os.path.realpath(state_dir(environ)),
        homes=other_homes(uid),
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _kernel(config: AppConfig) -> tuple[int, int]:
    """Its release, which only planning a sealed sandbox asks for: the module takes 2 ms to load."""
    if config.sandbox.profile != "sealed":
        return (0, 0)
    from podbot.machine import kernel_release

    return kernel_release(os.uname().release)


def _workspace(
    config: AppConfig,
    request: LaunchRequest,
    environ: Mapping[str, str],
    home: str,
    *,
    cwd: str,
    cwd_links: tuple[LinkFacts, ...],
) -> PathFacts | None:
    given = config.workspace.host_path
    if given is None or not given.strip() or config.workspace.source == "none":
        return None
    path = expanded(given, home)
    if not os.path.isabs(path):
        if not request.trusted_workspace:
            raise not_absolute(config, "workspace.host_path", given)
        return _with_spelling(_relative(given, path, cwd, cwd_links), environ, cwd)
    return _with_spelling(path_facts(given, path), environ, cwd)


def _with_spelling(found: PathFacts, environ: Mapping[str, str], cwd: str) -> PathFacts:
    """``found`` with the path as the operator writes it, and its links: $HOME may itself contain some."""
    spelled = spelled_path(found, environ, cwd)
    links = dict.fromkeys((*found.links, *(links_on(spelled) if spelled is not None else ())))
    return replace(found, spelled=spelled, links=tuple(links))


def _relative(given: str, path: str, cwd: str, cwd_links: tuple[LinkFacts, ...]) -> PathFacts:
    """A path that begins in the working directory, with the links through which that was entered."""
    found = path_facts(given, os.path.join(cwd, path))
    return replace(found, links=tuple(dict.fromkeys((*cwd_links, *found.links))))


def _repository(workspace: PathFacts | None, uid: int, *, moved: bool) -> RepositoryFacts:
    if workspace is None or workspace.kind != "directory":
        return RepositoryFacts()
    return look_at_repository(workspace.resolved, uid, moved=moved)


def _settings(config: AppConfig, workspace: PathFacts | None) -> tuple[str, ...]:
    if workspace is None or workspace.kind != "directory":
        return ()
    return tuple(name for name in agent(config.agent.kind).settings if may_be_in(workspace.resolved, name))


def _git_files(config: AppConfig, workspace: PathFacts | None, repository: RepositoryFacts) -> tuple[GitFile, ...]:
    if workspace is None or workspace.kind != "directory" or config.workspace.guard != "protect":
        return ()
    from podbot.session.repository import git_files

    return git_files(workspace.resolved, repository.linked)


def _allowed_roots(config: AppConfig, home: str) -> tuple[PathFacts, ...]:
    roots = []
    for given in config.workspace.allowed_roots:
        path = expanded(given, home)
        if not os.path.isabs(path):
            raise not_absolute(config, "workspace.allowed_roots", given)
        roots.append(path_facts(given, path))
    return tuple(roots)


def _extra_mounts(
    config: AppConfig, request: LaunchRequest, home: str, cwd: str, cwd_links: tuple[LinkFacts, ...]
) -> tuple[PathFacts, ...]:
    sources = []
    for wanted in wanted_mounts(config, request):
        path = expanded(wanted.source, home)
        if os.path.isabs(path):
            sources.append(path_facts(wanted.source, path))
        elif wanted.typed:
            sources.append(_relative(wanted.source, path, cwd, cwd_links))
        else:
            raise not_absolute(config, EXTRA, wanted.source)
    return tuple(sources)


def _certificates(config: AppConfig, home: str) -> Certificates | None:
    """Those of sandbox.ca_certificates; few sessions have any, and Python's ssl is slow to load."""
    if config.sandbox.ca_certificates is None:
        return None
    from podbot.session.certificate_files import read_certificates

    return read_certificates(config, home)


def _private_key(config: AppConfig, home: str) -> tuple[str, ...]:
    """The path of the App's key, so that no mount exposes it. A malformed path is refused elsewhere."""
    path = expanded((config.github.private_key_path or "").strip(), home)
    if not os.path.isabs(path) or "\0" in path:
        return ()
    return tuple(dict.fromkeys((os.path.normpath(path), os.path.realpath(path))))


def git_identity(environ: Mapping[str, str], seconds: float = GIT_SECONDS) -> tuple[str | None, str | None]:
    """The operator's own git name and e-mail address, where they are set; never those of a repository.

    With GIT_DIR=/dev/null, git finds no repository whatever its working directory (measured in a repository with its
    own user.name), and still reads the system's and the user's files and what they include.
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
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    found: dict[str, str] = {}
    for entry in done.stdout.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        # A later file overrides an earlier one. A line break in the value would break a commit's header.
        if value.strip() and value.isprintable():
            found[key] = value.strip()
    return found.get("user.name"), found.get("user.email")
