"""Plans the sandbox in which an agent's own login flow runs, without a workspace or anything of the host. Pure."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import NamedTuple

from podbot.agents.definition import HOME, OWN_LOGIN, OwnLogin
from podbot.agents.registry import agent, known
from podbot.config.models import AppConfig, CredsConfig
from podbot.container_spec import Mount
from podbot.errors import InvalidValue
from podbot.exec_spec import ExecSpec
from podbot.launch.plan import plan_sandbox
from podbot.launch.resources.login import own_login, store_of
from podbot.launch.terminal_variables import USUAL, terminal_variables
from podbot.launch.types import HostFacts, LaunchRequest, SandboxPlan

_NAME = r"[a-z]{1,12}(?:-[a-z]{1,8})?"  # of any agent


class LoginFlowPlan(NamedTuple):
    """``command``: the agent's flow. ``store``: the directory of its kept login on the host.

    ``directory``: on the host, new for this flow; ``texts``: files in it; ``file``: the name in it of the login.
    """

    kind: str
    sandbox: SandboxPlan
    command: ExecSpec
    store: str
    directory: str
    texts: dict[str, str]
    file: str


def plan_login_flow(config: AppConfig, kind: str, facts: HostFacts) -> LoginFlowPlan:
    """The sandbox and the command of ``podbot login``. Raises ConfigError subclasses."""
    spec = checked_own_login(kind)
    config = _without_the_host(config, kind)
    request = LaunchRequest(name=f"podbot-login-{kind}-{facts.nonce}")
    sandbox = plan_sandbox(config, request, dataclasses.replace(facts, workspace=None, extra_mounts=()))
    store = store_of(facts.state_dir, kind)
    directory = os.path.join(store, f"new-{facts.nonce}")
    inside, variable = _place(spec)
    container = dataclasses.replace(
        sandbox.container,
        files=(*sandbox.container.files, Mount(directory, inside)),
        env={**sandbox.container.env, **agent(kind).env, **spec.env, **variable},
        workdir=HOME,
    )
    terminal, choices = terminal_variables(facts.env, USUAL)
    return LoginFlowPlan(
        kind,
        dataclasses.replace(sandbox, container=container, image_agent=kind),
        ExecSpec(spec.command, workdir=HOME, env=terminal, tty=True, term_choices=choices),
        store,
        directory,
        {os.path.basename(path): text for path, text in spec.texts.items()},
        os.path.basename(spec.path),
    )


def checked_own_login(kind: str, origin: str = "argument AGENT") -> OwnLogin:
    """How podbot keeps a login for ``kind``. Raises InvalidValue."""
    kinds = [name for name in known() if own_login(name) is not None]
    if kind not in kinds:
        typed = repr(kind) if re.fullmatch(_NAME, kind) else "the word that was typed"  # which may be a key
        reason = f"{typed} is not an agent whose login podbot keeps"
        raise InvalidValue(field="agent", origin=origin, reason=reason, hint=f"Choose one of {', '.join(kinds)}.")
    spec = own_login(kind)
    assert spec is not None  # noqa: S101 - it is one of them
    return spec


def _without_the_host(config: AppConfig, kind: str) -> AppConfig:
    """The configuration for a sandbox that sees nothing of the host, and of which the host sees nothing.

    The network, the sandbox's variables and certificate authorities, and the limits stay. No flow needs a weaker
    profile.
    """
    replace = dataclasses.replace
    sandbox = replace(config.sandbox, extra_mounts=(), publish=(), privileged=False, profile="hardened")
    return replace(
        config,
        workspace=replace(config.workspace, source="none", host_path=None),
        sandbox=sandbox,
        creds=CredsConfig(*(False for _ in dataclasses.fields(CredsConfig))),
        agent=replace(config.agent, kind=kind, mode="podbot"),
        session=replace(config.session, keep=False),
    )


def _place(spec: OwnLogin) -> tuple[str, dict[str, str]]:
    """Where the new directory is mounted, so that the agent writes its login there; and its variable for that."""
    if spec.directory_variable:
        return OWN_LOGIN, {spec.directory_variable: OWN_LOGIN}
    return os.path.join(HOME, os.path.dirname(spec.path)), {}
