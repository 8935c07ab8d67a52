"""A kept session is brought back as it was, or stays stopped without a token."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from podbot.config.published import Published
from podbot.container_spec import ContainerSpec
from podbot.engine.port import BindMount, Unmet
from podbot.errors import (
    AlreadyStarted,
    ContainerNotFound,
    GitHubError,
    MountRefused,
    NotOurs,
    PodbotError,
    PortUnusable,
    RequestFailed,
    SandboxPaused,
    SessionKept,
    SessionNotRestorable,
    SessionRecordUnknown,
    UploadFailed,
)
from podbot.github.grant import Grant
from podbot.launch.names import LABEL
from podbot.management.manage import StopResult, list_sessions
from podbot.session.directory import guard_records, session_directory, sessions
from podbot.session.orphans import report_orphans
from podbot.session.record import RECORD, VERSION, read_record
from podbot.session.starting import StartResult
from podbot.streams.wake import Interrupted, Wake
from podbot.testing import FakeGitHub
from tests.session.kept_host import NAME, PATIENT, Host, kept_host
from tests.session.plans import container


@pytest.fixture(scope="module")
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as served:
        yield served


@pytest.fixture
def host(tmp_path: os.PathLike[str], github: FakeGitHub) -> Host:
    """A session that was kept, with a token and a login."""
    return kept_host(os.fspath(tmp_path), github)


# --- what works ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rebooted", [False, True])
def test_it_runs_again_with_its_resources_and_without_podbot(
    tmp_path: os.PathLike[str], github: FakeGitHub, rebooted: bool
) -> None:
    host = kept_host(os.fspath(tmp_path), github, "report")
    if rebooted:
        host.reboot()
    uploads = len(host.engine.by_name[NAME].archives)
    assert host.start() == StartResult(NAME, credentials=("/root/.codex",))
    assert host.state() == ("detached", "running")
    assert host.token is not None
    assert github.accepts(host.token, "octo/shop", "contents", "write")
    assert Grant.load(host.directory) is not None, "a token-daemon renews it"
    assert os.path.isdir(os.path.join(host.directory, "secrets"))
    assert len(host.engine.by_name[NAME].archives) == uploads + 1
    assert len(guard_records(host.directory)) == 1, "the guard has looked at the workspace anew"
    assert [event.kind for event in host.place.events if event.level == "notice"] == ["token.detached"]
    operations = [name for name, _ in host.engine.calls]
    assert operations.index("unmet") < operations.index("start") < operations.index("put_archive")
    (info,) = list_sessions(host.engine, host.environ, include_stopped=False)
    assert (info.session, info.detached, info.orphan, info.token is not None) == (NAME, True, False, True)


def test_every_other_command_ignores_it(host: Host) -> None:
    host.start()
    host.place.events.clear()
    report_orphans(host.engine, host.environ, host.place.events.append, scanner=PATIENT)
    assert host.place.events == []
    assert host.state() == ("detached", "running")


def test_a_stop_stops_it_and_reports_findings(tmp_path: os.PathLike[str], github: FakeGitHub) -> None:
    host = kept_host(os.fspath(tmp_path), github, "report")
    host.start()
    with open(os.path.join(host.place.workspace, ".envrc"), "w", encoding="utf-8") as file:
        file.write("x")
    host.place.events.clear()
    assert host.stop() == [StopResult(NAME, removed=False)]
    assert host.state() == ("stopped", "exited")
    assert host.token is None
    assert [event.fields["path"] for event in host.place.events if event.kind == "guard.finding"] == [".envrc"]
    host.start()
    assert host.stop(remove_kept=True) == [StopResult(NAME, removed=True)]
    assert sessions(host.environ) == []
    assert host.engine.by_name == {}


def test_one_that_ended_by_itself_is_started_again(host: Host) -> None:
    host.start()
    first = host.token
    host.engine.die(NAME)
    host.start()
    assert host.state() == ("detached", "running")
    assert host.token not in (None, first)


def test_podbots_own_files_are_written_again(host: Host) -> None:
    record = read_record(host.directory)
    assert record is not None
    assert record.plan is not None
    files = record.plan["files_dir"]
    shutil.rmtree(files)
    host.start()
    mounted = {mount.source for mount in host.engine.inspect(NAME).mounts if mount.source.startswith(files)}
    assert mounted
    assert all(map(os.path.isfile, mounted - {f"{files}/guest"}))
    assert sorted(os.listdir(f"{files}/guest")) == ["channel", "guest.py"]
    assert read_record(files, NAME) is not None


def ported(tmp_path: os.PathLike[str], github: FakeGitHub, *ports: str) -> Host:
    """A kept session with ports and a variable."""
    host = Host(os.fspath(tmp_path), github)
    host.run(publish=ports, env={"SHOP_KEY": "s3cret-value"})
    host.place.events.clear()
    return host


def test_its_ports_are_published_again_and_it_is_said_what_has_no_value(
    tmp_path: os.PathLike[str], github: FakeGitHub
) -> None:
    host = ported(tmp_path, github, "0.0.0.0:3000:80")
    host.start()
    assert host.engine.by_name[NAME].spec.ports == (Published("0.0.0.0", 3000, 80),)
    notes = {event.kind: event.message for event in host.place.events}
    assert ("warning", "plan.note") in {(event.level, event.kind) for event in host.place.events}
    assert "publishing port 80 of the sandbox at 0.0.0.0:3000: WARNING" in notes["plan.note"]
    assert "shop has no SHOP_KEY: pass them with `podbot exec -e`" in notes["session.variables"]
    with open(os.path.join(host.directory, RECORD), encoding="utf-8") as file:
        assert "s3cret-value" not in file.read()


def test_a_port_that_is_taken_by_now(tmp_path: os.PathLike[str], github: FakeGitHub) -> None:
    host = ported(tmp_path, github, "3000:80")
    other = dataclasses.replace(container("other"), ports=host.engine.by_name[NAME].spec.ports)
    host.engine.start(host.engine.create(other))
    with pytest.raises(PortUnusable):
        host.start()
    assert host.state() == ("stopped", "exited")
    host.engine.remove("other")
    host.start()
    assert host.state() == ("detached", "running")


@pytest.mark.parametrize("ports", [[], [{"address": "127.0.0.1", "host_port": 3000, "port": 22}], [{"port": 1}], "x"])
def test_a_record_with_other_ports(tmp_path: os.PathLike[str], github: FakeGitHub, ports: Any) -> None:
    host = ported(tmp_path, github, "3000:80")
    path = os.path.join(host.directory, RECORD)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    assert document["plan"]["container"]["ports"] == [{"address": "127.0.0.1", "host_port": 3000, "port": 80}]
    document["plan"]["container"]["ports"] = ports
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    with pytest.raises(SessionNotRestorable):
        host.start()
    assert host.state() == ("stopped", "exited")


def test_a_removed_login_is_not_copied(host: Host) -> None:
    shutil.rmtree(os.path.join(host.place.base, ".codex"))
    assert host.start() == StartResult(NAME)


def test_a_session_without_a_token(tmp_path: os.PathLike[str], github: FakeGitHub) -> None:
    host = Host(os.fspath(tmp_path), github)
    host.run()
    host.start()
    assert host.state() == ("detached", "running")
    assert host.token is None


def test_a_new_session_of_that_name_is_refused(host: Host) -> None:
    for request in ({"github_access": "octo/shop"}, {}):
        with pytest.raises(SessionKept) as caught:
            host.run(**request)
        assert caught.value.session == NAME
        assert caught.value.remedy.startswith("Restart it")
        assert host.state() == ("stopped", "exited")
    host.start()
    assert host.state() == ("detached", "running")


def test_a_new_session_of_that_name_after_a_reboot_is_refused(host: Host) -> None:
    host.reboot()
    with pytest.raises(SessionKept):
        host.run()
    host.start()
    assert host.state() == ("detached", "running")


# --- what is refused ------------------------------------------------------------------------------


def refused(host: Host, *errors: type[PodbotError]) -> PodbotError:
    """The error; the session stayed stopped, without a token."""
    starts = host.engine.calls.count(("start", host.engine.inspect(NAME).id))
    with pytest.raises(errors) as caught:
        host.start()
    assert host.state() == ("stopped", "exited")
    assert host.token is None
    assert host.engine.calls.count(("start", host.engine.inspect(NAME).id)) == starts, "nothing ran"
    return caught.value


def test_names_that_are_none(host: Host) -> None:
    with pytest.raises(ContainerNotFound):
        host.start("nosuch")
    host.engine.create(dataclasses.replace(host.engine.by_name[NAME].spec, name="theirs", labels={}))
    with pytest.raises(NotOurs):
        host.start("theirs")


def test_one_that_runs_already(host: Host) -> None:
    host.start()
    token = host.token
    with pytest.raises(AlreadyStarted) as caught:
        host.start()
    assert caught.value.message == f"the session {NAME} is already running"
    assert host.state() == ("detached", "running")
    assert host.token == token


def test_one_that_another_podbot_has(host: Host) -> None:
    with session_directory(host.directory, host.engine.endpoint), pytest.raises(AlreadyStarted) as caught:
        host.start()
    assert caught.value.state == AlreadyStarted.CHANGING
    host.engine.start(NAME)
    with session_directory(host.directory, host.engine.endpoint), pytest.raises(AlreadyStarted) as caught:
        host.start()
    assert caught.value.state == AlreadyStarted.RUNNING


def test_a_running_one_that_is_not_kept_is_not_said_to_be_removable(host: Host) -> None:
    labels = host.engine.by_name[NAME].spec.labels
    host.engine.by_name[NAME].info = dataclasses.replace(
        host.engine.by_name[NAME].info, labels={**labels, f"{LABEL}.keep": "never"}, state="running"
    )
    with session_directory(host.directory, host.engine.endpoint), pytest.raises(AlreadyStarted):
        host.start()


def test_a_paused_one_is_said_to_be_paused(host: Host) -> None:
    host.start()
    host.engine.pause(NAME)
    with pytest.raises(SandboxPaused):
        host.start()


def test_one_that_something_else_started(host: Host) -> None:
    host.engine.start(NAME)
    with pytest.raises(SessionNotRestorable, match="its container is running"):
        host.start()


def test_a_link_in_place_of_the_workspace(host: Host) -> None:
    elsewhere = os.path.join(host.place.base, "elsewhere")
    os.rename(host.place.workspace, elsewhere)
    os.symlink(elsewhere, host.place.workspace)
    error = refused(host, MountRefused)
    assert "link" in str(error)
    os.unlink(host.place.workspace)
    refused(host, MountRefused)  # nothing there at all


def test_a_workspace_that_the_policy_refuses_by_now(host: Host) -> None:
    """The operator's home has moved to where the workspace is."""
    host.environ["HOME"] = host.place.workspace
    os.makedirs(os.path.join(host.place.workspace, ".local", "state"))
    os.rename(
        os.path.join(host.place.base, ".local", "state", "podbot"),
        os.path.join(host.place.workspace, ".local", "state", "podbot"),
    )
    refused(host, MountRefused, SessionNotRestorable)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "the workspace": lambda plan: plan["container"]["mounts"][0].update(source="/srv"),
    "an added mount": lambda plan: plan["container"]["mounts"].append(
        {**plan["container"]["mounts"][0], "target": "/x"}
    ),
    "the files' directory": lambda plan: plan.update(files_dir="/srv/files"),
    "the runtime directory": lambda plan: plan.update(runtime_dir="/srv/run"),
    "the guest's directory": lambda plan: plan["resources"]["guest"].update(directory="/srv/guest"),
    "the secrets' directory": lambda plan: plan["resources"]["token"].update(secrets_dir="/srv/secrets"),
    "the token's repository": lambda plan: plan["resources"]["token"].update(repo="octo/other"),
    "no token": lambda plan: plan["resources"].pop("token"),
    "a label": lambda plan: plan["container"]["labels"].update(x="y"),
    "the name": lambda plan: plan.update(session="other"),
    "the profile": lambda plan: plan["container"]["security"].update(seccomp="/srv/seccomp.json"),
    "a type": lambda plan: plan.update(keep=True),
    "a field": lambda plan: plan.update(more=1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_record_that_was_changed(host: Host, change: str) -> None:
    path = os.path.join(host.directory, RECORD)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    CHANGES[change](document["plan"])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    assert NAME in str(refused(host, SessionNotRestorable))


@pytest.mark.parametrize("change", [{"workspace": "/srv"}, {"git": "/srv"}])
def test_a_record_that_sends_the_guard_elsewhere(
    tmp_path: os.PathLike[str], github: FakeGitHub, change: dict[str, str]
) -> None:
    host = kept_host(os.fspath(tmp_path), github, "report")
    path = os.path.join(host.directory, RECORD)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    document["plan"]["resources"]["guard"].update(change)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    refused(host, SessionNotRestorable)


def test_a_container_on_the_shared_network_is_moved_before_it_starts(host: Host) -> None:
    """A user of the engine can have moved it while it was stopped, and its own network can have been removed."""
    found = host.engine.by_name[NAME]
    assert found.network == f"{NAME}-net"
    host.engine.networks.clear()
    found.network = "default"
    begun = len(host.engine.calls)
    host.start()
    assert found.network == f"{NAME}-net"
    did = [operation for operation, _ in host.engine.calls[begun:]]
    assert did.index("isolate") < did.index("start")


def test_a_container_that_cannot_be_moved_is_not_started(host: Host) -> None:
    host.engine.by_name[NAME].network = "default"
    host.engine.networks[f"{NAME}-net"] = {"io.podbot.session": "another"}
    refused(host, RequestFailed)


def test_a_record_of_the_version_before_has_no_plan(host: Host) -> None:
    with open(os.path.join(host.directory, RECORD), "w", encoding="utf-8") as file:
        json.dump({"session": NAME, "endpoint": host.engine.endpoint, "kept": True}, file)
    assert "no plan" in str(refused(host, SessionNotRestorable))


def test_a_record_of_a_newer_version(host: Host) -> None:
    with open(os.path.join(host.directory, RECORD), "w", encoding="utf-8") as file:
        json.dump({"version": VERSION + 1}, file)
    with pytest.raises(SessionRecordUnknown):
        host.start()
    assert host.engine.inspect(NAME).state == "exited"
    assert host.token is None


def test_another_container_of_that_name(host: Host) -> None:
    spec: ContainerSpec = host.engine.by_name[NAME].spec
    host.engine.remove(NAME)
    host.engine.start(host.engine.create(spec))
    host.engine.die(NAME)
    assert "not the one of its record" in str(refused(host, SessionNotRestorable))


def test_a_container_with_another_mount(host: Host) -> None:
    found = host.engine.by_name[NAME]
    found.info = dataclasses.replace(found.info, mounts=found.info.mounts | {BindMount("/etc", "/x", False)})
    refused(host, SessionNotRestorable)


def test_confinement_that_the_engine_does_not_keep(host: Host) -> None:
    host.engine.ignored = (Unmet("sandbox.profile", "no-new-privileges", "none"),)
    assert "no-new-privileges" in str(refused(host, SessionNotRestorable))


def test_one_that_was_not_to_be_kept(host: Host) -> None:
    found = host.engine.by_name[NAME]
    found.info = dataclasses.replace(found.info, labels={**found.info.labels, "io.podbot.keep": "false"})
    refused(host, SessionNotRestorable)


# --- links that the agent left where podbot copies ------------------------------------------------


def written_inside(host: Host) -> str:
    """The directory on this host with what was written inside, of which the engine's description says where it is."""
    storage = os.path.join(host.place.base, "upper")
    os.makedirs(storage)
    entry = host.engine.by_name[NAME]
    entry.info = dataclasses.replace(entry.info, storage=storage)
    return storage


@pytest.mark.parametrize("text", ["{ws}/x", "..{ws}", "/elsewhere", "root"])
def test_nothing_is_copied_through_a_link_in_place_of_the_home(host: Host, text: str) -> None:
    storage = written_inside(host)
    text = text.format(ws=host.place.workspace)
    os.symlink(text, os.path.join(storage, "root"))
    uploads = len(host.engine.by_name[NAME].archives)
    with pytest.raises(SessionNotRestorable) as caught:
        host.start()
    assert caught.value.reason.startswith(f"its /root was replaced by a link to {text}, ")
    assert len(host.engine.by_name[NAME].archives) == uploads
    assert "start" not in [name for name, _ in host.engine.calls], "the mounts below /root would follow it, too"
    os.unlink(os.path.join(storage, "root"))
    stays_stopped(host)


def test_a_home_that_was_only_written_to_is_no_obstacle(host: Host) -> None:
    storage = written_inside(host)
    os.makedirs(os.path.join(storage, "root"))
    os.symlink(host.place.workspace, os.path.join(storage, "root", ".codex"))  # the engine replaces it
    os.symlink(host.place.workspace, os.path.join(storage, "root", "notes"))
    assert host.start().credentials == ("/root/.codex",)


@pytest.mark.parametrize("storage", ["", "/nonexistent/upper"])
def test_a_store_that_cannot_be_seen_is_no_obstacle(host: Host, storage: str) -> None:
    entry = host.engine.by_name[NAME]
    entry.info = dataclasses.replace(entry.info, storage=storage)
    assert host.start().credentials == ("/root/.codex",)


# --- what fails on the way ------------------------------------------------------------------------


def stays_stopped(host: Host) -> None:
    assert host.state() == ("stopped", "exited")
    assert host.token is None
    host.start()
    assert host.state() == ("detached", "running")


@pytest.mark.parametrize("operation", ["unmet", "start", "put_archive"])
def test_an_engine_that_fails(host: Host, operation: str) -> None:
    error = UploadFailed(container=NAME, path="/root", reason="no") if operation == "put_archive" else None
    host.engine.fail(operation, error or RequestFailed(operation=operation, status=500, reason="no"))
    with pytest.raises((RequestFailed, UploadFailed)):
        host.start()
    stays_stopped(host)


def test_a_start_whose_answer_is_lost(host: Host) -> None:
    host.engine.fail("start", RequestFailed(operation="start", status=500, reason="no"), after=True)
    with pytest.raises(RequestFailed):
        host.start()
    stays_stopped(host)


def test_a_github_that_gives_no_token(host: Host) -> None:
    key = os.path.join(host.place.base, "app.pem")
    os.rename(key, f"{key}.away")
    with pytest.raises(GitHubError):
        host.start()
    os.rename(f"{key}.away", key)
    assert "start" not in [name for name, _ in host.engine.calls]
    stays_stopped(host)


def test_a_workspace_that_is_replaced_while_it_starts(host: Host) -> None:
    start = host.engine.start

    def starting(container: str) -> None:
        start(container)
        os.rename(host.place.workspace, f"{host.place.workspace}.away")
        os.makedirs(host.place.workspace)
        host.engine.start = start  # type: ignore[method-assign]

    host.engine.start = starting  # type: ignore[method-assign]
    with pytest.raises(MountRefused, match="while the sandbox was starting"):
        host.start()
    stays_stopped(host)


@pytest.mark.parametrize("when", ["unmet", "start", "put_archive"])
def test_a_signal_in_the_middle(host: Host, when: str) -> None:
    wake = Wake()
    call = getattr(host.engine, when)

    def interrupted(*args: Any, **options: Any) -> Any:
        setattr(host.engine, when, call)
        answer = call(*args, **options)
        wake.deliver(signal.SIGTERM)
        return answer

    setattr(host.engine, when, interrupted)
    with pytest.raises(Interrupted):
        host.start(wake=wake)
    stays_stopped(host)


def test_one_whose_start_was_killed_is_reported_and_stopped(host: Host) -> None:
    """The state left by a podbot that was killed between the container's start and the end of its own start."""
    host.start()
    path = os.path.join(host.directory, RECORD)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**document, "state": "starting"}, file)
    host.place.events.clear()
    report_orphans(host.engine, host.environ, host.place.events.append, scanner=PATIENT)
    assert [event.kind for event in host.place.events] == ["session.orphan"]
    with pytest.raises(SessionNotRestorable):
        host.start()
    host.stop()
    stays_stopped(host)
