"""The comparison of two scans, and its report."""

from __future__ import annotations

import marshal

from hypothesis import example, given
from hypothesis import strategies as st

from podbot.guard.catalogue import RULES
from podbot.guard.compare import GONE, ONLY_CHANGED, TIMED, Found, compare, ordered
from podbot.guard.marks import ACTS_AT, Finding, GuardReport, Mark, Snapshot, from_plain, to_plain
from podbot.guard.render import events, lines

paths = st.text(alphabet="ab/\x1b\udcff", min_size=1, max_size=5)
marks = st.builds(Mark, st.sampled_from(sorted(RULES)), st.text(max_size=2), st.text(max_size=3), st.integers(0, 9))
snapshots = st.builds(
    Snapshot,
    st.integers(0, 9),
    st.dictionaries(st.tuples(paths, st.sampled_from(["", "core.pager"])), marks, max_size=6),
    st.lists(st.sampled_from(["more than 3 files", "other file systems mounted in it"]), unique=True).map(tuple),
    st.integers(0, 99),
    st.dictionaries(
        paths, st.tuples(st.tuples(*[st.integers(0, 9)] * 4), st.text(max_size=3), st.text(max_size=3)), max_size=3
    ),
    st.dictionaries(paths, st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3),
    st.dictionaries(paths, st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=2),
)


@given(snapshots)
def test_no_change_gives_no_finding(one: Snapshot) -> None:
    assert compare(one, one).findings == ()


@given(snapshots, snapshots)
@example(Snapshot(0, {("a", ""): Mark("python.project", "")}), Snapshot(0, {}, values={"a": ((0, 0, 0, 0), "", "")}))
def test_findings_exist_and_differ_and_the_most_dangerous_come_first(before: Snapshot, after: Snapshot) -> None:
    left = compare(before, after)
    assert [found.danger for found in left.findings] == sorted(found.danger for found in left.findings)
    for found in left.findings:
        there = [key for key in after.marks if key[0] == found.path]
        if found.what == GONE:  # the file is there, and what acted in it is not
            assert after.values[found.path][2] == ""
            assert any(key[0] == found.path and key not in there for key in before.marks)
        else:
            assert any(before.marks.get(key) != after.marks[key] for key in there)


@given(snapshots, snapshots)
def test_a_change_of_the_first_or_last_class_is_always_a_finding(before: Snapshot, after: Snapshot) -> None:
    """Unless the file was in a part that an incomplete record did not cover."""
    found = {(one.path, one.what) for one in compare(before, after).findings}
    for key, mark in after.marks.items():
        old = before.marks.get(key)
        if (mark.rule in TIMED and mark.changed < before.began) or (mark.rule in ONLY_CHANGED and old is None):
            continue
        if RULES[mark.rule].danger in (1, 5) and (not before.gaps or old is not None):
            same = old is not None and (old.rule, old.value) == (mark.rule, mark.value)
            assert same or (key[0], mark.shown) in found


@given(snapshots, snapshots)
def test_gaps_are_reported(before: Snapshot, after: Snapshot) -> None:
    left = compare(before, after)
    moved = [path for path, root in before.roots.items() if after.roots.get(path, root) != root]
    assert left.gaps[len(moved) :] == after.gaps  # those that were there before, too
    assert all(gap.startswith(f"{path} is ") for gap, path in zip(left.gaps, moved, strict=False))


@given(snapshots)
def test_a_snapshot_is_the_same_after_writing_and_reading(one: Snapshot) -> None:
    assert from_plain(marshal.loads(marshal.dumps(to_plain(one)))) == one


PLACES = ("a/Makefile", "b/Makefile", "c/.vscode/tasks.json", "fx/.vscode/tasks.json")


