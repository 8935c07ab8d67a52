"""The limits of the tools, each with a value at the limit and one above it, on both backends."""

from __future__ import annotations

import math
import threading

import pytest

from e2e.suites import Tools


def test_limits_of_paths(tools: Tools) -> None:
    deep, long = "/".join("d" * 16), "n" * 80
    assert tools.value("write_file", file_path=deep, content="x").path == deep
    assert tools.value("write_file", file_path=long, content="x").path == long
    assert tools.value("read_file", file_path=deep).content == "x"
    # The worker itself sees more than a tool can name.
    tools.run(f"mkdir -p {deep[:-2]}/x/y; echo x > {deep[:-2]}/x/y/deep; echo x > {'n' * 200}")
    assert tools.paths("glob", pattern="**/deep") == [f"{deep[:-2]}/x/y/deep"]
    assert "n" * 200 in tools.paths("ls")


def test_limits_of_contents(tools: Tools) -> None:
    assert tools.value("write_file", file_path="most", content="é" * 48_000).size_bytes == 96_000
    assert tools.value("write_file", file_path="empty", content="").size_bytes == 0
    replaced = tools.value("edit_file", file_path="most", old_string="é" * 48_000, new_string="x" * 48_000)
    assert (replaced.size_bytes, replaced.replacements) == (48_000, 1)
    assert (
        tools.value("edit_file", file_path="most", old_string="x", new_string="", replace_all=True).replacements
        == 48_000
    )
    assert tools.run("wc -c < most") == "0\n"


def test_limits_of_reading(tools: Tools) -> None:
    tools.run("seq 2001 > lines; printf '1\\n2' > open; yes | head -c 67108864 > large; (cat large; echo) > larger")
    tools.run("head -c 1048576 /dev/zero | tr '\\0' x > line; (cat line; printf x) > longer")
    every = tools.value("read_file", file_path="lines")
    assert (every.limit, every.total_lines, every.content.count("\n")) == (2000, 2001, 1999)
    assert tools.value("read_file", file_path="lines", limit=10**9).limit == 2000
    assert tools.value("read_file", file_path="lines", offset=2000).content == "2001"
    for offset in (2001, 10**12):
        none = tools.value("read_file", file_path="lines", offset=offset)
        assert (none.content, none.limit, none.total_lines) == ("", 0, 2001)
    assert tools.call("read_file", file_path="lines", offset=2001).render() == "File lines, no lines of 2001\n\n<empty>"
    assert tools.call("read_file", file_path="open").render() == "File open, lines 1 to 2 of 2\n\n   1 | 1\n   2 | 2"
    assert tools.value("read_file", file_path="large", limit=1).total_lines == 1 << 25
    assert "the file is larger than 67108864 bytes" in tools.failure("read_file", file_path="larger", limit=1)
    assert len(tools.value("read_file", file_path="line").content) == 1 << 20
    assert "the lines are longer than 1048576 bytes together" in tools.failure("read_file", file_path="longer")


def test_limits_of_editing_and_searching(tools: Tools) -> None:
    size = 16 << 20
    tools.run(
        f"for n in 0 1; do (printf 'word\\n'; head -c $(({size} - 6 + n)) /dev/zero | tr '\\0' x; echo) > $n; done"
    )
    assert [entry.size_bytes for entry in tools.value("ls").entries] == [size, size + 1]
    found = tools.value("grep", pattern="word")
    assert ([match.path for match in found.matches], found.skipped) == (["0"], 1)
    assert tools.value("edit_file", file_path="0", old_string="word", new_string="WORD").size_bytes == size
    for name, new in (("0", "WORDS"), ("1", "")):
        said = tools.failure("edit_file", file_path=name, old_string="WORD" if name == "0" else "word", new_string=new)
        assert "larger than 16777216 bytes" in said
    assert tools.run("head -c 5 0; head -c 5 1") == "WORD\nword\n"


