"""The tools of a suite: one expectation for both backends. All in which they differ is in ``e2e.suites.DIFFERENCES``.

The files of a test are made by the tools themselves. ``tests/tools`` has the same tools without an engine, and the
properties of paths, globs and edits.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.suite_refusals import DENIED, NO_PATH, PATHS, REFUSED, REFUSED_PATHS, TREE, cannot
from e2e.suites import Tools, reads_all
from podbot.tools import ToolValidationError

ODD_NAMES = (
    "-rf",
    "--",
    "$HOME",
    "${x}",
    "$(id)",
    "a\\b",
    "a\\nb",
    'say "x"',
    "it's",
    "a b",
    "*",
    "[a]",
    "#",
    "~",
    "a:1: b",
)
NEWLINE = "first\nsecond"
TREE_NOW = "ls -laRi --time-style=full-iso 2>/dev/null; cat src/a.py none binary"


def file_line(found: Any, path: str = "") -> str:
    """How the rendering of a tool shows a file."""
    when = found.updated_at.isoformat(timespec="milliseconds")
    return f"FILE {path or found.path} ({found.size_bytes} B, v{found.version}, updated {when})"


# --- results and their rendering -------------------------------------------------------------------


def test_the_table_of_differences_is_what_a_command_sees(tools: Tools) -> None:
    assert int(tools.run("id -u")) == tools.differs.uid
    assert (tools.run("ls /sys/class/net") != "lo\n") == tools.differs.has_network
    tools.value("write_file", file_path="file", content="x")
    seen = tools.value("shell_execute", command=["test", "-e", "/workspace/file"])
    assert (seen.exit_code == 0) == tools.differs.workspace


def test_a_file_from_its_creation_to_its_removal(tools: Tools) -> None:
    before = datetime.now(UTC)
    made = tools.call("write_file", file_path=" /workspace//src/pkg/main.py ", content="one\r\ntwo\r\n")
    assert (made.message, made.value.path, made.value.mode, made.value.size_bytes, made.value.replacements) == (
        "Created src/pkg/main.py.", "src/pkg/main.py", "create", 10, 0
    )  # fmt: skip
    assert made.render() == f"Created\n\n{file_line(made.value)}"
    assert abs((made.value.updated_at - before).total_seconds()) < 60
    assert made.value.version == round(made.value.updated_at.timestamp() * 1_000_000)
    assert tools.run("stat -c '%a %u' src/pkg/main.py") == f"644 {tools.differs.uid}\n"

    edited = tools.call("edit_file", file_path="/src/pkg/main.py", old_string="one\ntwo", new_string="1\n2\n3")
    assert edited.message == "1 replacement in src/pkg/main.py."
    assert edited.render() == f"Edited, 1 replacement\n\n{file_line(edited.value)}"
    assert edited.value.version > made.value.version
    assert tools.run("cat src/pkg/main.py") == "1\r\n2\r\n3\r\n"

    read = tools.call("read_file", file_path="src/pkg/main.py", offset=1, limit=1)
    assert (read.message, read.value.content, read.value.offset, read.value.limit, read.value.total_lines) == (
        "1 of 3 lines of src/pkg/main.py.", "2\r", 1, 1, 3
    )  # fmt: skip
    assert read.render() == "File src/pkg/main.py, lines 2 to 2 of 3\n\n   2 | 2\r"

    listed = tools.call("ls", path="src")
    assert listed.render() == "Directory src, 1 entry\n\nDIR  src/pkg/"
    found = tools.call("glob", pattern="**/*.py")
    assert found.render() == f"1 file found\n\n{file_line(found.value.matches[0], 'src/pkg/main.py')}"
    assert found.value.matches[0].version == edited.value.version
    searched = tools.call("grep", pattern="^[23]$")
    assert searched.render() == "2 lines found\n\nsrc/pkg/main.py:2: 2\nsrc/pkg/main.py:3: 3"

    removed = tools.call("rm", path="src")
    assert (removed.message, removed.value.kind, removed.value.entries) == ("Removed src.", "directory", 3)
    assert removed.render() == "Removed, 3 entries\n\nsrc/"
    assert tools.call("ls").render() == "Directory /, 0 entries\n\n<empty>"
    assert tools.call("glob", pattern="**").render() == "0 files found\n\n<empty>"
    assert tools.call("grep", pattern="x").render() == "0 lines found\n\n<empty>"


def test_a_command_and_a_program(tools: Tools) -> None:
    tools.value("write_file", file_path="d/file", content="x")
    line = "echo out; echo err >&2; cat; echo $lower; exit 7"
    ran = tools.call(
        "shell_execute", command=["sh", "-c", line], cwd="/workspace/d", env={"lower": "kept"}, stdin="in\n"
    )
    value = ran.value
    assert (ran.success, ran.message) == (True, "The command ended with exit code 7.")
    assert (value.cwd, value.exit_code, value.stdout, value.stderr) == ("/workspace/d", 7, "out\nin\nkept\n", "err\n")
    assert (value.timed_out, value.truncated) == (False, False)
    assert ran.render() == (
        f"Exit code 7 after {value.duration_ms:,} ms in /workspace/d\n\nstdout:\nout\nin\nkept\n\n\nstderr:\nerr\n"
    )
    missing = tools.value("shell_execute", command=["no-such-program"])
    assert (missing.exit_code, missing.stderr) == (127, "no-such-program: not found\n")
    killed = tools.call("shell_execute", command=["sh", "-c", "kill -SEGV $$"])
    assert killed.value.exit_code == 139
    assert killed.message == "The command ended with exit code 139: SIGSEGV: usually a fault of the program."

    program = tools.call("evaluate_python", code="import os\r\nif 1:\r\n\tprint(os.listdir('d'))")
    assert (program.success, program.render()) == (True, "Exit code 0\n\n['file']\n")
    failed = tools.call("evaluate_python", code="print('before')\n1/0")
    assert (failed.success, failed.value.exit_code, failed.value.stdout) == (False, 1, "before\n")
    assert failed.render().startswith("The program ended with exit code 1.\n\nExit code 1\n\nstdout:\nbefore\n")
    assert "ZeroDivisionError" in failed.value.stderr
    assert (failed.value.value_repr, failed.value.globals, failed.value.reads, failed.value.writes) == (
        None,
        {},
        (),
        (),
    )


# --- what is refused -------------------------------------------------------------------------------


def test_refusals_have_the_same_words_and_change_nothing(tools: Tools) -> None:
    tools.python(TREE)
    before = tools.run(TREE_NOW)
    wrong: list[tuple[Any, ...]] = [(tool, arguments, said, message) for tool, arguments, message in REFUSED
             if (said := tools.failure(tool, **arguments)) != message]  # fmt: skip
    for tool, (parameter, arguments) in PATHS.items():
        for path, reason in NO_PATH:
            if path is None and tool in {"ls", "grep"}:
                continue  # it is the workspace there
            said = tools.failure(tool, **{parameter: path}, **arguments)
            wrong += [(tool, path, said)] if said != cannot(parameter, path, reason) else []
    for listed in (REFUSED_PATHS, () if reads_all(tools) else _denied()):
        for names, path, reason in listed:
            for tool in names:
                parameter, arguments = PATHS[tool]
                said = tools.failure(tool, **{parameter: path}, **arguments)
                wrong += [(tool, path, said)] if said != cannot(parameter, path, reason.format(path)) else []
    assert wrong == []
    assert tools.run(TREE_NOW) == before


def _denied() -> list[tuple[tuple[str, ...], str, str]]:
    return [(names, path, f"{prefix}: Permission denied") for names, path, prefix in DENIED]


def test_the_error_names_the_parameter_for_a_caller_in_python(tools: Tools) -> None:
    tool = tools.workspace.suite().tool("read_file")
    with pytest.raises(ToolValidationError, match="missing does not exist") as caught:
        tool.run(tool.parse({"file_path": "missing"}))
    assert (caught.value.field, caught.value.value) == ("file_path", "'missing'")
    with pytest.raises(ToolValidationError, match=r"there is no tool 'vi'\. The tools are ls, read_file"):
        tools.workspace.suite().tool("vi")
    result = tools.workspace.suite().invoke("vi", {})
    assert (result.success, result.message[:40]) == (False, "there is no tool 'vi'. The tools are ls,")


def test_searches_count_what_they_could_not_read(tools: Tools) -> None:
    tools.python(TREE)
    reads = reads_all(tools)
    found = tools.value("grep", pattern="one")
    seen = {"src/a.py", *(("closed/file", "unreadable") if reads else ())}
    assert {match.path for match in found.matches} == seen
    assert found.skipped == (1 if reads else 3)  # the sparse file; the closed directory and the unreadable one
    assert tools.value("glob", pattern="**/*.py").skipped == (0 if reads else 1)
    kinds = {entry.path: entry.kind for entry in tools.value("ls").entries}
    assert {path for path, kind in kinds.items() if kind == "other"} == {"fifo", "device", "socket"}
    assert {path for path, kind in kinds.items() if kind == "link"} == {"link", "to-src", "out", "loop"}
    sizes = {entry.path: entry.size_bytes for entry in tools.value("ls").entries}
    assert (sizes["sparse"], sizes["fifo"], sizes["src"]) == (1 << 40, 0, 0)
    shown = tools.call("ls").render()
    assert "\nLINK out\n" in shown
    assert "\nOTHER fifo\n" in shown
    for path in ("link", "out", "fifo", "device", "socket", "sparse", "unreadable"):
        assert tools.value("rm", path=path).entries == 1
    assert tools.run("cat src/a.py; test -e /etc/passwd") == "one\ntwo\nthree\n"


# --- hostile names and trees -----------------------------------------------------------------------


def test_odd_names_in_every_tool(tools: Tools) -> None:
    for name in ODD_NAMES:
        assert tools.value("write_file", file_path=f"d/{name}", content=f"{name}\n").path == f"d/{name}"
        assert tools.value("edit_file", file_path=f"d/{name}", old_string="\n", new_string="!\n").replacements == 1
        assert tools.value("read_file", file_path=f"d/{name}").content == f"{name}!"
    expected = [f"d/{name}" for name in sorted(ODD_NAMES)]
    assert (
        tools.paths("ls", path="d")
        == tools.paths("glob", pattern="d/*")
        == tools.paths("grep", pattern="!$")
        == expected
    )
    assert sorted(tools.python("import os; print(*os.listdir('d'), sep='\\n')").splitlines()) == sorted(ODD_NAMES)
    assert "\nd/$HOME:1: $HOME!\n" in tools.call("grep", pattern="!$").render()
    for name in ODD_NAMES:
        assert tools.value("rm", path=f"d/{name}").entries == 1
    assert tools.paths("ls", path="d") == []


def test_a_name_never_looks_like_two_lines(tools: Tools) -> None:
    written = tools.call("write_file", file_path=NEWLINE, content="x\n")
    assert written.value.path == NEWLINE
    quoted = '"first\\nsecond"'
    for result in (written, tools.call("ls"), tools.call("glob", pattern="*"), tools.call("grep", pattern="x"),
                   tools.call("read_file", file_path=NEWLINE), tools.call("rm", path=NEWLINE)):  # fmt: skip
        assert quoted in result.render()
        assert NEWLINE not in result.render()
        assert NEWLINE not in result.message


def test_names_that_are_not_ascii_are_shown_and_not_taken(tools: Tools) -> None:
    names = (b"\xc3\xbc", b"\xff", b"\x1b[2J", b"\xe2\x80\xae")
    tools.python(f"for name in {names}: open(name, 'w').write('x\\n')")
    shown = ["\x1b[2J", "\\xff", "\xfc", "\u202e"]
    assert sorted(tools.paths("ls")) == sorted(tools.paths("glob", pattern="*")) == sorted(shown)
    assert sorted(tools.paths("grep", pattern="x")) == sorted(shown)
    text = tools.call("ls").render()
    assert text.isprintable() or {char for char in text if not char.isprintable()} == {"\n"}
    assert "\\xff" in text


def test_texts_with_nul_and_other_odd_characters(tools: Tools) -> None:
    content = "a\0b\n\x1b[2Jc\r\n\u2028d\n\ufeffe"
    tools.value("write_file", file_path="file", content=content)
    read = tools.value("read_file", file_path="file")
    assert (read.content, read.total_lines) == (content, 4)
    assert (
        tools.value("edit_file", file_path="file", old_string="\0", new_string="\0\0").size_bytes
        == len(content.encode()) + 1
    )
    assert tools.paths("grep", pattern="[a-e]") == []  # it is binary
    tools.value("edit_file", file_path="file", old_string="\0", new_string="", replace_all=True)
    assert [match.line for match in tools.value("grep", pattern="[a-e]$").matches] == [
        "ab",
        "\x1b[2Jc",
        "\u2028d",
        "\ufeffe",
    ]
    echoed = tools.value("shell_execute", command=["cat"], stdin="a\0b")
    assert echoed.stdout == "a\0b"


def test_a_directory_of_a_hundred_thousand_entries(tools: Tools) -> None:
    tools.python("import os\nos.mkdir('d')\nfor n in range(100_000): os.close(os.open(f'd/{n:06}', os.O_CREAT))")
    tools.run("printf needle > d/000007")
    listed = tools.value("ls", path="d")
    assert (len(listed.entries), listed.truncated, listed.entries[-1].path) == (2000, True, "d/001999")
    found = tools.value("glob", pattern="**/*7")
    assert (len(found.matches), found.truncated, found.matches[-1].path) == (2000, True, "d/019997")
    assert tools.paths("glob", pattern="*/099999") == ["d/099999"]
    assert tools.paths("grep", pattern="needle", glob="00000*") == ["d/000007"]
    assert tools.value("read_file", file_path="d/000007").content == "needle"
    assert tools.value("rm", path="d").entries == 100_001
    assert tools.paths("ls") == []


CHURN = """
import os, time
open("ready", "w").close()
while True:
    for name in ("d/growing", "d/gone", "d/e/gone"):
        try:
            os.makedirs("d/e", exist_ok=True)
            with open(name, "a") as file: file.write("x" * 99 + "\\n")
            if name != "d/growing": os.unlink(name)
        except OSError: pass
    try:
        os.rename("d/e", "d/f")
        os.rmdir("d/f")
    except OSError: pass
    time.sleep(0.0001)
