"""Paths and names, and many threads at one files worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.tools.files import Files
from tests.tools.workers import refused, together


@pytest.mark.parametrize(
    "path",
    [("..",), (".",), ("",), ("a/b",), ("a", "..", "b"), ("\0",), ("x" * 256,), ("\ud800",), ("a",) * 65],
    ids=ascii,
)
def test_a_path_that_could_lead_elsewhere_is_refused_by_the_worker(files: Files, root: Path, path: tuple[str]) -> None:
    for call in (
        lambda: files.stat(path), lambda: files.ls(path), lambda: files.read(path), lambda: files.write(path, ""),
        lambda: files.edit(path, "a", "b"), lambda: files.rm(path), lambda: files.glob("*", path),
        lambda: files.grep("x", path),
    ):  # fmt: skip
        refused(call, "bad_path")
    assert os.listdir(root) == []


@pytest.mark.parametrize("name", ["with\nnewline", "$HOME", "back\\slash", "-rf", "'\"", "grüße", "\x01\x7f", "*[?"])
def test_odd_names_are_names(files: Files, root: Path, name: str) -> None:
    files.write((name, name), "text")
    assert [entry.path for entry in files.ls((name,)).entries] == [f"{name}/{name}"]
    assert files.read((name, name)).content == "text"
    assert files.edit((name, name), "text", "more").path == f"{name}/{name}"
    assert [match.path for match in files.glob("**").matches] == [f"{name}/{name}"]
    assert [match.path for match in files.grep("more").matches] == [f"{name}/{name}"]
    assert files.rm((name,)).entries == 2


def test_a_name_that_is_not_utf8_is_shown_and_removed_with_its_directory(files: Files, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "\udcff\udcfe").write_text("text")
    (root / "d" / "\\xff\\xfe").write_text("text")
    shown = "d/\\xff\\xfe"
    assert [entry.path for entry in files.ls(("d",)).entries] == [shown, shown]
    assert [match.path for match in files.glob("**/*").matches] == [shown, shown]
    assert [match.path for match in files.grep("text").matches] == [shown, shown]
    assert files.rm(("d",)).entries == 3


def test_many_threads_use_the_files_of_one_workspace(files: Files) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for step in range(20):
            text = f"{number}-{step}" * 100
            files.write((str(number), str(step)), text)
            if files.read((str(number), str(step))).content != text:
                wrong.append((number, step))

    together(work, 8)
    assert not wrong
