"""A session's token: it exists before the container, is removed with it, and its grant stays for a kept session."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator

import pytest

from podbot.cli.signals import handled
from podbot.errors import GitHubError, MountRefused, NameTaken, PrivateKeyMissing, SessionKept, StopFailed
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.github.grant import Grant, grant_path
from podbot.hosting.host import channel_for, run_hosted
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.token import TokenPlan
from podbot.launch.types import LaunchPlan
from podbot.session.directory import session_directory, sessions
from podbot.session.run import run_session
from podbot.streams.wake import Wake
from podbot.testing import STDOUT, ExecPeer, FakeEngine, FakeGitHub
from tests.launch.build import resource
from tests.session.clones import clone_labels, clone_plan
from tests.session.plans import SESSION, Place, changed, container, in_state
from tests.session.real import with_git
from tests.streams.plumbing import pipes

SILENT = ExecIO(None, None, None)


@pytest.fixture
def engine() -> FakeEngine:
    return with_git()


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as served:
        yield served


def token_plan(place: Place, github: FakeGitHub, key: str | None = None) -> LaunchPlan:
    token = TokenPlan(
        app_id=github.app_id,
        installation_id=github.installation_id,
        private_key_path=key or github.write_key(os.path.join(place.base, "app.pem")),
        server_url="https://github.com",
        server="https://github.com",
        api_url=github.url,
        repo="octo/shop",
        permissions={"contents": "write", "metadata": "read"},
        secrets_dir=os.path.join(place.directory(), "secrets"),
    )
    return changed(clone_plan(place), token=token)


def token_of(place: Place) -> str:
    with open(os.path.join(place.directory(), "secrets", "ghapp_token"), encoding="ascii") as file:
        return file.read()


def test_the_token_exists_before_the_container_and_for_one_repository(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub
) -> None:
    seen: list[str] = []
    create = engine.create

    def creating(spec):  # type: ignore[no-untyped-def]
        seen.append(token_of(place))
        return create(spec)

    def agent(_peer: ExecPeer) -> int:
        seen.append(token_of(place))
        return 3

    engine.create = creating  # type: ignore[method-assign]
    engine.on("claude", agent)
    result = run_session(engine, token_plan(place, github), SILENT, wake, place.events.append)
    assert result.status == ExecStatus(3)
    assert len(set(seen)) == 1
    assert github.accepts(seen[0], "octo/shop", "contents", "write")
    assert sessions(place.environ) == []
    assert not os.path.exists(place.directory())
    assert not any(seen[0] in str(event) for event in place.events)


def test_a_kept_session_has_no_token_and_the_grant_for_a_new_one(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub
) -> None:
    def agent(peer: ExecPeer) -> int:
        with open(os.path.join(str(peer.spec.workdir), "new"), "w", encoding="utf-8"):
            return 0

    engine.on("claude", agent)
    plan = token_plan(place, github)
    assert run_session(engine, plan, SILENT, wake, place.events.append).kept
    secrets = os.path.join(place.directory(), "secrets")
    assert os.listdir(secrets) == []
    grant = Grant.load(place.directory())
    assert grant is not None
    assert (grant.repo, grant.container, grant.endpoint) == ("octo/shop", SESSION, engine.endpoint)
    assert grant.api_url == github.url


@pytest.mark.parametrize("state", ["running", "exited"])
def test_a_container_that_has_the_name_gets_no_token_of_another_repository(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub, state: str
) -> None:
    """A killed podbot's container, or a kept one, mounts the directory that the token would be written to."""
    plan = token_plan(place, github)
    token = resource(plan, TokenPlan)
    other = Grant(
        "octo/other", token.server_url, github.url, token.app_id, token.installation_id, token.private_key_path,
        container=SESSION, endpoint=engine.endpoint,
    )  # fmt: skip
    engine.start(engine.create(container(SESSION, marks=clone_labels(place))))
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "stopped" if state == "exited" else "running")
        other.store(directory.path)
    if state == "exited":
        engine.die(SESSION)
    with pytest.raises(SessionKept if state == "exited" else NameTaken):
        run_session(engine, plan, SILENT, wake, place.events.append)
    assert github.requests == [], "no token was made"
    assert Grant.load(place.directory()) == other
    assert [found.left_behind for found in sessions(place.environ)] == [state != "exited"]
    assert engine.inspect(SESSION).state == state


def test_a_name_that_is_claimed_at_the_last_moment_inherits_no_grant(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub
) -> None:
    with session_directory(place.directory(), "unix:///elsewhere.sock") as directory:
        in_state(directory, "running")
    secrets = os.path.join(place.directory(), "secrets")
    os.mkdir(secrets, 0o700)
    mounted = os.open(secrets, os.O_RDONLY)  # as the container on the other engine has it
    create = engine.create

    def taken(spec):  # type: ignore[no-untyped-def]
        assert token_of(place)
        assert os.listdir(mounted) == []
        create(container(SESSION, marks={}))
        return create(spec)

    engine.create = taken  # type: ignore[method-assign]
    with pytest.raises(NameTaken):
        run_session(engine, token_plan(place, github), SILENT, wake, place.events.append)
    assert Grant.load(place.directory()) is None
    os.close(mounted)


