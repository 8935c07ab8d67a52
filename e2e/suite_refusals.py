"""What the tools refuse in a workspace with TREE, in the same words on both backends, and that nothing changes."""

from __future__ import annotations

from typing import Any

# A character device 0:0 is the one that a process without a capability may make (Linux 5.8).
TREE = r"""
import os, socket
for directory in ("src/pkg", "empty", "closed"):
    os.makedirs(directory)
def file(path, data):
    with open(path, "wb") as out: out.write(data)
file("src/a.py", b"one\ntwo\nthree\n")
file("none", b"")
file("binary", b"\xff\xfe")
for name, target in (("link", "src/a.py"), ("to-src", "src"), ("out", "/etc"), ("loop", "loop")):
    os.symlink(target, name)
os.mkfifo("fifo")
os.mknod("device", 0o020666, 0)
socket.socket(socket.AF_UNIX).bind("socket")
file("sparse", b"")
os.truncate("sparse", 1 << 40)
file("unreadable", b"one\n")
os.chmod("unreadable", 0)
file("closed/file", b"one\n")
os.chmod("closed", 0)
"""

_SEGMENT = "Name the path from the workspace on, as in src/a.py."
_ASCII = "a path has ASCII characters only, and no NUL"
_ROOT = "it names the workspace itself, and an entry of it is needed"
_FEWER = "Ask for fewer lines, or for another path or pattern."
_PATTERNS = "Patterns of grep are Python regular expressions; in globs, * ? [...] and ** are special."
_LINE = 'For a line of a shell use ["sh", "-c", LINE].'
_MORE = "Include more of the lines around it, or replace all of them."
_VALIDATOR = "Give the shell another CommandValidator if this is what you want to run."
_NO_LINK = "is a symbolic link, which no tool follows"

# Of each tool that takes one path, its parameter, and other arguments that it needs.
PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "ls": ("path", {}),
    "read_file": ("file_path", {}),
    "write_file": ("file_path", {"content": "x"}),
    "edit_file": ("file_path", {"old_string": "one", "new_string": "1"}),
    "glob": ("path", {"pattern": "**"}),
    "grep": ("path", {"pattern": "one"}),
    "rm": ("path", {}),
}
# (path, why no tool takes it)
NO_PATH = (
    (3, "a path is a string"),
    (None, "a path is a string"),
    ("a\0b", _ASCII),
    ("\xfc", _ASCII),
    ("../x", f"it has a segment ... {_SEGMENT}"),
    ("src/../none", f"it has a segment ... {_SEGMENT}"),
    ("/workspace/..", f"it has a segment ... {_SEGMENT}"),
    ("./none", f"it has a segment .. {_SEGMENT}"),
    ("s" * 81, "a segment has 81 characters, the limit is 80"),
    ("/".join("s" * 17), "it has 17 segments, the limit is 16"),
)
_ENTRIES = ("read_file", "write_file", "edit_file", "rm")
_FILES = ("read_file", "edit_file")
_LISTS = ("ls", "glob")
# (tools, path, reason): with `{}` for the path in the reason
REFUSED_PATHS = (
    *((tools, path, reason) for path in ("", "/", "/workspace", " // ") for tools, reason in ((_ENTRIES, _ROOT),)),
    ((*_LISTS, *_FILES, "grep", "rm"), "missing", "{} does not exist"),
    ((*_LISTS, *_FILES, "grep", "rm"), "missing/file", "missing does not exist"),
    ((*PATHS,), "none/file", "none is not a directory"),
    ((*PATHS,), "to-src/a.py", f"to-src {_NO_LINK}"),
    ((*PATHS,), "out/passwd", f"out {_NO_LINK}"),
    ((*PATHS,), "loop/file", f"loop {_NO_LINK}"),
    ((*_LISTS, *_FILES, "grep"), "out", f"{{}} {_NO_LINK}"),
    ((*_LISTS, *_FILES, "grep"), "link", f"{{}} {_NO_LINK}"),
    (_LISTS, "none", "{} is not a directory"),
    *((_LISTS, path, "{} is not a directory") for path in ("fifo", "device", "socket")),
    *(((*_FILES, "grep"), path, "{} is not a regular file") for path in ("fifo", "device", "socket")),
    (_FILES, "src", "{} is not a regular file"),
    (_FILES, "binary", "it is not UTF-8 text"),
    (("read_file",), "sparse", f"the file is larger than 67108864 bytes. {_FEWER}"),
    (("edit_file",), "sparse", f"the file is larger than 16777216 bytes. {_FEWER}"),
    *(
        (("write_file",), path, "{} already exists. Edit it, or remove it first.")
        for path in ("none", "src", "link", "loop", "fifo", "device", "socket", "unreadable")
    ),
)
# (tools, path, what denies it): for a user who may not read every file
DENIED = (
    (_FILES, "unreadable", "{}"),
    (_LISTS, "closed", "{}"),
    (("rm",), "closed", "{}"),
    (("write_file",), "closed/new", "{}"),
    (("read_file",), "closed/file", "{}"),
    (("edit_file",), "closed/file", "closed"),
)