def test_a_copy_is_a_finding_unless_it_has_the_same_end_of_its_path() -> None:
    def copied(old: str, new: str) -> bool:
        mark = Mark("vscode", "v")
        marks = {(old, ""): mark}
        return compare(Snapshot(5, marks), Snapshot(6, {**marks, (new, ""): mark})).findings == ()

    assert copied(".vscode/tasks.json", ".claude/worktrees/a/.vscode/tasks.json")
    assert copied("a/.vscode/tasks.json", "wt/a/.vscode/tasks.json")
    assert not copied("tests/fx/.vscode/tasks.json", ".vscode/tasks.json")
    assert not copied("tests/fx/.vscode/tasks.json", "fx/.vscode/tasks.json")
    assert not copied("fx/tasks.json", "xfx/tasks.json")


@given(st.sets(st.sampled_from(PLACES)), st.sets(st.sampled_from(PLACES)), st.booleans())
def test_a_file_moved_or_copied_to_another_path_is_a_finding(old: set[str], new: set[str], gap: bool) -> None:
    def snapshot(paths: set[str], gaps: tuple[str, ...] = ()) -> Snapshot:
        rule = {"Makefile": "make", "tasks.json": "vscode"}
        return Snapshot(5, {(path, ""): Mark(rule[path.rpartition("/")[2]], "v") for path in paths}, gaps)

    left = compare(snapshot(old), snapshot(new, ("it took longer than 5 s",) if gap else ()))
    assert {one.path for one in left.findings} == new - old


def finding(danger: int, path: str) -> Finding:
    return Finding(danger, path, "what", "new", "git", "why")


@given(st.lists(st.builds(finding, st.integers(1, 6), paths), max_size=60))
def test_the_block_is_short_and_every_finding_is_an_event(found: list[Finding]) -> None:
    left = GuardReport(tuple(sorted(found)))
    reported = lines(left, "/w")
    assert len(reported) <= 1 + 9 + 5
    assert bool(reported) == bool(found)
    assert sum(event.kind == "guard.finding" for event in events(left, "s", "/w")) == len(found)


def test_the_block() -> None:
    left = GuardReport(
        (finding(1, ".envrc"), finding(2, ".exrc"), *(finding(4, f"{name}/Makefile") for name in "abcdef")), more=2
    )
    assert lines(left, "/w") == [
        "after this session 10 new or changed items act on this machine, in /w:",
        "  as soon as you run `git status` or `cd`: .envrc (new, what, git: why)",
        "  when an editor opens the directory: .exrc",
        "  when it is built, tested or installed: a/Makefile, b/Makefile, c/Makefile, d/Makefile and 2 more",
    ]
    (unnamed,) = (event for event in events(left, "s", "/w") if event.kind == "guard.unnamed")
    assert (unnamed.level, unnamed.message) == ("warning", "2 more findings in /w were counted, but are not named")
    assert unnamed.fields == {"session": "s", "workspace": "/w", "findings": 2}


def test_a_line_names_one_finding_of_each_rule() -> None:
    """Four files that an agent changes for no other purpose push nothing out."""
    decoys = [finding(4, f"{name}/Makefile") for name in "abcde"]
    others = [Finding(4, f"x{number}", "what", "new", f"tool {number}", "why") for number in range(6)]
    (line,) = lines(GuardReport((decoys[0], *others, *decoys[1:])), "/w")[1:]
    assert line.endswith(": a/Makefile, x0, x1, x2, x3, x4, x5 and 4 more")


def test_many_findings_do_not_push_the_repository_at_the_top_out_of_the_block() -> None:
    many = {(f".a{number:04}/.envrc", ""): Mark("direnv", "") for number in range(1100)}
    git = {(".git/config", "core.fsmonitor"): Mark("git.key", "./x", "core.fsmonitor = ./x")}
    left = compare(
        Snapshot(0, {}), Snapshot(0, {**many, **git, ("z/y/x/.tool-versions", ""): Mark("tool-versions", "")})
    )
    assert (len(left.findings), left.more) == (1102, 0)
    shown = lines(left, "/w")
    assert "core.fsmonitor = ./x" in shown[1]
    assert any(".tool-versions" in line for line in shown[2:4])
    assert len(shown) <= 1 + 9


