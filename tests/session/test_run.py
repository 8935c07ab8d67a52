from __future__ import annotations

import dataclasses
import os
import signal

import pytest

from podbot.container_spec import ContainerSpec
from podbot.engine.port import Size
from podbot.errors import AgentNotInImage, EngineGone, MountRefused, SandboxDied, SessionExists, TerminalTooSmall
from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.launch.resources.credentials import CredentialsPlan, FirstRunSource
from podbot.launch.types import CredentialSource
from podbot.session.directory import session_directory, sessions
from podbot.session.plan_json import plan_from
from podbot.session.record import RECORD, SessionRecord, read_record
from podbot.session.run import MINIMUM, SessionResult, run_session
from podbot.session.term_notice import TOLD
from podbot.streams.wake import Signal, Wake
from podbot.testing import IMAGE, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.session.plans import SESSION, Place, changed
from tests.streams.plumbing import pipes

SILENT = ExecIO(None, None, None)


def test_the_agent_runs_and_its_status_is_the_result(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(io: ExecPeer) -> int:
        assert io.spec == ExecSpec(command=("claude",), workdir="/workspace")
        assert engine.inspect(SESSION).state == "running"
        io.write(STDOUT, b"working on " + io.read_all())
        return 7

    engine.on("claude", agent)
    with pipes(2) as (stdin, stdout):
        os.write(stdin.write, b"it")
        stdin.close(stdin.write)
        io = ExecIO(stdin.read, stdout.write, None)
        result = run_session(engine, place.plan(), io, wake, place.events.append)
        assert os.read(stdout.read, 100) == b"working on it"
    assert result == SessionResult(SESSION, ExecStatus(7), kept=False)
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert place.kinds() == ["container.create", "container.start", "agent.start", "agent.end", "container.removed"]


def test_important_notices_are_reported_first(engine: FakeEngine, place: Place, wake: Wake) -> None:
    engine.on("claude", ScriptedExec())
    run_session(engine, place.plan(notes=("mounting a at b", "trust")), SILENT, wake, place.events.append)
    assert [(event.level, event.message) for event in place.events[:2]] == [
        ("notice", "mounting a at b"),
        ("notice", "trust"),
    ]


def test_a_kept_session(engine: FakeEngine, place: Place, wake: Wake) -> None:
    engine.on("claude", ScriptedExec())
    result = run_session(engine, place.plan(keep="always"), SILENT, wake, place.events.append)
    assert result.kept
    assert engine.inspect(SESSION).state == "exited"


def first_run(key: str | None = None) -> CredentialsPlan:
    source = FirstRunSource("claude", "/nowhere/.claude.json", "/root/.claude.json", approved_key=key)
    return CredentialsPlan(first_run=(source,))


def test_the_record_contains_what_a_start_needs_and_no_secret(engine: FakeEngine, place: Place, wake: Wake) -> None:
    found: list[SessionRecord | None] = []
    files = os.path.join(place.base, "state", "files")
    command = ExecSpec(("claude",), env={"API_KEY": "sk-live-1", "LANG": "C"}, secrets=frozenset({"API_KEY"}))
    plan = place.plan(keep="always", command=command, credentials=first_run("sk-live-2"))
    plan = changed(plan, files_dir=files)

    def agent(_io: ExecPeer) -> int:
        found.append(read_record(place.directory()))
        return 0

    engine.on("claude", agent)
    run_session(engine, plan, SILENT, wake, place.events.append)
    during, after = found[0], read_record(place.directory())
    assert during is not None
    assert after is not None
    assert after == dataclasses.replace(during, state="stopped")
    assert during == read_record(files, SESSION), "a reboot leaves this one"
    container = engine.inspect(SESSION)
    assert (during.state, during.endpoint, during.container) == ("running", engine.endpoint, container.id)
    assert (during.created, during.secrets, during.subcommand) == ("2026-08-01T12:00:00Z", ("API_KEY",), "run")
    assert during.plan is not None
    assert plan_from(during.plan) == place.plan(keep="always", files_dir=files, credentials=first_run()).sandbox
    for directory in (place.directory(), files):
        with open(os.path.join(directory, RECORD), encoding="utf-8") as file:
            assert "sk-live" not in file.read()


@pytest.mark.parametrize(
    ("user", "given"), [("", None), ("0", None), ("root:wheel", None), ("1000", "0"), ("node", "0"), ("0x0:0", "0")]
)
def test_an_agent_is_root_whatever_user_its_image_has(
    engine: FakeEngine, place: Place, wake: Wake, user: str, given: str | None
) -> None:
    """Issue 29.23. No user is named where the image has root."""
    engine.image_user = user
    engine.on("claude", ScriptedExec())
    plan = place.plan(keep="always")
    labels = {**plan.sandbox.container.labels, "io.podbot.agent": "claude"}
    container = dataclasses.replace(plan.sandbox.container, labels=labels)
    plan = dataclasses.replace(plan, sandbox=dataclasses.replace(plan.sandbox, container=container))
    run_session(engine, plan, SILENT, wake, place.events.append)
    assert engine.by_name[SESSION].spec.security.user == given


@pytest.mark.parametrize(
    ("home", "given", "got"),
    [
        ("", {}, None),
        ("/root/", {}, None),
        ("/home/x", {}, "/root"),
        ("/home/x", {"HOME": "/home/y"}, "/home/y"),  # the operator's own
    ],
)
def test_an_agent_s_home_is_where_its_login_is(
    place: Place, wake: Wake, home: str, given: dict[str, str], got: str | None
) -> None:
    engine = FakeEngine()
    engine.image_home = home
    engine.on("claude", ScriptedExec())
    plan = place.plan(keep="always")
    container = plan.sandbox.container
    container = dataclasses.replace(container, env={**container.env, **given})
    plan = dataclasses.replace(plan, sandbox=dataclasses.replace(plan.sandbox, container=container))
    run_session(engine, plan, SILENT, wake, place.events.append)
    assert engine.by_name[SESSION].spec.env.get("HOME") == got
    notice = (
        f"HOME is /root inside, where the agent's login is, and not '/home/x', as {container.image} has it;"
        " HOME in sandbox.env overrides both"
    )
    assert (notice in [event.message for event in place.events]) == (got == "/root")


@pytest.mark.parametrize(("login", "got"), [("claude", "/root"), ("", None)])
def test_a_custom_agent_s_home_is_its_image_s_unless_it_has_a_login(
    engine: FakeEngine, place: Place, wake: Wake, login: str, got: str | None
) -> None:
    engine.image_home = "/home/x"
    engine.on("claude", ScriptedExec())
    plan = place.plan(keep="always", kind="custom", credentials=CredentialsPlan(own=login))
    container = plan.sandbox.container
    container = dataclasses.replace(container, labels={**container.labels, "io.podbot.agent": "custom"})
    plan = dataclasses.replace(plan, sandbox=dataclasses.replace(plan.sandbox, container=container))
    run_session(engine, plan, SILENT, wake, place.events.append)
    assert engine.by_name[SESSION].spec.env.get("HOME") == got


def test_a_name_that_another_podbot_runs(engine: FakeEngine, place: Place, wake: Wake) -> None:
    with session_directory(place.directory(), engine.endpoint), pytest.raises(SessionExists):
        run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert engine.calls == [], "the engine is not asked, so the running session's container is safe"


def test_a_termination_before_the_agent_runs(engine: FakeEngine, place: Place, wake: Wake) -> None:
    start = engine.start

    def interrupted(container: str) -> None:
        start(container)
        wake.deliver(signal.SIGHUP)

    engine.start = interrupted  # type: ignore[method-assign]
    result = run_session(engine, place.plan(keep="always"), SILENT, wake, place.events.append)
    assert result == SessionResult(SESSION, ExecStatus(129, signal.SIGHUP), kept=False, agent_ran=False)
    assert engine.by_name == {}
    assert sessions(place.environ) == []


def test_a_termination_while_the_agent_runs(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(io: ExecPeer) -> int:
        wake.post(Signal(signal.SIGTERM))
        io.ended.wait(60)
        return 0

    engine.on("claude", agent)
    result = run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert result.status == ExecStatus(143, signal.SIGTERM)
    assert engine.by_name == {}


def test_a_sandbox_that_is_stopped_from_outside(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(io: ExecPeer) -> int:
        engine.die(SESSION)
        return 0

    engine.on("claude", agent)
    with pytest.raises(SandboxDied):
        run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert engine.by_name == {}
    assert sessions(place.environ) == []


def test_an_engine_that_stops_is_one_error_and_a_record(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(io: ExecPeer) -> int:
        engine.vanish()
        return 0

    engine.on("claude", agent)
    with pytest.raises(EngineGone):
        run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert [(found.session, found.live) for found in sessions(place.environ)] == [(SESSION, False)]


def test_the_status_of_an_agent_is_told_when_its_session_cannot_be_ended(
    engine: FakeEngine, place: Place, wake: Wake
) -> None:
    engine.on("claude", lambda _: 6)
    engine.fail("remove", EngineGone(endpoint=engine.endpoint, reason="x"), times=None)
    with pytest.raises(EngineGone):
        run_session(engine, place.plan(), SILENT, wake, place.events.append)
    fields = {"session": SESSION, "code": 6}
    assert Event("warning", "agent.end", "claude had ended with status 6", fields) in place.events


@pytest.mark.parametrize(
    ("size", "fits"),
    [
        (MINIMUM, True),
        (Size(MINIMUM.columns - 1, MINIMUM.rows), False),
        (Size(MINIMUM.columns, MINIMUM.rows - 1), False),
        (None, True),
    ],
)
def test_a_terminal_that_is_too_small(
    engine: FakeEngine, place: Place, wake: Wake, size: Size | None, fits: bool
) -> None:
    plan = place.plan()
    plan = place.plan(command=dataclasses.replace(plan.agent.command, tty=True))
    engine.on("claude", ScriptedExec())
    io = ExecIO(None, None, None, lambda: size)
    if fits:
        assert run_session(engine, plan, io, wake, place.events.append).status.code == 0
        return
    with pytest.raises(TerminalTooSmall) as caught:
        run_session(engine, plan, io, wake, place.events.append)
    assert (caught.value.minimum_columns, caught.value.minimum_rows) == (MINIMUM.columns, MINIMUM.rows)
    assert engine.calls == []
    assert sessions(place.environ) == []


@pytest.mark.parametrize(("term", "told"), [("xterm-kitty", ["notice"]), ("xterm", [])])
def test_the_agents_other_term_is_told_once(
    engine: FakeEngine, place: Place, wake: Wake, term: str, told: list[str]
) -> None:
    command = ExecSpec(("claude",), env={"TERM": "xterm"}, tty=True, term_choices=(term, "xterm"))
    engine.on("claude", lambda io: int(io.spec.env["TERM"] != "xterm"))
    plan = place.plan(command=command)
    for _ in range(2):
        del place.events[:]
        assert run_session(engine, plan, SILENT, wake, place.events.append).status.code == 0
        assert [event.level for event in place.events if event.kind == "exec.terminal"] == told
        # A killed session of that name has left its directory, in which it was told.
        os.mkdir(place.directory(SESSION), 0o700)
        with open(os.path.join(place.directory(SESSION), TOLD), "x", encoding="ascii"):
            pass


def test_the_terminals_size_does_not_matter_for_an_agent_without_terminal(
    engine: FakeEngine, place: Place, wake: Wake
) -> None:
    engine.on("claude", ScriptedExec())
    io = ExecIO(None, None, None, lambda: Size(1, 1))
    assert run_session(engine, place.plan(), io, wake, place.events.append).status.code == 0


def test_an_engine_elsewhere_would_mount_its_own_directories(engine: FakeEngine, place: Place, wake: Wake) -> None:
    engine.local = False
    with pytest.raises(MountRefused):
        run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert engine.calls == []


def test_the_result_lists_the_copied_credentials(engine: FakeEngine, place: Place, wake: Wake) -> None:
    sources = []
    for family in ("claude", "codex"):
        given = os.path.join(place.base, f".{family}")
        os.makedirs(given)
        sources.append(CredentialSource(family, given, os.path.realpath(given), f"/root/.{family}"))
    engine.on("claude", ScriptedExec())
    result = run_session(
        engine, place.plan(credentials=CredentialsPlan(tuple(sources))), SILENT, wake, place.events.append
    )
    assert result.credentials == ("/root/.claude", "/root/.codex")


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ({"io.podbot.agents": "codex=1,claude=2"}, "claude"),
        ({}, "claude"),  # not podbot's image, so it is not checked
        ({"io.podbot.agents": "codex=1"}, "custom"),
    ],
)
def test_an_agent_that_may_be_in_the_image(
    engine: FakeEngine, place: Place, wake: Wake, labels: dict[str, str], kind: str
) -> None:
    engine.image_labels = labels
    engine.on("claude", ScriptedExec())
    assert run_session(engine, place.plan(kind=kind), SILENT, wake, place.events.append).status.code == 0


@pytest.mark.parametrize(("labels", "linked"), [({"io.podbot.agents": ""}, True), ({}, False)])
def test_an_image_that_may_lack_a_shell_gets_no_link(
    place: Place, wake: Wake, labels: dict[str, str], *, linked: bool
) -> None:
    made: list[ContainerSpec] = []

    class Watched(FakeEngine):
        def create(self, spec: ContainerSpec) -> str:
            made.append(spec)
            return super().create(spec)

    engine = Watched()
    engine.image_labels = labels
    engine.on("claude", ScriptedExec())
    plan = place.plan(kind="custom")
    spec = dataclasses.replace(plan.sandbox.container, link=("/workspace", place.workspace))
    run_session(engine, changed(plan, container=spec), SILENT, wake, place.events.append)
    assert [spec.link is not None for spec in made] == [linked]
    note = f"there is no /workspace inside, only {place.workspace}: podbot did not build {IMAGE}"
    assert [event.message for event in place.events if "inside" in event.message] == ([] if linked else [note])


@pytest.mark.parametrize("label", ["codex=1", ""])
def test_an_agent_that_podbots_image_lacks(engine: FakeEngine, place: Place, wake: Wake, label: str) -> None:
    engine.image_labels = {"io.podbot.agents": label}
    plan = place.plan()
    with pytest.raises(AgentNotInImage, match=r"built without claude\. .* the agents (codex,)?claude\."):
        run_session(engine, plan, SILENT, wake, place.events.append)
    assert "create" not in [operation for operation, _ in engine.calls]
    assert sessions(place.environ) == []


def test_a_label_cannot_insert_text_into_the_remedy(engine: FakeEngine, place: Place, wake: Wake) -> None:
    engine.image_labels = {"io.podbot.agents": "codex=1,`reboot`=1"}
    with pytest.raises(AgentNotInImage) as caught:
        run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert caught.value.agents == "codex,claude"
