"""The logins that podbot keeps for agents: make one, list them, remove one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.api.calls import host_facts, woken
from podbot.api.engines import NOT_STARTED, environment, explained, open_engine, report_left
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.management.login_list import AgentLogin

__all__ = ["login", "logins", "logout"]


def login(
    config: AppConfig,
    agent: str,
    *,
    io: ExecIO | None = None,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> ExecStatus:
    """Run the login flow of ``agent`` in a sandbox, on a terminal, and keep the login that it makes.

    ``io`` must be a terminal, and defaults to the process's own descriptors. Raises ConfigError before anything is
    created, LoginFailed when the flow left no login, and ContainerError and FilesystemError subclasses.
    """
    from podbot.api import killed_helper
    from podbot.launch.login_flow import checked_own_login, plan_login_flow
    from podbot.launch.types import LaunchRequest
    from podbot.session.kill_watcher import HelperProgram
    from podbot.session.login_flow import run_login_flow

    environ = environment(environ)
    checked_own_login(agent, "argument agent")
    plan = plan_login_flow(config, agent, host_facts(config, LaunchRequest(), environ))
    with open_engine(config, environ=environ, emit=emit) as engine, woken(wake) as waker:
        report_left(engine, environ, emit)
        helper = HelperProgram(killed_helper.__file__, environ)
        try:
            return run_login_flow(engine, plan, io or ExecIO(), waker, emit, killed_helper=helper)
        except NOT_STARTED as exc:
            raise explained(exc, engine, config, environ) from exc


def logins(config: AppConfig, *, environ: Mapping[str, str] | None = None) -> list[AgentLogin]:
    """The login that sessions of each agent get with this configuration, and whether it works."""
    from podbot.management.login_list import list_logins

    return list_logins(environment(environ), config)


def logout(agent: str, *, environ: Mapping[str, str] | None = None) -> bool:
    """Remove podbot's own login of ``agent`` from this host, also from running sessions; False if there was none.

    It is not revoked at the provider. Raises InvalidValue and FilesystemError subclasses.
    """
    from podbot.launch.login_flow import checked_own_login
    from podbot.management.login_list import remove_login

    checked_own_login(agent, "argument agent")
    return remove_login(environment(environ), agent)
