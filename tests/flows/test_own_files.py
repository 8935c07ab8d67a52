"""The files that the plan mounts are there, whole, whatever was there before."""

from __future__ import annotations

import dataclasses
import os
import stat

import pytest

from podbot.errors import DiskFull, PathError
from podbot.flows.own_files import place_files
from podbot.launch.askpass import SECRETS, askpass, askpass_mount
from podbot.launch.gitconfig import gitconfig, gitconfig_mount
from podbot.launch.types import LaunchPlan, Mount
from tests.flows.plans import Place


def a_plan(base: str, name: str = "Ann") -> LaunchPlan:
    plan = Place(base).plan()
    text = gitconfig({"user.name": name}, "/workspace")
    files = (gitconfig_mount(text, os.path.join(base, "state")),)
    return dataclasses.replace(plan, container=dataclasses.replace(plan.container, files=files), gitconfig=text)


def content(plan: LaunchPlan) -> bytes:
    with open(plan.container.files[0].source, "rb") as file:
        return file.read()


def test_it_is_written_once_for_everyone_inside_to_read(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    umask = os.umask(0o077)
    try:
        place_files(plan)
    finally:
        os.umask(umask)
    path = plan.container.files[0].source
    before = os.stat(path)
    assert stat.S_IMODE(before.st_mode) == 0o644
    assert content(plan) == plan.gitconfig.encode()
    place_files(plan)
    assert os.stat(path).st_ino == before.st_ino
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


@pytest.mark.parametrize("tampered", [b"", b"[core]\n\tsshCommand = evil\n", b"x" * 5000])
def test_what_was_changed_is_written_anew(tmp_path: os.PathLike[str], tampered: bytes) -> None:
    plan = a_plan(os.fspath(tmp_path))
    place_files(plan)
    with open(plan.container.files[0].source, "wb") as file:
        file.write(tampered)
    place_files(plan)
    assert content(plan) == plan.gitconfig.encode()


def test_a_link_in_its_place_is_replaced_not_followed(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    place_files(plan)
    path = plan.container.files[0].source
    elsewhere = os.path.join(os.fspath(tmp_path), "elsewhere")
    os.rename(path, elsewhere)
    os.symlink(elsewhere, path)
    place_files(plan)
    assert not os.path.islink(path)
    assert content(plan) == plan.gitconfig.encode()


def test_bytes_that_are_not_utf_8_stay_the_bytes_they_are(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path), b"J\xf6rg".decode("utf-8", "surrogateescape"))
    place_files(plan)
    assert b"J\xf6rg" in content(plan)


def test_a_directory_that_cannot_be_made_is_a_path_error(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    with open(os.path.join(os.fspath(tmp_path), "state"), "w", encoding="utf-8"):
        pass
    with pytest.raises(PathError):
        place_files(plan)


def test_a_clone_s_helper_is_a_program_and_its_token_is_nobody_s_to_write(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    helper = askpass("https://github.com")
    mount = askpass_mount(helper, os.path.join(os.fspath(tmp_path), "state"))
    secrets = Mount(os.path.join(os.fspath(tmp_path), "secrets"), SECRETS, read_only=True)
    files = (*plan.container.files, mount, secrets)
    plan = dataclasses.replace(plan, askpass=helper, container=dataclasses.replace(plan.container, files=files))
    place_files(plan)
    with open(mount.source, encoding="utf-8") as file:
        assert file.read() == helper
    assert stat.S_IMODE(os.stat(mount.source).st_mode) == 0o755
    assert content(plan) == plan.gitconfig.encode()
    assert not os.path.exists(secrets.source)
    os.chmod(mount.source, 0o644)
    place_files(plan)
    assert stat.S_IMODE(os.stat(mount.source).st_mode) == 0o755, "a helper that cannot be run is no helper"


def test_a_full_disk(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DiskFull):
        place_files(a_plan(os.fspath(tmp_path)))