def cannot(parameter: str, value: object, reason: str) -> str:
    """The words for a value that a parameter cannot have."""
    shown = ascii(value)
    return f"{parameter} cannot be {shown if len(shown) <= 60 else shown[:60] + '…'}: {reason}"


def _cannot_be(parameter: str, what: str, reason: str) -> str:
    return f"{parameter} cannot be {what}: {reason}"


def _chars(parameter: str, count: int, limit: int) -> str:
    return _cannot_be(parameter, f"{count} characters", f"the limit is {limit}")


def _grep(reason: str) -> str:
    return f"cannot grep /: the pattern is not valid: {reason} (bad_pattern). {_PATTERNS}"


_FILE = {"file_path": "src/a.py"}
_TRUE = {"command": ["true"]}
# The tool, its arguments and the message.
REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("ls", {"nope": 1}, "ls has no parameter 'nope'. It has path."),
    ("read_file", {}, _cannot_be("file_path", "missing", "it is required")),
    ("read_file", {**_FILE, "offset": -1}, cannot("offset", -1, "it is at least 0")),
    ("read_file", {**_FILE, "offset": True}, cannot("offset", True, "it is a whole number")),
    ("read_file", {**_FILE, "limit": 0}, cannot("limit", 0, "it is at least 1")),
    ("write_file", {"file_path": "new", "content": "x" * 48_001}, _chars("content", 48_001, 48_000)),
    ("write_file", {"file_path": "new", "content": b"x"}, cannot("content", b"x", "it is a string")),
    (
        "write_file",
        {"file_path": "new", "content": "\ud800"},
        cannot("content", "\ud800", "it has a lone surrogate, which UTF-8 does not have"),
    ),
    ("edit_file", {**_FILE, "old_string": "", "new_string": "x"}, cannot("old_string", "", "it must not be empty")),
    (
        "edit_file",
        {**_FILE, "old_string": "four", "new_string": "x"},
        cannot("old_string", "four", "the text to replace does not occur in it"),
    ),
    (
        "edit_file",
        {**_FILE, "old_string": "t", "new_string": "x"},
        cannot("old_string", "t", f"the text to replace occurs 2 times. {_MORE}"),
    ),
    ("edit_file", {**_FILE, "old_string": "x" * 48_001, "new_string": ""}, _chars("old_string", 48_001, 48_000)),
    ("edit_file", {**_FILE, "old_string": "one", "new_string": "x" * 48_001}, _chars("new_string", 48_001, 48_000)),
    (
        "edit_file",
        {**_FILE, "old_string": "one", "new_string": "x", "replace_all": "yes"},
        cannot("replace_all", "yes", "it is true or false"),
    ),
    ("glob", {"pattern": ""}, cannot("pattern", "", "it must not be empty")),
    ("glob", {"pattern": " "}, cannot("pattern", " ", "it must not be empty")),
    ("glob", {"pattern": "\xfc"}, cannot("pattern", "\xfc", "it has ASCII characters only")),
    ("glob", {"pattern": "a\0"}, cannot("pattern", "a\0", "it must not have a NUL character")),
    ("glob", {"pattern": "a" * 4097}, _chars("pattern", 4097, 4096)),
    (
        "glob",
        {"pattern": "src/../*"},
        cannot("pattern", "src/../*", f"the pattern is not valid: it is empty or has a segment ... {_PATTERNS}"),
    ),
    (
        "glob",
        {"pattern": "[z-a]"},
        cannot("pattern", "[z-a]", f"the pattern is not valid: bad character range z-a at position 1. {_PATTERNS}"),
    ),
    ("grep", {"pattern": ""}, cannot("pattern", "", "it must not be empty")),
    ("grep", {"pattern": "a\0"}, cannot("pattern", "a\0", "it must not have a NUL character")),
    ("grep", {"pattern": "a" * 4097}, _chars("pattern", 4097, 4096)),
    ("grep", {"pattern": "("}, _grep("missing ), unterminated subpattern at position 0")),
    ("grep", {"pattern": "*"}, _grep("nothing to repeat at position 0")),
    ("grep", {"pattern": "a{99999999999}"}, _grep("the repetition number is too large")),
    ("grep", {"pattern": "a", "glob": "[b-a]"}, _grep("bad character range b-a at position 1")),
    ("grep", {"pattern": "a", "glob": "../*"}, _grep("it is empty or has a segment ..")),
    ("grep", {"pattern": "a", "glob": "a" * 4097}, _chars("glob", 4097, 4096)),
    ("shell_execute", {"command": []}, cannot("command", [], "it must not be empty")),
    ("shell_execute", {"command": [" "]}, cannot("command", [" "], "it must not be empty")),
    (
        "shell_execute",
        {"command": "true"},
        cannot("command", "true", f"it is an array of strings, a program and its arguments. {_LINE}"),
    ),
    ("shell_execute", {"command": ["a\0"]}, cannot("command", "a\0", "it must not have a NUL character")),
    ("shell_execute", {"command": ["\xfc"]}, cannot("command", "\xfc", "it has ASCII characters only")),
    (
        "shell_execute",
        {"command": ["true", "x" * 4092]},
        _cannot_be("command", "4097 characters", "the limit is 4096. Put long texts on stdin, or into a file."),
    ),
    ("shell_execute", {**_TRUE, "stdin": "x" * 48_001}, _chars("stdin", 48_001, 48_000)),
    *(
        (
            "shell_execute",
            {**_TRUE, "timeout_seconds": seconds},
            cannot("timeout_seconds", seconds, "it is a finite number; 1 to 120 seconds are used"),
        )
        for seconds in (float("nan"), float("inf"))
    ),
    (
        "shell_execute",
        {**_TRUE, "env": {f"A{number}": "" for number in range(65)}},
        _cannot_be("env", "65 variables", "the limit is 64"),
    ),
    (
        "shell_execute",
        {**_TRUE, "env": {"A" * 81: ""}},
        cannot("env", "A" * 81, "a name has 81 characters, the limit is 80"),
    ),
    (
        "shell_execute",
        {**_TRUE, "env": {"A=": ""}},
        cannot("env", "A=", "a name is a string in ASCII, not empty, without = and NUL"),
    ),
    (
        "shell_execute",
        {**_TRUE, "env": {"A": "s\xe9cret"}},
        _cannot_be("env A", "what it is", "a value is a string in ASCII without NUL"),
    ),
    (
        "shell_execute",
        {**_TRUE, "cwd": "/tmp"},
        cannot("cwd", "/tmp", "it is relative to the workspace, or begins with /workspace"),
    ),
    ("shell_execute", {**_TRUE, "cwd": "src/.."}, cannot("cwd", "src/..", f"it has a segment ... {_SEGMENT}")),
    ("shell_execute", {**_TRUE, "cwd": "nope"}, cannot("cwd", "/workspace/nope", "No such file or directory")),
    ("shell_execute", {**_TRUE, "cwd": "none"}, cannot("cwd", "/workspace/none", "Not a directory")),
    (
        "shell_execute",
        {"command": ["rm", "-rf", "/"]},
        f"the command 'rm -rf /' is blocked (rm -rf /): it removes the root directory. {_VALIDATOR}",
    ),
    ("evaluate_python", {"code": " "}, cannot("code", " ", "it must not be empty")),
    (
        "evaluate_python",
        {"code": "1\0"},
        cannot("code", "1\0", "it must not have a NUL character"),
    ),
    (
        "evaluate_python",
        {"code": "1\x1b"},
        cannot("code", "\x1b", "the only control characters that it may have are '\\n' '\\t' '\\r'"),
    ),
    *(
        (
            "evaluate_python",
            {"code": "1", name: value},
            cannot(name, value, "it must be empty: the code reads and writes files of the workspace itself"),
        )
        for name, value in (("reads", ["a"]), ("writes", ["a"]), ("globals", {"a": "b"}))
    ),
)