@pytest.mark.parametrize("count", [1999, 2000, 2001])
def test_limits_of_what_is_found(tools: Tools, count: int) -> None:
    tools.run(f"mkdir d; cd d; seq -f %05.0f {count} | xargs touch; seq {count} > ../lines")
    for tool, arguments in (("ls", {"path": "d"}), ("glob", {"pattern": "d/*"}), ("grep", {"pattern": "^[0-9]+$"})):
        result = tools.call(tool, **arguments)
        found = getattr(result.value, "entries", None) or result.value.matches
        assert (len(found), result.value.truncated) == (min(count, 2000), count > 2000)
        assert ("and there are more" in result.render()) == (count > 2000)
    assert [entry.path for entry in tools.value("ls", path="d").entries][::1998] == ["d/00001", "d/01999"]


def test_limits_of_patterns(tools: Tools) -> None:
    tools.value("write_file", file_path="a", content="aaaa")
    assert tools.paths("glob", pattern="a" + "*" * 4095) == ["a"]
    assert tools.paths("grep", pattern="a" + "a*" * 2047 + "$") == ["a"]
    assert tools.paths("grep", pattern="a", glob="a" + "*" * 4095) == ["a"]


def test_an_expression_without_end_ends_at_its_limit_and_holds_no_other_call(tools: Tools) -> None:
    tools.run("printf 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\\n' > evil")
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(tools.failure("grep", pattern="(a+)+$")))
    thread.start()
    others = 0
    while thread.is_alive():
        assert tools.value("read_file", file_path="evil").total_lines == 1
        assert tools.paths("grep", pattern="a+!") == ["evil"]
        assert tools.value("shell_execute", command=["true"]).exit_code == 0
        others += 1
    (message,) = said
    assert "it took more than 10 s" in message
    assert others > 10


def test_limits_of_commands(tools: Tools) -> None:
    assert tools.value("shell_execute", command=["echo", "x" * 4091]).stdout == "x" * 4091 + "\n"
    assert tools.value("shell_execute", command=["wc", "-c"], stdin="x" * 48_000).stdout.strip() == "48000"
    names = {f"{number:080}".replace("0", "V"): "x" for number in range(1, 65)}
    shown = tools.value("shell_execute", command=["env"], env=names).stdout
    assert set(names) <= {line.split("=")[0] for line in shown.splitlines()}
    for extra, cut in ((0, False), (1, True)):
        found = tools.value("shell_execute", command=["head", "-c", str((32 << 10) + extra), "/dev/zero"])
        assert (found.truncated, len(found.stdout) <= 32 << 10) == (cut, True)
        assert ("bytes are missing here" in found.stdout) == cut
    long = tools.call("shell_execute", command=["sleep", "60"], timeout_seconds=-math.pi)
    assert (long.success, long.value.exit_code, long.value.timed_out) == (True, 124, True)
    assert 1000 <= long.value.duration_ms < 30_000
    assert "terminated after its time limit" in long.render()
    assert tools.value("shell_execute", command=["true"], timeout_seconds=10**9).exit_code == 0


def test_limits_of_programs(tools: Tools) -> None:
    for count, end in ((4096, ""), (4097, "...")):
        found = tools.value(
            "evaluate_python",
            code=f"import sys; print('x' * {count}, end=''); print('y' * {count}, end='', file=sys.stderr)",
        )
        assert (found.stdout, found.stderr) == ("x" * 4096 + end, "y" * 4096 + end)
    late = tools.call("evaluate_python", code="print('begun', flush=True)\nwhile True: pass")
    assert (late.success, late.value.exit_code, late.value.timed_out, late.value.stdout) == (
        False,
        124,
        True,
        "begun\n",
    )
    most = tools.differs.code_chars
    tail = "print(1)"
    code = "#" * ((most or 200_000) - len(tail) - 1) + "\n" + tail
    assert tools.value("evaluate_python", code=code).stdout == "1\n"
    if most is not None:
        said = tools.failure("evaluate_python", code=f"#{code}")
        assert said == f"code cannot be {most + 1} characters: the limit is {most}"