"""
MAY_HAPPEN = (
    "does not exist", "does not occur in it", "already exists", "is not a directory", "No such file or directory",
    "Directory not empty", "another process changed it meanwhile", "another process keeps its directory locked",
)  # fmt: skip


def test_files_that_grow_and_vanish_while_the_tools_use_them(tools: Tools) -> None:
    tools.value("write_file", file_path="churn.py", content=CHURN)
    job = tools.workspace.shell.start(["python3", "churn.py"])
    try:
        while tools.problem("read_file", file_path="ready"):
            assert job.poll().running, job.poll()
        said, done = _use_while_it_churns(tools)
    finally:
        job.kill()
    assert [text for text in said if not any(words in text for words in MAY_HAPPEN)] == []
    assert done > 25


def _use_while_it_churns(tools: Tools) -> tuple[list[str], int]:
    said, done = [], 0
    for number in range(25):
        for tool, arguments in (
            ("ls", {"path": "d"}), ("ls", {"path": "d/e"}), ("read_file", {"file_path": "d/growing"}),
            ("read_file", {"file_path": "d/gone"}), ("grep", {"pattern": "xx$"}), ("glob", {"pattern": "**/g*"}),
            ("edit_file", {"file_path": "d/e/gone", "old_string": "x", "new_string": "y", "replace_all": True}),
            ("write_file", {"file_path": f"d/e/{number}", "content": "z"}), ("rm", {"path": "d/e"}),
        ):  # fmt: skip
            result = tools.call(tool, **arguments)
            done += result.success
            said += [] if result.success else [result.message]
    return said, done
