"""Plans of real directories: links, FIFOs, and what lies too deep or is too much."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import ToolValidationError
from podbot.sections.host_mounts import HostMount, HostTree, MountPlan, MountQuestion
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from tests.sections.host_trees import plan


def planned(made: MountPlan) -> dict[str, str]:
    """The sources of the files, by their paths in the workspace."""
    return {"/".join(file.target): "/".join(file.source) for file in made.files}


def look(root: Path, path: str = "src", *, follow: bool = False, entries: int = 1000) -> HostTree | None:
    question = MountQuestion(str(root), tuple(path.split("/")), follow, lambda _path: False)
    return look_at(question, entries=entries)


def test_files_are_planned_with_their_sizes_and_modes(root: Path) -> None:
    made = plan(root)
    assert planned(made) == {"a.py": "src/a.py", "pkg/b.sh": "src/pkg/b.sh"}
    assert [(file.size, file.mode & 0o100) for file in made.files] == [(8, 0), (10, 0o100)]
    assert made.directories == (("pkg",),)


def test_a_planned_file_has_the_times_of_its_last_change(root: Path) -> None:
    for path in ("src", "src/a.py"):
        made = plan_mounts([HostMount(path)], [str(root)], look_at)
        found = (root / "src" / "a.py").stat()
        assert (made.files[0].mtime_ns, made.files[0].ctime_ns) == (found.st_mtime_ns, found.st_ctime_ns)


def test_links_are_not_copied_unless_they_are_to_be_followed(root: Path) -> None:
    (root / "src" / "file").symlink_to("a.py")
    (root / "src" / "dir").symlink_to("../other")
    (root / "src" / "absolute").symlink_to(root / "other" / "c.txt")
    made = plan(root)
    assert sorted(planned(made)) == ["a.py", "pkg/b.sh"]
    assert len(made.previews[0].notes) == 3
    assert all("follow_symlinks is false" in note for note in made.previews[0].notes)
    followed = plan(root, follow_symlinks=True)
    assert planned(followed) == {
        "a.py": "src/a.py", "absolute": "other/c.txt", "dir/c.txt": "other/c.txt", "file": "src/a.py",
        "pkg/b.sh": "src/pkg/b.sh",
    }  # fmt: skip
    assert followed.previews[0].notes == ()
    assert ("dir",) in followed.directories


@pytest.mark.parametrize("follow", [False, True])
def test_links_out_of_the_root_are_skipped_with_a_note(root: Path, *, follow: bool) -> None:
    (root / "src" / "relative").symlink_to("../../secret")
    (root / "src" / "absolute").symlink_to(root.parent / "secret")
    (root / "src" / "directory").symlink_to(root.parent / "beside")
    (root / "src" / "similar").symlink_to(f"{root}-not/secret")
    (root / "src" / "step").symlink_to("../up/beside/secret")
    (root / "up").symlink_to("..")
    made = plan(root, follow_symlinks=follow)
    assert sorted(planned(made)) == ["a.py", "pkg/b.sh"]
    assert [note.partition(":")[0] for note in made.previews[0].notes] == [
        "absolute", "directory", "relative", "similar", "step"
    ]  # fmt: skip
    assert all("leads out of the allowed root" in note for note in made.previews[0].notes)


def test_links_that_lead_nowhere_or_in_a_circle(root: Path) -> None:
    (root / "src" / "gone").symlink_to("missing")
    (root / "src" / "self").symlink_to("self")
    (root / "src" / "through").symlink_to("a.py/b")
    (root / "src" / "pkg" / "up").symlink_to("..")
    (root / "src" / "top").symlink_to("../")
    (root / "other" / "back").symlink_to("../src")
    (root / "src" / "away").symlink_to("../other")
    made = plan(root, follow_symlinks=True)
    assert sorted(planned(made)) == ["a.py", "away/c.txt", "pkg/b.sh"]
    notes = dict(note.split(": ", 1) for note in made.previews[0].notes)
    assert sorted(notes) == ["away/back", "gone", "pkg/up", "self", "through", "top"]
    assert all("leads nowhere" in notes[name] for name in ("gone", "self", "through"))
    assert all("that it is in" in notes[name] for name in ("away/back", "pkg/up", "top"))


def test_fifos_sockets_and_devices_are_skipped_and_nothing_waits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "src" / "fifo")
    (root / "src" / "link").symlink_to("fifo")
    monkeypatch.chdir(root / "src")  # a socket's path has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    made = plan(root, follow_symlinks=True)
    assert sorted(planned(made)) == ["a.py", "pkg/b.sh"]
    assert [note.partition(":")[0] for note in made.previews[0].notes] == ["fifo", "link", "socket"]
    with pytest.raises(ToolValidationError, match="not a regular file"):
        plan(root, "src/fifo")


def test_the_host_path_itself_may_lead_through_links_within_the_root(root: Path) -> None:
    (root / "alias").symlink_to("src")
    made = plan(root, "alias/pkg")
    assert sorted(planned(made)) == ["b.sh"]
    assert made.previews[0].resolved_host == f"{root}/src/pkg"
    (root / "out").symlink_to("..")
    with pytest.raises(ToolValidationError, match="leads out of the allowed root"):
        plan(root, "out/beside")
    for missing in ("no", "src/a.py/x"):
        with pytest.raises(ToolValidationError, match="it does not exist there"):
            plan(root, missing)
    assert sorted(planned(plan_mounts([HostMount("src/a.py")], [str(root)], look_at))) == ["src/a.py"]


def test_excluded_directories_are_not_listed(root: Path) -> None:
    question = MountQuestion(str(root), ("src",), follow=False, excluded=lambda path: path == ("pkg",))
    tree = look_at(question)
    assert tree is not None
    assert [entry.path for entry in tree.entries] == [("a.py",)]


@pytest.mark.parametrize(("entries", "fits"), [(3, True), (2, False)])
def test_the_number_of_entries_is_limited(root: Path, entries: int, *, fits: bool) -> None:
    if fits:
        tree = look(root, entries=entries)
        assert tree is not None
        assert len(tree.entries) == 3
    else:
        with pytest.raises(ToolValidationError, match="more than 2 entries"):
            look(root, entries=entries)


def test_links_that_multiply_a_tree_end_at_the_limit(root: Path) -> None:
    for level in range(16):
        place = root / "src" / f"d{level:02}"
        place.mkdir()
        for name in ("x", "y"):
            (place / name).symlink_to(f"../d{level + 1:02}")
    with pytest.raises(ToolValidationError, match="more than 1,000 entries"):
        look(root, follow=True)


def test_a_tree_that_is_too_deep_is_noted(root: Path) -> None:
    (root / "src" / "/".join("d" * 70)).mkdir(parents=True)
    made = plan(root)
    assert len(made.directories) == 64  # 63 of them, and pkg
    assert "lies too deep" in made.previews[0].notes[0]


def test_names_that_are_not_utf8_are_noted(root: Path) -> None:
    with open(os.fsencode(root / "src") + b"/\xff", "wb"):
        pass
    made = plan(root)
    assert sorted(planned(made)) == ["a.py", "pkg/b.sh"]
    assert made.previews[0].notes == ('"\\udcff": its name is not UTF-8',)


def test_a_root_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolValidationError) as caught:
        plan(tmp_path / "no")
    assert caught.value.field == "allowed_host_roots"


def test_sparse_files_count_with_their_length(root: Path) -> None:
    with open(root / "src" / "sparse", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ToolValidationError, match="max_bytes"):
        plan(root, max_bytes=1 << 30)


_WORDS = st.sampled_from(["..", ".", "a", "b", "c", "x"])
_PATHS = st.lists(_WORDS, min_size=1, max_size=5).map("/".join)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "a/x", "b/x"]), st.tuples(st.booleans(), _PATHS), max_size=5))
def test_no_arrangement_of_links_leads_out(tmp_path_factory: pytest.TempPathFactory, links: Any) -> None:
    top = tmp_path_factory.mktemp("links")
    (top / "x").write_text("SECRET")
    root = top / "root"
    (root / "src").mkdir(parents=True)
    for name in ("a", "b"):
        if name not in links:
            (root / "src" / name).mkdir()
    for name, (absolute, target) in links.items():
        place = root / "src" / name
        if place.parent.is_dir() and not place.parent.is_symlink() and not place.is_symlink():
            place.symlink_to(f"{root}/{target}" if absolute else target)
    for source in planned(plan(root, follow_symlinks=True)).values():
        assert os.path.realpath(root / source) == f"{os.path.realpath(root)}/{source}"


def test_links_with_long_texts_lead_nowhere_and_take_no_time(root: Path) -> None:
    """Each text is walked again for each link that leads to it: 41 of these took 15 s."""
    for number in range(60):
        os.symlink("pkg/../" * 500 + f"link{number + 1}", root / "src" / f"link{number}")
    found = look(root)
    assert found is not None
    links = [entry for entry in found.entries if entry.kind == "link"]
    assert {entry.leads for entry in links} == {"nowhere"}
    assert len(links) == 60


def test_a_look_has_a_time_limit(root: Path) -> None:
    question = MountQuestion(str(root), ("src",), False, lambda _path: False)
    with pytest.raises(ToolValidationError, match="more than 0 s"):
        look_at(question, seconds=0)


def test_what_is_excluded_is_not_followed(root: Path) -> None:
    os.symlink("a.py", root / "src" / "skipped")
    question = MountQuestion(str(root), ("src",), True, lambda path: path[-1] == "skipped")
    found = look_at(question)
    assert found is not None
    assert "skipped" not in {"/".join(entry.path) for entry in found.entries}
