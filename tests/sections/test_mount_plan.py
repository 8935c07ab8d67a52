"""What is planned for trees that are given, without a file system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import ToolValidationError
from podbot.sections.host_mounts import HostEntry, HostMount, HostTree, MountPlan, MountQuestion
from podbot.sections.mount_plan import places, plan_mounts

ROOT = "/srv/project"


def entry(path: str, kind: Any = "file", size: int = 1, leads: Any = "") -> HostEntry:
    words = tuple(path.split("/"))
    return HostEntry(words, ("src", *words), kind, size, 0o100755, leads)


TREE = (
    entry("a.py", size=10), entry("docs", "directory"), entry("docs/guide.md", size=20),
    entry("docs/deep", "directory"), entry("docs/deep/b.py", size=30), entry("empty", "directory"),
)  # fmt: skip


class Host:
    """Answers questions from trees, and notes them."""

    def __init__(self, *entries: HostEntry, path: str = "src", root: str = ROOT, kind: Any = "directory") -> None:
        words = tuple(path.split("/")) if path else ()
        self.trees = {(root, words): HostTree(root, words, kind, entries)}
        self.asked: list[MountQuestion] = []

    def __call__(self, question: MountQuestion) -> HostTree | None:
        self.asked.append(question)
        return self.trees.get((question.root, question.path))


def plan(*mounts: HostMount, host: Host | None = None, roots: Sequence[str] = (ROOT,)) -> MountPlan:
    return plan_mounts(mounts, roots, host or Host(*TREE))


def targets(made: MountPlan) -> list[str]:
    return ["/".join(file.target) for file in made.files]


def refused(*mounts: HostMount, host: Host | None = None, roots: Sequence[str] = (ROOT,)) -> ToolValidationError:
    with pytest.raises(ToolValidationError) as caught:
        plan(*mounts, host=host, roots=roots)
    return caught.value


def test_everything_is_copied_to_the_same_path() -> None:
    made = plan(HostMount("src/"))
    assert targets(made) == ["src/a.py", "src/docs/guide.md", "src/docs/deep/b.py"]
    assert made.directories == (("src", "docs"), ("src", "docs", "deep"), ("src", "empty"))
    first = made.files[0]
    assert (first.root, first.source, first.size, first.mode) == (ROOT, ("src", "a.py"), 10, 0o755)
    (preview,) = made.previews
    assert (preview.host_path, preview.resolved_host, preview.mount_path) == ("src/", "/srv/project/src", "src")
    assert (preview.entries, preview.more) == (("a.py", "docs/", "empty/"), 0)
    assert (preview.files, preview.bytes_copied, preview.notes) == (3, 60, ())


@pytest.mark.parametrize(
    ("mount_path", "first"),
    [
        ("/", "a.py"), ("", "a.py"), ("/workspace", "a.py"), ("x/y", "x/y/a.py"), (("x", "y"), "x/y/a.py"),
        ((), "a.py"), (("workspace",), "workspace/a.py"),
    ],
)  # fmt: skip
def test_mount_paths(mount_path: Any, first: str) -> None:
    assert targets(plan(HostMount("src", mount_path=mount_path)))[0] == first


@pytest.mark.parametrize("mount_path", ["..", "é", "x" * 81, ("..",), "/".join("d" * 17)])
def test_mount_paths_that_are_not_valid(mount_path: Any) -> None:
    assert refused(HostMount("src", mount_path=mount_path)).field == "mount_path"


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (("*.py",), (), ["a.py", "docs/deep/b.py"]), (("docs/*",), (), ["docs/guide.md"]),
        (("docs/**",), (), ["docs/guide.md", "docs/deep/b.py"]), ((), ("docs",), ["a.py"]),
        ((), ("*.py",), ["docs/guide.md"]), ((), ("docs/deep",), ["a.py", "docs/guide.md"]),
        (("**/*.py",), ("docs/**",), ["a.py"]), (("*.py",), ("deep",), ["a.py"]), (("nothing",), (), []),
    ],
)  # fmt: skip
def test_patterns(include: tuple[str, ...], exclude: tuple[str, ...], expected: list[str]) -> None:
    made = plan(HostMount("src", mount_path="/", include_glob=include, exclude_glob=exclude))
    assert targets(made) == expected
    assert bool(made.directories) is (not include)


def test_the_host_is_told_what_need_not_be_listed() -> None:
    host = Host(*TREE)
    plan(HostMount("src", exclude_glob=("docs/deep", "cache"), follow_symlinks=True), host=host)
    (question,) = host.asked
    assert question.follow
    assert question.excluded(("docs", "deep"))
    assert question.excluded(("x", "cache"))
    assert question.excluded(("cache", "below"))
    assert not question.excluded(("docs",))


@pytest.mark.parametrize("texts", ["*.py", None, 7, ("..",), ("",), (7,)])
def test_patterns_that_are_not_valid(texts: Any) -> None:
    assert refused(HostMount("src", include_glob=texts)).field == "include_glob"
    assert refused(HostMount("src", exclude_glob=texts)).field == "exclude_glob"


def test_one_pattern_is_answered_with_the_tuple_to_write() -> None:
    wrong: Any = "*.py"
    assert refused(HostMount("src", include_glob=wrong)).remedy == 'Write ("*.py",), with a comma behind each.'


@pytest.mark.parametrize(("budget", "fits"), [(59, False), (60, True), (None, True)])
def test_the_budget(budget: int | None, *, fits: bool) -> None:
    mount = HostMount("src", max_bytes=budget)
    if fits:
        assert len(plan(mount).files) == 3
    else:
        error = refused(mount)
        assert (error.field, error.value, error.limit) == ("max_bytes", "59", "the files of 'src' have 60 bytes")
        assert len(plan(HostMount("src", max_bytes=budget, exclude_glob=("a.py",))).files) == 2


@pytest.mark.parametrize("budget", [-1, True, 1.5, "1"])
def test_budgets_that_are_not_valid(budget: Any) -> None:
    assert refused(HostMount("src", max_bytes=budget)).field == "max_bytes"


def test_what_is_skipped_is_in_the_notes() -> None:
    made = plan(HostMount("src"), host=Host(
        entry("in", "link", leads="inside"), entry("out", "link", leads="outside"),
        entry("no", "link", leads="nowhere"),
        entry("up", "link", leads="up"), entry("p", "other"), entry("locked", "unreadable"), entry("deep", "deep"),
        entry("\udcff"), entry("x\ny", "other"), entry("/".join("d" * 64)),
    ))  # fmt: skip
    assert made.files == ()
    assert [note.partition(": ")[0] for note in made.previews[0].notes] == [
        "in", "out", "no", "up", "p", "locked", "deep", '"\\udcff"', '"x\\ny"', "/".join("d" * 64)
    ]  # fmt: skip
    notes = "\n".join(made.previews[0].notes)
    for words in ("leads out of", "leads nowhere", "FIFO", "cannot be read", "UTF-8", "64 segments", "that it is in"):
        assert words in notes


def test_what_was_not_asked_for_is_not_noted() -> None:
    entries = (entry("a.md", "link", leads="outside"), entry("p", "other"), entry("locked", "unreadable"))
    only = plan(HostMount("src", include_glob=("*.py",)), host=Host(*entries))
    assert [note.partition(":")[0] for note in only.previews[0].notes] == ["locked"]
    none = plan(HostMount("src", exclude_glob=("*",)), host=Host(*entries))
    assert none.previews[0].notes == ()


def test_notes_and_names_are_limited() -> None:
    entries = [entry(f"p{number:02}", "other") for number in range(21)]
    entries += [entry(f"f{number:02}") for number in range(21)]
    (preview,) = plan(HostMount("src"), host=Host(*entries)).previews
    assert (len(preview.notes), preview.notes[-1]) == (21, "… (+1 more)")
    assert (len(preview.entries), preview.entries[-1], preview.more) == (20, "f19", 1)
    (exact,) = plan(HostMount("src"), host=Host(*entries[1:21], *entries[22:])).previews
    assert (len(exact.notes), len(exact.entries), exact.more) == (20, 20, 0)


def one_file(name: str = "a.py") -> Host:
    host = Host(path=name, kind="file")
    host.trees[ROOT, (name,)] = HostTree(ROOT, (name,), "file", (HostEntry((), (name,), "file", 5, 0o644),))
    return host


def test_a_single_file() -> None:
    made = plan(HostMount("a.py"), host=one_file())
    assert targets(made) == ["a.py"]
    (preview,) = made.previews
    assert (preview.is_directory, preview.entries, preview.bytes_copied) == (False, ("a.py",), 5)
    assert targets(plan(HostMount("a.py", mount_path="b/c.py"), host=one_file())) == ["b/c.py"]
    assert plan(HostMount("a.py", include_glob=("*.md",)), host=one_file()).files == ()
    assert refused(HostMount("a.py", mount_path="/"), host=one_file()).field == "mount_path"
    assert refused(HostMount("é"), host=one_file("é")).field == "mount_path"
    assert targets(plan(HostMount("é", mount_path="e"), host=one_file("é"))) == ["e"]


@pytest.mark.parametrize("host_path", ["", "..", "a/../b", "a\0", "x" * 4097, None, 7])
def test_host_paths_that_are_not_valid(host_path: Any) -> None:
    assert refused(HostMount(host_path)).field == "host_path"


def test_roots_are_tried_in_turn() -> None:
    host = Host(entry("a"), root="/second")
    assert plan(HostMount("src"), host=host, roots=("/first", "/second", "/third")).files[0].root == "/second"
    assert [question.root for question in host.asked] == ["/first", "/second"]
    absolute = Host(entry("a"), root="/second")
    assert targets(plan(HostMount("/second/src"), host=absolute, roots=("/first", "/second"))) == ["src/a"]
    assert [question.root for question in absolute.asked] == ["/second"]


def test_a_mount_of_the_root_itself_is_the_workspace() -> None:
    host = Host(entry("a"), path="")
    assert targets(plan(HostMount(ROOT), host=host)) == ["a"]
    assert targets(plan(HostMount("."), host=host)) == ["a"]


def test_mounts_that_are_nowhere() -> None:
    assert "no allowed roots are configured" in refused(HostMount("src"), roots=()).limit
    assert "/srv/project: it does not exist there" in refused(HostMount("other")).limit
    assert "it lies in none of them" in refused(HostMount("/srv/project2/src")).limit
    assert "leads out" in refused(HostMount("src"), host=Host(kind="outside")).limit
    assert "not a regular file" in refused(HostMount("src"), host=Host(kind="other")).limit
    assert refused(HostMount("src"), roots=("relative",)).field == "allowed_host_roots"
    locked = Host(HostEntry((), ("src",), "unreadable"))
    assert "cannot be read" in refused(HostMount("src"), host=locked).limit


def test_mounts_that_overlap() -> None:
    both = Host(*TREE)
    both.trees[ROOT, ("docs",)] = HostTree(ROOT, ("docs",), "directory", (entry("guide.md"),))
    merged = plan(HostMount("src", mount_path="/"), HostMount("docs", mount_path="docs/deep"), host=both)
    assert "docs/deep/guide.md" in targets(merged)
    assert merged.directories == (("docs",), ("docs", "deep"), ("empty",))
    error = refused(HostMount("src", mount_path="/"), HostMount("docs"), host=both)
    assert (error.field, error.limit) == ("mount_path", "docs/guide.md is a file of the mount 'src'")
    below = refused(HostMount("src", mount_path="/"), HostMount("docs", mount_path="a.py"), host=both)
    assert below.limit == "a.py is a file of the mount 'src'"
    both.trees[ROOT, ("docs",)] = HostTree(ROOT, ("docs",), "directory", (entry("docs"), entry("deep", "directory")))
    above = refused(HostMount("src", mount_path="/"), HostMount("docs", mount_path="/"), host=both)
    assert above.limit == "docs is a directory of another mount"
    both.trees[ROOT, ("docs",)] = HostTree(ROOT, ("docs",), "directory", (entry("a.py", "directory"),))
    assert "a.py" in refused(HostMount("src", mount_path="/"), HostMount("docs", mount_path="/"), host=both).limit


@given(st.text(alphabet=st.sampled_from("./abé \0"), min_size=1, max_size=20))
def test_no_host_path_leads_out_of_a_root(host_path: str) -> None:
    try:
        found = list(places(host_path, ("/a", "/a/b", "/")))
    except ToolValidationError:
        return
    for _, path in found:
        assert all(word not in ("", ".", "..") and "/" not in word for word in path)


def test_no_mounts_no_plan() -> None:
    assert plan() == MountPlan()


@pytest.mark.parametrize(("length", "copied"), [(2996, 1), (2997, 0)])
def test_a_path_that_is_too_long_for_the_kernel_is_skipped(length: int, copied: int) -> None:
    long = "/".join(["n" * 99] * 29 + ["n" * (length - 2900)])
    made = plan(HostMount("src"), host=Host(entry(long)))
    assert (len(made.files), len(made.previews[0].notes)) == (copied, 1 - copied)
    assert all("3,000 bytes" in note for note in made.previews[0].notes)


def test_a_file_that_may_not_be_read_is_skipped_with_a_note() -> None:
    host = Host(entry("a"), entry("secret", "denied"))
    made = plan(HostMount("src"), host=host)
    assert targets(made) == ["src/a"]
    assert made.previews[0].notes == ("secret: a file that may not be read",)
    assert plan(HostMount("src", include_glob=("a",)), host=host).previews[0].notes == ()