@pytest.mark.parametrize("fails", [False, True])
def test_a_grant_that_cannot_be_written_at_the_end_hides_nothing(
    engine: FakeEngine, place: Place, wake: Wake, fails: bool
) -> None:
    def agent(peer: ExecPeer) -> int:
        os.unlink(grant_path(place.directory()))
        os.mkdir(grant_path(place.directory()))
        with open(os.path.join(str(peer.spec.workdir), "new"), "w", encoding="utf-8"):
            pass
        if fails:
            engine.fail("stop", StopFailed(container=SESSION, reason="no"))
        return 7

    engine.on("claude", agent)
    with FakeGitHub() as github:
        plan = token_plan(place, github)
        if fails:
            with pytest.raises(StopFailed):
                run_session(engine, plan, SILENT, wake, place.events.append)
        else:
            result = run_session(engine, plan, SILENT, wake, place.events.append)
            assert (result.status, result.kept) == (ExecStatus(7), True)
    assert [event.level for event in place.events if event.kind == "token.not_handed_down"] == ["warning"]


def test_an_installation_without_the_repository(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub
) -> None:
    github.repositories = ("octo/other",)
    with pytest.raises(GitHubError):
        run_session(engine, token_plan(place, github), SILENT, wake, place.events.append)
    assert "create" not in [name for name, _ in engine.calls]
    assert sessions(place.environ) == []


def test_a_missing_key_is_reported_before_any_request(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub
) -> None:
    with pytest.raises(PrivateKeyMissing):
        run_session(engine, token_plan(place, github, key="/nonexistent/x.pem"), SILENT, wake, place.events.append)
    assert github.requests == []
    assert sessions(place.environ) == []


def test_a_key_that_others_may_read(engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub) -> None:
    engine.on("claude", lambda _peer: 0)
    plan = token_plan(place, github)
    os.chmod(resource(plan, TokenPlan).private_key_path, 0o640)
    run_session(engine, plan, SILENT, wake, place.events.append)
    (warning,) = [event for event in place.events if event.kind == "github.key_permissions"]
    assert (warning.level, warning.fields["path"]) == ("warning", resource(plan, TokenPlan).private_key_path)


def test_an_engine_elsewhere_cannot_mount_the_token(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub
) -> None:
    engine.local = False
    with pytest.raises(MountRefused, match=r"on another host"):
        run_session(engine, token_plan(place, github), SILENT, wake, place.events.append)
    assert github.requests == []


def test_a_signal_breaks_off_the_wait_for_github(engine: FakeEngine, place: Place, github: FakeGitHub) -> None:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as silent, handled(tty=False) as wake:

        def interrupt() -> None:
            connection, _ = silent.accept()
            assert connection.recv(1)  # it waits for the answer from now on
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            with connection:  # open, and never answered
                over.wait(60)

        plan = token_plan(place, github)
        unanswered = dataclasses.replace(
            resource(plan, TokenPlan), api_url=f"http://127.0.0.1:{silent.getsockname()[1]}"
        )
        thread = threading.Thread(target=interrupt)
        thread.start()
        result = run_session(engine, changed(plan, token=unanswered), SILENT, wake, place.events.append)
        over.set()
        thread.join()
    assert result.status == ExecStatus(143, signal.SIGTERM)
    assert "create" not in [name for name, _ in engine.calls]
    assert sessions(place.environ) == []


def opened(number: int, cwd: str) -> bytes:
    frame = {"jsonrpc": "2.0", "id": number, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}}
    return json.dumps(frame).encode() + b"\n"


def test_a_hosted_clone_has_its_token_and_loses_nothing(
    engine: FakeEngine, place: Place, wake: Wake, github: FakeGitHub
) -> None:
    plan = token_plan(place, github)
    where = resource(plan, ClonePlan).directory
    command = dataclasses.replace(plan.agent.command, command=("claude-agent-acp",))
    agent = dataclasses.replace(plan.agent, mode="acp", command=command)
    plan = dataclasses.replace(plan, subcommand="host", agent=agent)
    seen: list[str] = []

    def echo(io: ExecPeer) -> int:
        assert io.spec.workdir == where
        seen.append(token_of(place))
        assert "podbot-token" in [thread.name for thread in threading.enumerate()], "it is renewed beside the agent"
        io.write(STDOUT, io.read_all().replace(b"session/new", b"session/update"))
        with open(os.path.join(where, "new"), "w", encoding="utf-8"):
            return 5

    engine.on("claude-agent-acp", echo)
    with pipes(2) as (stdin, stdout):
        os.write(stdin.write, opened(1, where) + opened(2, place.workspace))
        stdin.close(stdin.write)
        io = ExecIO(stdin.read, stdout.write, None)
        result = run_hosted(engine, plan, io, wake, place.events.append, channel=channel_for(plan))
        stdout.close(stdout.write)
        frames = {frame["id"]: frame for frame in map(json.loads, stdout.drain().splitlines())}
    assert (result.status, result.kept) == (ExecStatus(5), True)
    assert frames[1]["params"]["cwd"] == where
    assert frames[2]["error"]["data"]["workspace"] == where
    assert github.accepts(seen[0], "octo/shop", "contents", "write")
    assert seen[0] not in "".join(map(str, place.events))
    assert engine.inspect(SESSION).state == "exited"
    assert os.listdir(os.path.join(place.directory(), "secrets")) == []
    assert "1 untracked file (new)" in "".join(e.message for e in place.events if e.kind == "container.kept")
