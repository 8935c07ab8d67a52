"""Whatever fails, nothing of ours is left behind and nothing that belongs to others is changed."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest

from podbot.cli.remedies import remedy_of
from podbot.config.published import Published
from podbot.container_spec import Limits, Mount
from podbot.engine.port import Unmet
from podbot.errors import (
    ContainerNotFound,
    CreateFailed,
    CredentialUnreadable,
    DiskFull,
    EngineGone,
    EngineStorageFull,
    ImageNotFound,
    MountRefused,
    NameTaken,
    PodbotError,
    PortUnusable,
    StartFailed,
    StopFailed,
    UploadFailed,
)
from podbot.launch.types import LinkedGit, SandboxPlan
from podbot.session.container import start_container
from podbot.session.directory import FoundSession, sessions
from podbot.streams.wake import Interrupted, Wake
from podbot.testing import FakeEngine
from tests.session.containers import FAILURES, GONE, logged_in, somebody_s, started, with_placeholders
from tests.session.plans import SESSION, Place, container, labels


def test_it_is_created_furnished_started_and_removed(engine: FakeEngine, place: Place) -> None:
    plan = place.sandbox()
    with started(engine, place, plan) as found:
        assert engine.inspect(found).state == "running"
        made = engine.by_name[SESSION]
        assert made.spec is plan.container
        names = [name for name, _ in engine.calls]
        assert names.index("create") < names.index("unmet") < names.index("start")
        assert [found.live for found in sessions(place.environ)] == [True]
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert place.kinds() == ["container.create", "container.start", "container.removed"]


def with_own_ids(plan: SandboxPlan) -> SandboxPlan:
    security = dataclasses.replace(plan.container.security, own_ids=True)
    return dataclasses.replace(plan, container=dataclasses.replace(plan.container, security=security))


def test_a_rootless_engine_has_a_user_namespace_of_its_own(engine: FakeEngine, place: Place) -> None:
    engine.rootless = True
    with started(engine, place, with_own_ids(place.sandbox())):
        assert engine.by_name[SESSION].spec.security.own_ids is False
        assert "engine.user_ids" in place.kinds()


def test_a_runtime_that_the_engine_does_not_use_is_refused_with_its_origin(engine: FakeEngine, place: Place) -> None:
    plan = place.sandbox()
    origins = {"sandbox.runtime": "variable PODBOT_SANDBOX_RUNTIME"}
    plan = dataclasses.replace(plan, container=dataclasses.replace(plan.container, origins=origins))
    engine.ignored = (Unmet("sandbox.runtime", "runsc", "runc"),)
    with pytest.raises(CreateFailed) as caught, started(engine, place, plan):
        pytest.fail("it started")
    assert "sandbox.runtime = runsc (variable PODBOT_SANDBOX_RUNTIME) and did not apply it" in caught.value.message
    assert "leave sandbox.runtime unset" in remedy_of(caught.value)


def test_a_rootful_engine_gives_user_ids_or_the_start_is_refused(engine: FakeEngine, place: Place) -> None:
    engine.rootless = False
    with started(engine, place, with_own_ids(place.sandbox())):
        assert engine.by_name[SESSION].spec.security.own_ids is True
    engine.ignored = (Unmet("sandbox.own_user_ids", "true", "the host's"),)
    with pytest.raises(CreateFailed, match="did not apply it"), started(engine, place, with_own_ids(place.sandbox())):
        pytest.fail("it started")
    assert engine.by_name == {}


def test_a_working_directory_that_may_not_be_entered_leads_to_the_runtime(engine: FakeEngine, place: Place) -> None:
    engine.rootless = False
    reason = "its working directory /w: permission denied"
    engine.fail("start", StartFailed(container="c", reason=reason))
    with pytest.raises(StartFailed, match="working directory") as caught:
        started(engine, place, with_own_ids(place.sandbox())).__enter__()
    assert "runtime crun" in caught.value.remedy
    engine.fail("start", StartFailed(container="c", reason=reason))
    with pytest.raises(StartFailed) as caught:
        started(engine, place, place.sandbox()).__enter__()
    assert "runtime crun" not in caught.value.remedy


class GivesAway(FakeEngine):
    """Its runtime changes who may use a device of the host."""

    null = ""

    def start(self, container: str) -> None:
        super().start(container)
        os.chmod(self.null, 0o600)


def test_a_runtime_that_gives_a_device_of_the_host_away_is_refused_and_the_device_is_restored(
    place: Place, tmp_path: Path
) -> None:
    plan = with_own_ids(place.sandbox())
    engine = GivesAway(images=[plan.container.image])
    engine.null = str(tmp_path / "null")
    with open(engine.null, "w", encoding="utf-8"):
        os.chmod(engine.null, 0o666)
    container = engine.create(plan.container)
    with pytest.raises(StartFailed, match=r"gave this machine's .*/null to it"):
        start_container(engine, container, plan, engine.null)
    assert os.stat(engine.null).st_mode & 0o777 == 0o666


class EndsAtOnce(FakeEngine):
    """Its first container ends as soon as it has started, and is removed before podbot looks at it."""

    def start(self, container: str) -> None:
        super().start(container)
        if [name for name, _ in self.calls].count("start") == 1:
            self.die(container)


def test_a_container_that_is_gone_when_it_has_started_is_one_whose_main_process_ended(place: Place) -> None:
    engine, plan = EndsAtOnce(), place.sandbox()
    spec = dataclasses.replace(plan.container, guest="/run/podbot/guest", auto_remove=True)
    with started(engine, place, dataclasses.replace(plan, container=spec)) as found:
        assert engine.inspect(found).state == "running"
        assert engine.by_name[SESSION].spec.guest is None
    assert "guest.none" in place.kinds()


@pytest.mark.parametrize("keep", ["never", "always"])
@pytest.mark.parametrize("operation", FAILURES)
@pytest.mark.parametrize("after", [False, True])
def test_nothing_is_left_when_a_step_fails(
    engine: FakeEngine, place: Place, operation: str, after: bool, keep: str
) -> None:
    error = FAILURES[operation]
    engine.fail(operation, error, after=after)
    with pytest.raises(type(error)) as caught, started(engine, place, place.sandbox(keep=keep)):
        pytest.fail("it started")
    assert caught.value is error
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert "container.kept" not in place.kinds()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, lambda: Interrupted(signal.SIGTERM)])
def test_nothing_is_left_when_the_agent_s_part_fails(engine: FakeEngine, place: Place, error: object) -> None:
    raised = error()  # type: ignore[operator]
    with pytest.raises(type(raised)) as caught, started(engine, place, place.sandbox()):
        raise raised
    assert caught.value is raised
    assert engine.by_name == {}
    assert sessions(place.environ) == []


# --- what is not ours -----------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["never", "always"])
@pytest.mark.parametrize("marks", [{}, labels(created="2026-07-31T12:00:00Z")])
def test_a_container_of_that_name_is_left_alone(
    engine: FakeEngine, place: Place, marks: dict[str, str], keep: bool
) -> None:
    theirs = somebody_s(engine, **marks)
    with pytest.raises(NameTaken), started(engine, place, place.sandbox(keep=keep)):
        pytest.fail("it started")
    assert engine.inspect(SESSION).id == theirs
    assert engine.inspect(SESSION).state == "running"
    assert sessions(place.environ) == []


@pytest.mark.parametrize("keep", ["never", "always"])
@pytest.mark.parametrize("reason", ["image", "mount", "gone", "garbled"])
def test_a_container_of_that_name_is_not_changed_whatever_fails_first(
    engine: FakeEngine, place: Place, reason: str, keep: bool
) -> None:
    theirs = somebody_s(engine)
    plan = place.sandbox(keep=keep)
    error: type[Exception] = EngineGone
    if reason == "image":  # checked before the name is compared (measured)
        plan = dataclasses.replace(plan, container=dataclasses.replace(plan.container, image="localhost/none:1"))
        error = ImageNotFound
    elif reason == "mount":
        os.rmdir(place.workspace)
        error = MountRefused
    else:
        engine.fail("create", GONE, after=reason == "garbled")
        error = EngineGone if reason == "gone" else NameTaken
    with pytest.raises(error), started(engine, place, plan):
        pytest.fail("it started")
    assert engine.inspect(SESSION).id == theirs
    assert engine.inspect(SESSION).state == "running"
    assert sessions(place.environ) == []


def test_a_kept_session_s_record_survives_a_second_one_of_its_name(engine: FakeEngine, place: Place) -> None:
    with started(engine, place, place.sandbox(keep="always")):
        pass
    before = sessions(place.environ)
    later = container(SESSION, marks=labels(created="2026-08-02T12:00:00Z"))
    with pytest.raises(NameTaken), started(engine, place, place.sandbox(container=later)):
        pytest.fail("it started")
    assert sessions(place.environ) == before == [FoundSession(SESSION, engine.endpoint, "stopped", live=False)]
    engine.images.clear()
    with pytest.raises(ImageNotFound), started(engine, place, place.sandbox(container=later)):
        pytest.fail("it started")
    assert sessions(place.environ) == before


# --- kept -----------------------------------------------------------------------------------------


def test_a_kept_container_is_stopped_and_reported(engine: FakeEngine, place: Place) -> None:
    with started(engine, place, place.sandbox(keep="always")):
        pass
    assert engine.inspect(SESSION).state == "exited"
    assert sessions(place.environ) == [FoundSession(SESSION, engine.endpoint, "stopped", live=False)]
    notice = place.events[-1]
    assert (notice.level, notice.kind) == ("notice", "container.kept")
    assert f"podbot stop --rm {SESSION}" in notice.message


def test_a_kept_one_is_kept_when_the_agent_s_part_fails(engine: FakeEngine, place: Place) -> None:
    with pytest.raises(ValueError, match="x"), started(engine, place, place.sandbox(keep="always")):
        raise ValueError("x")
    assert engine.inspect(SESSION).state == "exited"
    assert [found.state for found in sessions(place.environ)] == ["stopped"]


def test_a_kept_container_that_was_removed_from_outside(engine: FakeEngine, place: Place) -> None:
    with started(engine, place, place.sandbox(keep="always")):
        engine.remove(SESSION)
    assert sessions(place.environ) == []
    assert "container.kept" not in place.kinds()


# --- clean-up that fails --------------------------------------------------------------------------


def vanished(engine: FakeEngine) -> EngineGone:
    engine.vanish()
    return GONE


def test_an_engine_that_stops_leaves_its_error_and_a_record(engine: FakeEngine, place: Place) -> None:
    with pytest.raises(EngineGone) as caught, started(engine, place, place.sandbox()):
        raise vanished(engine)
    assert caught.value is GONE
    assert sessions(place.environ) == [FoundSession(SESSION, engine.endpoint, "orphaned", live=False)]


@pytest.mark.parametrize(
    "second", [EngineStorageFull(operation="remove a container"), DiskFull(path="/run/x", operation="write it")]
)
def test_a_failed_clean_up_keeps_the_first_error(engine: FakeEngine, place: Place, second: PodbotError) -> None:
    """Issue 10.7: a full storage at the clean-up hid why the session had ended."""
    engine.fail("start", FAILURES["start"])
    engine.fail("remove", second)
    with pytest.raises(StartFailed), started(engine, place, place.sandbox()):
        pass
    assert place.kinds()[-1] == "container.left"
    assert [found.session for found in sessions(place.environ)] == [SESSION]


def test_a_failed_clean_up_after_success_is_an_error(engine: FakeEngine, place: Place) -> None:
    error = StopFailed(container=SESSION, reason="no")
    with pytest.raises(StopFailed), started(engine, place, place.sandbox(keep="always")):
        engine.fail("stop", error)
    assert [found.session for found in sessions(place.environ)] == [SESSION]


def test_a_signal_during_clean_up_does_not_tear_it(engine: FakeEngine, place: Place) -> None:
    wake = Wake()
    remove = engine.remove

    def interrupted(container: str, *, kill: bool = True) -> None:
        wake.deliver(signal.SIGTERM)
        remove(container, kill=kill)

    engine.remove = interrupted  # type: ignore[method-assign]
    with started(engine, place, place.sandbox(), wake):
        pass
    assert engine.by_name == {}


def test_a_signal_during_creation_waits_for_the_container_and_removes_it(engine: FakeEngine, place: Place) -> None:
    wake = Wake()
    create = engine.create

    def interrupted(spec):  # type: ignore[no-untyped-def]
        wake.deliver(signal.SIGTERM)
        return create(spec)

    engine.create = interrupted  # type: ignore[method-assign]
    with pytest.raises(Interrupted), started(engine, place, place.sandbox(), wake):
        pytest.fail("it started")
    assert ("create", SESSION) in engine.calls
    assert engine.by_name == {}


def test_a_signal_interrupts_a_slow_start(engine: FakeEngine, place: Place) -> None:
    wake = Wake()

    def interrupted(container: str) -> None:
        wake.deliver(signal.SIGINT)
        pytest.fail(f"the start of {container} went on")

    engine.start = interrupted  # type: ignore[method-assign]
    with pytest.raises(Interrupted), started(engine, place, place.sandbox(), wake):
        pytest.fail("it started")
    assert engine.by_name == {}


# --- what the engine drops, and mounts that change ---------------------------------------------------


@pytest.mark.parametrize(
    "unmet",
    [
        Unmet("sandbox.profile", "no-new-privileges", "none"),
        Unmet("sandbox.publish", "127.0.0.1:3000:3000/tcp", "0.0.0.0:3000:3000/tcp"),
    ],
    ids=lambda unmet: unmet.key,
)
def test_confinement_that_was_dropped_ends_the_start(engine: FakeEngine, place: Place, unmet: Unmet) -> None:
    engine.ignored = (unmet,)
    with pytest.raises(CreateFailed) as caught, started(engine, place, place.sandbox()):
        pytest.fail("it started")
    assert f"{unmet.key} = {unmet.wanted}" in caught.value.reason
    assert engine.by_name == {}


def test_a_taken_port_ends_the_start_and_leaves_nothing(engine: FakeEngine, place: Place) -> None:
    ports = (Published("127.0.0.1", 3000, 3000),)
    engine.start(engine.create(dataclasses.replace(container("other"), ports=ports)))
    plan = place.sandbox()
    plan = dataclasses.replace(plan, container=dataclasses.replace(plan.container, ports=ports))
    with pytest.raises(PortUnusable) as caught, started(engine, place, plan):
        pytest.fail("it started")
    assert str(caught.value) == "cannot publish 127.0.0.1:3000: the port is in use"
    assert list(engine.by_name) == ["other"]


def test_a_limit_that_was_dropped_is_reported(engine: FakeEngine, place: Place) -> None:
    engine.ignored = (Unmet("sandbox.memory", str(1 << 30), "0"), Unmet("sandbox.pids", "2048", "0"))
    with started(engine, place, place.sandbox()):
        pass
    (warning,) = [event for event in place.events if event.level == "warning"]
    assert warning.kind == "limit.unmet"
    assert [limit["key"] for limit in warning.fields["limits"]] == ["sandbox.memory", "sandbox.pids"]
    assert "does not enforce sandbox.memory = 1024m and sandbox.pids = 2048" in warning.message


CANNOT_LIMIT = StartFailed(container=SESSION, reason="crun: opening file `memory.max` for writing: No such file")


def test_the_engines_own_words_say_which_limit_it_cannot_set(engine: FakeEngine, place: Place) -> None:
    words = "crun: the requested cgroup controller `pids` is not available: OCI runtime error"
    engine.fail("start", StartFailed(container=SESSION, reason=StartFailed.UNKNOWN, detail=words))
    limits = Limits(memory=1 << 30, pids=2048, by_default=("memory", "pids"))
    with started(engine, place, limited(place.sandbox(), limits)):
        assert engine.by_name[SESSION].spec.limits == Limits(memory=1 << 30, by_default=("memory",))


def limited(plan: SandboxPlan, limits: Limits) -> SandboxPlan:
    return dataclasses.replace(plan, container=dataclasses.replace(plan.container, limits=limits))


def test_default_limits_that_an_engine_cannot_set_are_omitted_and_reported(engine: FakeEngine, place: Place) -> None:
    """This message does not say which one."""
    engine.fail("start", StartFailed(container=SESSION, reason="crun: creating cgroup directory: Permission denied"))
    limits = Limits(memory=1 << 30, cpus=1.5, pids=2048, by_default=("memory", "pids"))
    with started(engine, place, limited(place.sandbox(), limits)) as found:
        assert engine.inspect(found).state == "running"
        assert engine.by_name[SESSION].spec.limits == Limits(cpus=1.5)
    (warning,) = [event for event in place.events if event.level == "warning"]
    assert "sandbox.memory = 1024m and sandbox.pids = 2048" in warning.message


@pytest.mark.parametrize(
    ("reason", "lost"),
    [
        ("crun: opening file `cpu.max` for writing: No such file or directory", "cpus"),
        ("crun: the requested cgroup controller `cpu` is not available: OCI runtime error", "cpus"),
        ("crun: the requested cgroup controller 'cpu' is not available", "cpus"),
        ("runc: failed to write to /sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us: invalid argument", "cpus"),
        ("runc: cannot set cpu limit: container could not join or create cgroup", "cpus"),
        ("crun: open `/sys/fs/cgroup/user.slice/a.scope/memory.max`: Permission denied", "memory"),
        ("crun: opening file `memory.swap.max` for writing: No such file or directory", "memory"),
        ("crun: the requested cgroup controller `memory` is not available", "memory"),
        ("crun: writing file `/sys/fs/cgroup/a/pids.max`: No such file or directory", "pids"),
        ("crun: the requested cgroup controller `pids` is not available", "pids"),
    ],
)
def test_an_engine_without_one_controller_keeps_the_other_limits(
    engine: FakeEngine, place: Place, reason: str, lost: str
) -> None:
    engine.fail("start", StartFailed(container=SESSION, reason=reason))
    names = ("memory", "cpus", "pids")
    limits = Limits(memory=1 << 30, cpus=1.0, pids=2048, by_default=names)
    with started(engine, place, limited(place.sandbox(), limits)):
        left = tuple(name for name in names if name != lost)
        found = engine.by_name[SESSION].spec.limits
        assert found == dataclasses.replace(limits, **{lost: None}, by_default=left)
    (warning,) = [event for event in place.events if event.level == "warning"]
    assert [limit["key"] for limit in warning.fields["limits"]] == [f"sandbox.{lost}"]


def test_an_engine_without_any_controller_loses_one_limit_after_the_other(engine: FakeEngine, place: Place) -> None:
    start = engine.start

    def without_controllers(container: str) -> None:
        limits = engine.by_name[SESSION].spec.limits
        for name, value in (("cpu", limits.cpus), ("memory", limits.memory), ("pids", limits.pids)):
            if value is not None:
                reason = f"crun: the requested cgroup controller `{name}` is not available"
                raise StartFailed(container=SESSION, reason=reason)
        start(container)

    engine.start = without_controllers  # type: ignore[method-assign]
    limits = Limits(memory=1 << 30, cpus=1.0, pids=2048, by_default=("memory", "cpus", "pids"))
    with started(engine, place, limited(place.sandbox(), limits)):
        assert engine.by_name[SESSION].spec.limits == Limits()
    warned = [event.fields["limits"] for event in place.events if event.kind == "limit.unmet"]
    assert [limit["key"] for (limit,) in warned] == ["sandbox.cpus", "sandbox.memory", "sandbox.pids"]


@pytest.mark.parametrize(
    "reason",
    [
        "runc: error setting rlimits for ready process: error setting rlimit type 7: operation not permitted",
        "crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied",
    ],
)
def test_an_engine_that_may_open_fewer_files_keeps_the_other_limits(
    engine: FakeEngine, place: Place, reason: str
) -> None:
    engine.fail("start", StartFailed(container=SESSION, reason=reason))
    limits = Limits(pids=2048, nofile=65_536, nproc=9, by_default=("pids", "nofile"))
    with started(engine, place, limited(place.sandbox(), limits)):
        assert engine.by_name[SESSION].spec.limits == Limits(pids=2048, by_default=("pids",))
    (warning,) = [event for event in place.events if event.level == "warning"]
    assert "does not enforce sandbox.nofile = 65536" in warning.message


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(memory=1 << 30, pids=2048), CANNOT_LIMIT.reason),  # they were requested
        (Limits(nofile=9, by_default=("nofile",)), CANNOT_LIMIT.reason),
        (Limits(memory=1 << 30, pids=2048, by_default=("pids",)), CANNOT_LIMIT.reason),  # less would not help
        (Limits(memory=1 << 30, by_default=("memory",)), "crun: opening file `cpuset.cpus` for writing: No such file"),
        (Limits(memory=1 << 30, by_default=("memory",)), "crun: executable file `sleep` not found"),
    ],
)
def test_other_limits_and_other_failures_are_kept(
    engine: FakeEngine, place: Place, limits: Limits, reason: str
) -> None:
    engine.fail("start", StartFailed(container=SESSION, reason=reason), times=None)
    with pytest.raises(StartFailed), started(engine, place, limited(place.sandbox(), limits)):
        pytest.fail("it started")
    assert [name for name, _ in engine.calls].count("start") == 1


def test_a_repositorys_text_cannot_remove_the_limits(engine: FakeEngine, place: Place) -> None:
    """The path of a worktree can contain "cgroup". The placeholders of worktrees are omitted first, and that is
    enough.
    """
    engine.fail(
        "start", StartFailed(container=SESSION, reason="runc: mkdir /x/cgroup/memory.max/.git: not a directory")
    )
    limits = Limits(memory=1 << 30, by_default=("memory",))
    with started(engine, place, limited(with_placeholders(place), limits)):
        assert engine.by_name[SESSION].spec.limits == limits
    assert "limit.unmet" not in place.kinds()


def test_a_workspace_swapped_while_it_starts_is_refused(engine: FakeEngine, place: Place) -> None:
    create = engine.create

    def swapping(spec):  # type: ignore[no-untyped-def]
        os.rename(place.workspace, place.workspace + ".away")
        os.symlink("/etc", place.workspace)
        return create(spec)

    engine.create = swapping  # type: ignore[method-assign]
    with pytest.raises(MountRefused), started(engine, place, place.sandbox()):
        pytest.fail("it started")
    assert engine.by_name == {}


def test_a_git_directory_that_no_longer_points_back_is_not_mounted(engine: FakeEngine, place: Place) -> None:
    """Issue 10.10: the check before the plan is repeated."""
    linked = LinkedGit(f"{place.base}/shop/.git/worktrees/x", "worktree", f"{place.base}/shop/.git")
    with pytest.raises(MountRefused) as caught, started(engine, place, place.sandbox(linked_git=linked)):
        pytest.fail("it started")
    assert caught.value.path == linked.directory
    assert not any(name == "create" for name, _ in engine.calls)


def test_every_mount_is_checked(engine: FakeEngine, place: Place) -> None:
    mount = Mount(os.path.join(place.base, "gone"), "/reference", read_only=True)
    spec = container(SESSION, Mount(place.workspace, "/workspace"), mount)
    with pytest.raises(MountRefused) as caught, started(engine, place, place.sandbox(container=spec)):
        pytest.fail("it started")
    assert caught.value.path == mount.source
    assert not any(name == "create" for name, _ in engine.calls)


def test_a_container_that_vanished_is_cleaned_up_all_the_same(engine: FakeEngine, place: Place) -> None:
    with started(engine, place, place.sandbox()):
        engine.remove(SESSION)
    with pytest.raises(ContainerNotFound):
        engine.inspect(SESSION)
    assert sessions(place.environ) == []


# --- credentials -------------------------------------------------------------------------------------


def test_credentials_are_copied_before_the_container_starts(engine: FakeEngine, place: Place) -> None:
    with started(engine, place, logged_in(place)):
        assert engine.by_name[SESSION].files == {"/root/.codex/auth.json": b"login"}
    names = [name for name, _ in engine.calls]
    assert names.index("create") < names.index("put_archive") < names.index("start")
    assert place.kinds().count("credentials.uploaded") == 1


def test_without_credentials_there_is_no_upload(engine: FakeEngine, place: Place) -> None:
    with started(engine, place, place.sandbox()):
        pass
    assert "put_archive" not in {name for name, _ in engine.calls}


def test_unreadable_credentials_are_reported_before_anything_is_created(engine: FakeEngine, place: Place) -> None:
    plan = logged_in(place)
    os.rename(os.path.join(place.base, "home", ".codex"), os.path.join(place.base, "home", "away"))
    with pytest.raises(CredentialUnreadable), started(engine, place, plan):
        pytest.fail("it started")
    assert "create" not in {name for name, _ in engine.calls}
    assert sessions(place.environ) == []


def test_a_signal_breaks_off_an_upload(engine: FakeEngine, place: Place) -> None:
    wake = Wake()

    def interrupted(container: str, path: str, archive: bytes) -> None:
        wake.deliver(signal.SIGTERM)
        pytest.fail(f"the upload of {len(archive)} bytes to {path} in {container} went on")

    engine.put_archive = interrupted  # type: ignore[method-assign]
    with pytest.raises(Interrupted), started(engine, place, logged_in(place), wake):
        pytest.fail("it started")
    assert engine.by_name == {}


def test_a_failed_upload_leaves_no_container(engine: FakeEngine, place: Place) -> None:
    engine.fail("put_archive", UploadFailed(container=SESSION, path="/root", reason="read-only file system"))
    with pytest.raises(UploadFailed) as caught, started(engine, place, logged_in(place)):
        pytest.fail("it started")
    assert caught.value.container == SESSION
    assert engine.by_name == {}
    assert sessions(place.environ) == []
