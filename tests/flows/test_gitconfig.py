"""The file that the plan mounts is there, whole, whatever was there before."""

from __future__ import annotations

import dataclasses
import os
import stat

import pytest

from podbot.errors import PathError
from podbot.flows.gitconfig import place_gitconfig
from podbot.launch.gitconfig import gitconfig, gitconfig_mount
from podbot.launch.types import LaunchPlan
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
        place_gitconfig(plan)
    finally:
        os.umask(umask)
    path = plan.container.files[0].source
    before = os.stat(path)
    assert stat.S_IMODE(before.st_mode) == 0o644
    assert content(plan) == plan.gitconfig.encode()
    place_gitconfig(plan)
    assert os.stat(path).st_ino == before.st_ino
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


@pytest.mark.parametrize("tampered", [b"", b"[core]\n\tsshCommand = evil\n", b"x" * 5000])
def test_what_was_changed_is_written_anew(tmp_path: os.PathLike[str], tampered: bytes) -> None:
    plan = a_plan(os.fspath(tmp_path))
    place_gitconfig(plan)
    with open(plan.container.files[0].source, "wb") as file:
        file.write(tampered)
    place_gitconfig(plan)
    assert content(plan) == plan.gitconfig.encode()


def test_a_link_in_its_place_is_replaced_not_followed(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    place_gitconfig(plan)
    path = plan.container.files[0].source
    elsewhere = os.path.join(os.fspath(tmp_path), "elsewhere")
    os.rename(path, elsewhere)
    os.symlink(elsewhere, path)
    place_gitconfig(plan)
    assert not os.path.islink(path)
    assert content(plan) == plan.gitconfig.encode()


def test_bytes_that_are_not_utf_8_stay_the_bytes_they_are(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path), b"J\xf6rg".decode("utf-8", "surrogateescape"))
    place_gitconfig(plan)
    assert b"J\xf6rg" in content(plan)


def test_a_directory_that_cannot_be_made_is_a_path_error(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    with open(os.path.join(os.fspath(tmp_path), "state"), "w", encoding="utf-8"):
        pass
    with pytest.raises(PathError):
        place_gitconfig(plan)
