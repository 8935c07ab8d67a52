from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path

import pytest

from podbot.container_spec import Mount
from podbot.errors import MountRefused, StartFailed
from podbot.launch.types import SandboxPlan
from podbot.places import OWN_PROC
from podbot.session.mount_check import check_mapped, mount_points, verified_mount
from podbot.testing import FakeEngine
from tests.session.plans import Place
from tests.streams.plumbing import nothing_left_open


@pytest.fixture
def source(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "a" / "proj"
    made.mkdir(parents=True)
    return made


def mount(source: Path, *, read_only: bool = False) -> Mount:
    return Mount(str(source), "/workspace", read_only)


@pytest.mark.parametrize("read_only", [True, False])
def test_an_unchanged_directory(source: Path, read_only: bool) -> None:
    with nothing_left_open(), verified_mount(mount(source, read_only=read_only)):
        (source / "work").write_text("goes on")


def refused(source: Path, *, read_only: bool = False, proc: str | None = OWN_PROC) -> MountRefused:
    checked = verified_mount(mount(source, read_only=read_only), proc=proc)
    with nothing_left_open(), pytest.raises(MountRefused) as caught, checked:
        pytest.fail("the engine would have been asked")
    assert caught.value.path == str(source)
    return caught.value


def test_the_directory_became_a_link(source: Path) -> None:
    elsewhere = source.parent / "elsewhere"
    source.rename(elsewhere)
    source.symlink_to(elsewhere)
    assert "no longer" in refused(source).reason


def test_a_parent_became_a_link(source: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    source.parent.rename(moved)
    source.parent.symlink_to(moved)
    assert "became a link" in refused(source).reason


def test_the_directory_became_a_file(source: Path) -> None:
    source.rmdir()
    source.write_text("x")
    refused(source)


def test_a_removed_directory(source: Path) -> None:
    source.rmdir()
    refused(source)


@pytest.mark.parametrize("replacement", ["nothing", "directory", "link"])
def test_a_swap_while_the_engine_was_at_work(source: Path, replacement: str) -> None:
    def swap() -> None:
        source.rename(source.parent / "aside")
        if replacement == "directory":
            source.mkdir()
        elif replacement == "link":
            source.symlink_to(source.parent / "aside")

    with pytest.raises(MountRefused, match="took its place"), verified_mount(mount(source)):
        swap()


def test_a_failure_inside_the_block_is_the_one_that_is_raised(source: Path) -> None:
    def fail() -> None:
        source.rmdir()
        raise KeyError

    with pytest.raises(KeyError), verified_mount(mount(source)):
        fail()


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A process's directory there, whose list of mounts the test writes."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "fd").symlink_to("/proc/self/fd")
    return tmp_path / "proc"


def mounted(proc: Path, *points: str) -> str:
    lines = [f"36 35 98:0 / {point} rw,noatime master:1 - ext3 /dev/root rw\n" for point in points]
    (proc / "mountinfo").write_text("".join(lines))
    return str(proc)


def test_a_read_only_source_contains_no_other_file_system(source: Path, proc: Path) -> None:
    with verified_mount(mount(source, read_only=True), proc=mounted(proc, "/", str(source), f"{source}x/y")):
        pass
    within = mounted(proc, "/", rf"{source}/data\040set")
    assert "data set" in refused(source, read_only=True, proc=within).reason
    with verified_mount(mount(source), proc=within):
        pass


def test_mount_points_are_read_from_the_kernel(proc: Path) -> None:
    points = mount_points()
    assert "/proc" in points
    assert all(point.startswith("/") for point in points)
    assert mount_points(mounted(proc, r"/a\040b\011c\134040")) == ["/a b\tc\\040"]


def test_elsewhere_than_linux_the_path_is_resolved_again(source: Path) -> None:
    assert mount_points(None) == []
    with verified_mount(mount(source), proc=None):
        pass
    moved = source.parent.parent / "moved"
    source.parent.rename(moved)
    source.parent.symlink_to(moved)
    refused(source, proc=None)


MAPPED = b"70 60 8:1 /a /a/proj rw,nosuid,nodev,relatime,idmapped - ext4 /dev/a rw\n"
PLAIN = MAPPED.replace(b",idmapped", b"")


@pytest.fixture
def own_ids(tmp_path: Path) -> tuple[FakeEngine, SandboxPlan, str]:
    plan = Place(os.fspath(tmp_path)).sandbox()
    spec = dataclasses.replace(
        plan.container,
        mounts=(Mount("/a", "/a/proj"),),
        security=dataclasses.replace(plan.container.security, own_ids=True),
    )
    engine = FakeEngine(images=[spec.image])
    container = engine.create(spec)
    engine.start(container)
    return engine, dataclasses.replace(plan, container=spec), container


@pytest.mark.parametrize(
    ("lines", "right"), [(MAPPED, True), (PLAIN, False), (PLAIN + MAPPED, True), (MAPPED + PLAIN, False), (b"", True)]
)
def test_a_mount_that_a_runtime_did_not_map(
    own_ids: tuple[FakeEngine, SandboxPlan, str], tmp_path: Path, lines: bytes, right: bool
) -> None:
    """The last mount at a path is the one that is seen."""
    engine, plan, container = own_ids
    found = engine.inspect(container)
    (tmp_path / "proc" / str(found.pid)).mkdir(parents=True)
    (tmp_path / "proc" / str(found.pid) / "mountinfo").write_bytes(lines)
    with contextlib.nullcontext() if right else pytest.raises(StartFailed, match="did not map the user ids of /a/proj"):
        check_mapped(found, plan, str(tmp_path / "proc"))
    security = dataclasses.replace(plan.container.security, own_ids=False)
    plain = dataclasses.replace(plan, container=dataclasses.replace(plan.container, security=security))
    check_mapped(found, plain, str(tmp_path / "proc"))


def test_where_the_processes_cannot_be_seen_no_mount_is_checked(
    own_ids: tuple[FakeEngine, SandboxPlan, str], tmp_path: Path
) -> None:
    engine, plan, container = own_ids
    check_mapped(engine.inspect(container), plan, str(tmp_path / "proc"))