def test_the_keys_of_one_configuration_share_a_line_with_core_first() -> None:
    marks = {
        (".git/config", key): Mark("git.key", "x", f"{key} = x")
        for key in (*(f"alias.a{n}" for n in range(9)), "core.pager")
    }
    shown = lines(compare(Snapshot(0, {}), Snapshot(0, marks)), "/w")
    assert len(shown) == 2
    assert "(new, core.pager = x, alias.a0 = x, " in shown[1]
    assert ", 4 more, git: " in shown[1]


changes = st.tuples(
    st.tuples(paths, st.sampled_from(["", "core.pager"])),
    st.sampled_from(sorted(RULES)).map(lambda rule: Mark(rule, "")),
    st.none(),
)


@given(st.lists(changes, unique_by=lambda one: one[0], max_size=30))
def test_one_finding_of_each_rule_comes_before_the_second_of_any(found: list[Found]) -> None:
    shown = ordered(found)
    assert sorted(shown) == sorted(found)
    dangers: dict[int, list[Found]] = {}
    for one in shown:
        dangers.setdefault(RULES[one[1].rule].danger, []).append(one)
    assert list(dangers) == sorted(dangers)
    for group in dangers.values():
        rules = [one[1].rule for one in group]
        firsts, rest = group[: len(set(rules))], group[len(set(rules)) :]
        assert len({one[1].rule for one in firsts}) == len(firsts)
        for part in (firsts, rest):
            tops = [one[0][0].startswith((".git", "/")) for one in part]
            assert tops == sorted(tops, reverse=True)


def test_hooks_do_not_push_out_what_acts_at_cd() -> None:
    hooks = {(f".git/hooks/h{number:02}", ""): Mark("git.hook", "v") for number in range(22)}
    others = {(".envrc", ""): Mark("direnv", "v"), ("mise.toml", ""): Mark("mise", "v")}
    shown = "\n".join(lines(compare(Snapshot(0, {}), Snapshot(0, {**hooks, **others})), "/w")[:9])
    assert ".git/hooks/h00 (" in shown
    assert ": .envrc (" in shown
    assert ": mise.toml (" in shown


def test_what_is_gone_from_a_file_that_is_still_there_is_a_finding() -> None:
    key = ("requirements.txt", "")
    before = Snapshot(0, {key: Mark("requirements", "v")})
    emptied = Snapshot(0, {}, values={"requirements.txt": ((1, 1, 1, 1), "raw", "")})
    (found,) = compare(before, emptied).findings
    assert (found.danger, found.path, found.what, found.change) == (
        4,
        *key[:1],
        "what counted in it is gone",
        "changed",
    )
    assert compare(before, Snapshot(0, {})).findings == ()  # the file is gone


def test_a_file_that_another_rule_names_is_not_listed_as_settings_too() -> None:
    marks = {("tool", ""): Mark("settings", "v"), ("tool", "mode"): Mark("setuid", "v", changed=9)}
    assert [one.danger for one in compare(Snapshot(5, {}), Snapshot(6, marks)).findings] == [5]


def test_levels_and_fields_of_events() -> None:
    reported = list(
        events(GuardReport((finding(1, "a"), finding(4, "b")), ("it took longer than 5 s",), entries=7), "s", "/w")
    )
    assert [(event.level, event.kind) for event in reported] == [
        ("warning", "guard.finding"),
        ("notice", "guard.finding"),
        *[("notice", "guard.summary")] * 3,
        ("warning", "guard.incomplete"),
        ("debug", "guard.end"),
    ]
    assert reported[0].fields == {
        "session": "s", "workspace": "/w", "danger": 1, "path": "a", "what": "what", "change": "new",
        "acts": "git", "why": "why",
    }  # fmt: skip


def test_the_catalogue_has_every_class_and_no_pattern_twice() -> None:
    assert {rule.danger for rule in RULES.values()} == set(ACTS_AT)
    patterns = [pattern for rule in RULES.values() for pattern in rule.patterns.split()]
    assert sorted(set(patterns)) == sorted(patterns)
    assert all(rule.acts and rule.why for rule in RULES.values())
