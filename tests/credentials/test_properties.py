"""Whatever a family's directory contains, only files inside it are copied, and no link leads out of it."""

from __future__ import annotations

import contextlib
import os
import posixpath
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.credentials.trees import Home, contents, members
from tests.examples import examples

SEGMENT = st.sampled_from(["a", "b", "c", "projects", ".claude", "é\n", "\udcff"])
PATH = st.lists(SEGMENT, min_size=1, max_size=3).map("/".join)
TARGET = st.one_of(
    st.lists(
        st.sampled_from(["..", ".", "a", "b", "c", ".claude", "outside", "secret", ""]), min_size=1, max_size=6
    ).map("/".join),
    st.sampled_from(
        ["/", "/etc/passwd", "HOME/.claude/a", "HOME/outside/secret", "HOME/.claude/../outside", "TOP/b", "//"]
    ),
)
NODE = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=700)),
    st.tuples(st.just("dir"), st.none()),
    st.tuples(st.just("fifo"), st.none()),
    st.tuples(st.just("link"), TARGET),
    st.tuples(st.just("link"), TARGET),
)
SECRET = b"outside: never"


def grow(home: Home, nodes: list[tuple[str, tuple[str, object]]]) -> None:
    top = os.path.join(home.path, ".claude")
    os.makedirs(top)
    home.write("outside/secret", SECRET)
    for path, (kind, value) in nodes:
        where = os.path.join(top, path)
        with contextlib.suppress(OSError):  # the name exists already, or its parent is not a directory
            if os.path.realpath(os.path.dirname(where)).startswith(top):
                os.makedirs(os.path.dirname(where), exist_ok=True)
            if not os.path.realpath(os.path.dirname(where)).startswith(top):
                continue
            if kind == "file" and not os.path.lexists(where):
                with open(where, "xb") as file:
                    file.write(value)  # type: ignore[arg-type]
            elif kind == "dir":
                os.mkdir(where)
            elif kind == "fifo":
                os.mkfifo(where)
            else:
                os.symlink(str(value).replace("HOME", home.path).replace("TOP", top), where)


def real_files(top: str) -> dict[str, bytes]:
    """Regular files, found without following links, except the excluded ones."""
    found = {}
    for directory, names, files in os.walk(top):
        if directory == top:
            names[:] = [name for name in names if name != "projects"]
            files = [name for name in files if name != "projects"]  # noqa: PLW2901
        for name in files:
            path = os.path.join(directory, name)
            if not os.path.islink(path) and os.path.isfile(path):
                with open(path, "rb") as file:
                    found[".claude/" + os.path.relpath(path, top)] = file.read()
    return found


@given(st.lists(st.tuples(PATH, NODE), max_size=12))
@settings(max_examples=examples(150))
def test_only_files_inside_are_copied(nodes: list[tuple[str, tuple[str, object]]]) -> None:
    with tempfile.TemporaryDirectory() as base:
        home = Home(os.path.join(os.path.realpath(base), "home"))
        grow(home, nodes)
        top = os.path.join(home.path, ".claude")
        archive = home.packed("claude").archive
        assert archive == home.packed("claude").archive
        assert SECRET not in archive
        found = members(archive)
        assert contents(archive) == real_files(top)
        for name, member in found.items():
            assert member.isreg() or member.isdir() or member.issym()
            assert name == ".claude" or name.startswith(".claude/")
            assert posixpath.normpath(name) == name
            if member.issym():
                # As the kernel would resolve it inside: relative, without another link in between, to an existing file.
                end = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
                assert not member.linkname.startswith("/")
                assert end in found
                assert not found[end].issym()
                # And it is the same file or directory that the link leads to on the host.
                assert os.path.realpath(os.path.join(home.path, name)) == os.path.join(home.path, end)
        for directory, names, files in os.walk(top):
            for entry in (*names, *files):
                path = os.path.join(directory, entry)
                name = os.path.relpath(path, home.path)
                leads = os.path.realpath(path)
                if os.path.islink(path) and not name.startswith(".claude/projects") and os.path.exists(path):
                    inside = os.path.relpath(leads, home.path)
                    if inside in found and "outside" not in os.readlink(path):
                        assert name in found, "a link that ends inside is copied"
