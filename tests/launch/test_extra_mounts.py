"""``sandbox.extra_mounts`` and ``--mount``: their spellings, and which of them is its own allowed root."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.container_spec import Mount
from podbot.errors import InvalidValue, MountRefused
from podbot.launch.extra_mounts import plan_extra, wanted_mounts
from podbot.launch.mounts import plan_mounts
from podbot.launch.types import LaunchRequest, LinkFacts, PathFacts
from podbot.launch.workspace import plan_workspace
from tests.launch.build import FILE, config, directory, facts, typed

SRC = "/srv/ref"


def added(*mounts: str, found: PathFacts | None = None, **changes: Any) -> tuple[Mount, ...]:
    """The mounts that ``--mount`` adds to a workspace; each source is ``found``, or /srv/ref."""
    host = facts(extra_mounts=(found or directory(SRC),) * len(mounts), **changes)
    return tuple(
        mount for mount in plan_mounts(config(), typed(mounts=mounts), host).mounts[0:] if mount.source != WORK
    )


WORK = "/home/ann/src/proj"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SRC, Mount(SRC, SRC)),
        (f"{SRC}:ro", Mount(SRC, SRC, read_only=True)),
        (f"{SRC}:/reference", Mount(SRC, "/reference")),
        (f"{SRC}:/reference:ro", Mount(SRC, "/reference", read_only=True)),
        (f"{SRC}:/a//b/", Mount(SRC, "/a/b")),
        ("../ref:/r", Mount(SRC, "/r")),
        ("~/ref:/r", Mount(SRC, "/r")),
    ],
)
def test_a_typed_mount_is_its_own_allowed_root(text: str, expected: Mount) -> None:
    assert added(text) == (expected,)


def test_without_a_target_it_is_at_the_real_path() -> None:
    assert added("~/link", found=directory("/srv/real", "~/link")) == (Mount("/srv/real", "/srv/real"),)


@pytest.mark.parametrize(
    "text", ["", ":", ":ro", ":/a", "/a:", "/a:b", "/a:rw", "/a:/b:rw", "/a:/b:Z", "/a:/b:ro:ro", "/a:b:/c"]
)
def test_a_malformed_typed_mount(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        list(wanted_mounts(config(), typed(mounts=(text,))))
    assert (caught.value.field, caught.value.origin) == ("mount", "LaunchRequest.mounts")


def test_a_relative_target_is_named_and_a_mount_is_proposed() -> None:
    with pytest.raises(InvalidValue) as caught:
        added(f"{SRC}:data")
    assert caught.value.reason == "the target 'data' does not begin with /"
    assert caught.value.hint == f"Write where the sandbox is to have it, such as {SRC}:/data."
    assert added(f"{SRC}:/data") == (Mount(SRC, "/data"),)


@pytest.mark.parametrize("option", ["rw", "Z", "cached"])
def test_an_option_of_podman_s_is_no_target(option: str) -> None:
    with pytest.raises(InvalidValue, match="There are no other options"):
        added(f"{SRC}:{option}")


@pytest.mark.parametrize("text", ["", "/a", "/a:b", ":/b", "/a:/b:rw", "/a:/b:ro:ro", "/a:b:/c"])
def test_a_malformed_configured_mount(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        list(wanted_mounts(config({"sandbox.extra_mounts": (text,)}), typed()))
    assert (caught.value.field, caught.value.origin) == ("sandbox.extra_mounts", str(FILE))


@pytest.mark.parametrize(
    "path",
    ["/", "/home/ann", "/home", "/etc", "/run/user/1000/podman", "/home/ann/.ssh", "/home/ann/.claude", "/var/lib",
     "/home/ann/.local/state/podbot", "/run/user/1000/podbot/x", "/home/ann/.cache/x", "/home/ann/bin", "/opt/x"],
)  # fmt: skip
def test_typing_a_refused_path_does_not_allow_it(path: str) -> None:
    with pytest.raises(MountRefused) as caught:
        added(f"{path}:/r", found=directory(path))
    assert (caught.value.path, caught.value.origin) == (path, "LaunchRequest.mounts")


@pytest.mark.parametrize("target", ["/", "/root", "/root/.ssh", "/etc", "/run/x", "/proc", "/a/../etc", "/usr/bin"])
def test_reserved_targets_are_refused(target: str) -> None:
    with pytest.raises(MountRefused) as caught:
        added(f"{SRC}:{target}")
    assert (caught.value.path, caught.value.origin) == (target, "LaunchRequest.mounts")


def test_a_link_that_an_agent_could_have_made_is_refused() -> None:
    link = LinkFacts(f"{WORK}/ref", "/srv/other", WORK)
    found = PathFacts("ref", "/srv/other", "directory", links=(link,))
    with pytest.raises(MountRefused) as caught:
        added("ref:/r", found=found)
    assert "leads out of" in caught.value.reason
    assert "/srv/other" in caught.value.hint


@pytest.mark.parametrize("kind", ["missing", "other", "unreadable"])
def test_only_directories_are_mounted(kind: Any) -> None:
    with pytest.raises(MountRefused):
        added("/srv/x:/r", found=PathFacts("/srv/x", "/srv/x", kind))


def test_typed_mounts_are_added_to_the_configured_ones_and_none_replaces_another() -> None:
    made = config({"sandbox.extra_mounts": ("/srv/a:/a",)})
    host = facts(extra_mounts=(directory("/srv/a"), directory("/srv/b")), allowed_roots=(directory("/srv/a"),))
    found = plan_mounts(made, typed(mounts=("/srv/b:/b:ro",)), host).mounts
    assert {mount.target for mount in found} == {WORK, "/a", "/b"}
    with pytest.raises(MountRefused) as caught:
        plan_mounts(made, typed(mounts=("/srv/b:/a",)), host)
    assert caught.value.origin == f"{FILE} and LaunchRequest.mounts"
    assert caught.value.reason == "two mounts have this target"


def test_a_sandbox_without_a_workspace_has_them_too() -> None:
    host = facts(extra_mounts=(directory(SRC),), workspace=None)
    made = config({"workspace.source": "none", "workspace.host_path": None})
    request = LaunchRequest(mounts=(f"{SRC}:/r",))
    assert plan_workspace(made, request, host, None).mounts == (Mount(SRC, "/r"),)


@given(st.text(alphabet="/ab:ro ~.", max_size=16))
def test_any_text_is_a_mount_or_refused(text: str) -> None:
    try:
        (found,) = wanted_mounts(config(), typed(mounts=(text,)))
    except InvalidValue:
        return
    assert found.typed
    assert ":" not in found.source
    assert found.target is None or found.target.startswith("/")
    again = f"{found.source}{'' if found.target is None else ':' + found.target}{':ro' if found.read_only else ''}"
    assert again == text
    assert dataclasses.replace(typed(), mounts=(again,)).mounts == (text,)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("type=bind,src=/data,dst=/data", "Write /data:/data."),
        ("type=bind,source=/a,destination=/b,readonly", "Write /a:/b:ro."),
        ("type=bind,source=/a,target=/b,ro=true,z", "Write /a:/b:ro."),
        ("type=bind,source=/a,target=/b,ro=false", "Write /a:/b."),
        ("type=volume,source=cache,target=/b", "Only directories of this machine are mounted. Write SOURCE"),
        ("type=tmpfs,target=/b", "Only directories of this machine are mounted. Write SOURCE"),
    ],
)
def test_the_long_form_of_podman_and_docker_is_answered_with_the_short_one(text: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        list(wanted_mounts(config(), typed(mounts=(text,))))
    assert str(caught.value).startswith("mount (LaunchRequest.mounts): podman's long form is not read. ")
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    "text", ["TOKEN=s3cret:x", "TOKEN=s3cret:/a:/b", "type=bind,source=TOKEN=s3cret,target=/x", "A=s3cret:rw"]
)
def test_what_can_be_a_secret_is_not_repeated(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        list(wanted_mounts(config(), typed(mounts=(text,))))
    assert "s3cret" not in str(caught.value)


def test_a_file_is_answered_with_its_directory() -> None:
    found = PathFacts("/srv/f", "/srv/f", "other")
    with pytest.raises(MountRefused) as caught:
        plan_extra(config(), typed(mounts=("/srv/f:/f",)), facts(extra_mounts=(found,)))
    assert str(caught.value) == (
        "refused to mount /srv/f (LaunchRequest.mounts): it is not a directory, and only directories are mounted."
        " Name the directory that it lies in. A single file is copied into a session."
    )


def test_a_target_that_is_reserved_is_named_as_the_target() -> None:
    found = PathFacts("/srv/d", "/srv/d", "directory")
    with pytest.raises(MountRefused) as caught:
        plan_extra(config(), typed(mounts=("/srv/d:/proc",)), facts(extra_mounts=(found,)))
    assert caught.value.message.startswith("refused to mount anything at /proc (LaunchRequest.mounts): it is reserved")
    assert caught.value.remedy == "Choose another target inside the sandbox, such as /srv/data."


def test_a_missing_directory_that_looks_like_a_variable_is_not_repeated() -> None:
    found = PathFacts("TOKEN=s3cret", "/home/ann/TOKEN=s3cret", "missing")
    with pytest.raises(MountRefused, match=r"refused to mount TOKEN=… \(LaunchRequest.mounts\)") as caught:
        plan_extra(config(), typed(mounts=("TOKEN=s3cret",)), facts(extra_mounts=(found,)))
    assert "s3cret" not in str(caught.value)
