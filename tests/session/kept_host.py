"""A host on which a session was kept, with all that ``podbot start`` brings back."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from typing import Any

import podbot
from podbot.execution.runner import ExecIO
from podbot.launch.plan import plan_session
from podbot.launch.types import HostFacts, LaunchRequest
from podbot.management.manage import StopResult, stop_sessions
from podbot.session.directory import sessions
from podbot.session.facts import collect_facts
from podbot.session.guarding import Scanner
from podbot.session.run import run_session
from podbot.session.starting import StartResult, start_session
from podbot.streams.wake import Wake
from podbot.testing import IMAGE, FakeEngine, FakeGitHub, ScriptedExec
from tests.session.plans import Place

SILENT = ExecIO(None, None, None)
PATIENT = Scanner(first=60, second=60)  # seconds; however long a new interpreter takes to start
NAME = "shop"


class Host:
    """A host with a workspace, a login, an engine and a GitHub App."""

    def __init__(self, base: str, github: FakeGitHub, guard: str = "off") -> None:
        self.place = Place(base)
        self.runs = 0
        self.engine = FakeEngine()
        self.engine.on("my-agent", ScriptedExec())
        self.environ = {"HOME": base, "PATH": os.environ["PATH"], **self.place.environ}
        os.makedirs(os.path.join(base, ".codex"))
        with open(os.path.join(base, ".codex", "auth.json"), "w", encoding="utf-8") as file:
            file.write('{"token": "login-1"}')
        self.config = podbot.load_config(
            podbot.LoadOptions(
                environ={"HOME": base},
                overrides={
                    "image": IMAGE,
                    "workspace.source": "host_mount",
                    "workspace.guard": guard,
                    "workspace.host_path": self.place.workspace,
                    "agent.kind": "custom",
                    "agent.command": "my-agent",
                    "session.keep": True,
                    "creds.copy_codex": True,
                    "github.app_id": github.app_id,
                    "github.installation_id": github.installation_id,
                    "github.private_key_path": github.write_key(os.path.join(base, "app.pem")),
                    "github.api_url": github.url,
                },
            )
        )

    @property
    def directory(self) -> str:
        return self.place.directory(NAME)

    @property
    def token(self) -> str | None:
        """The token that the sandbox sees."""
        with contextlib.suppress(OSError), open(os.path.join(self.directory, "secrets", "ghapp_token")) as file:
            return file.read()
        return None

    def state(self) -> tuple[str | None, str]:
        """The record's content, and the engine."""
        (found,) = sessions(self.environ)
        return found.state, self.engine.inspect(NAME).state

    def facts(self, request: LaunchRequest) -> HostFacts:
        return collect_facts(self.config, request, environ=self.environ, runtime_dir=self.place.runtime)

    def run(self, **request: Any) -> None:
        asked = LaunchRequest(name=NAME, trusted_workspace=True, **request)
        self.runs += 1
        facts = dataclasses.replace(self.facts(asked), created=f"2026-08-01T12:00:0{self.runs}Z")
        plan = plan_session(self.config, asked, facts)
        with contextlib.closing(Wake()) as wake:
            run_session(self.engine, plan, SILENT, wake, self.place.events.append, scanner=PATIENT)

    def start(self, name: str = NAME, wake: Wake | None = None) -> StartResult:
        with contextlib.closing(wake or Wake()) as listening:
            return start_session(
                self.engine,
                self.environ,
                name,
                facts=self.facts,
                wake=listening,
                emit=self.place.events.append,
                scanner=PATIENT,
            )

    def stop(self, **options: Any) -> list[StopResult]:
        emit = self.place.events.append
        return list(stop_sessions(self.engine, self.environ, [NAME], seconds=1, emit=emit, scanner=PATIENT, **options))

    def reboot(self) -> None:
        with contextlib.suppress(KeyError):
            self.engine.die(NAME)
        shutil.rmtree(self.place.runtime)


def kept_host(base: str, github: FakeGitHub, guard: str = "off") -> Host:
    host = Host(base, github, guard)
    host.run(github_access="octo/shop")
    assert host.state() == ("stopped", "exited")
    assert host.token is None
    host.engine.calls.clear()
    host.place.events.clear()
    return host
