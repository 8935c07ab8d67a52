"""The user of a command, looked up in files that a hostile process inside can replace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guest.inside.spawn import Refusal
from podbot.guest.inside.users import find

PASSWD = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1001::/home/ann:/bin/sh\nbroken\nodd:x:nine:1::/:\n"
GROUP = "root:x:0:\nstaff:x:50:bob,ann\nann:x:1001:\nanna:x:60:anna\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "passwd").write_text(PASSWD)
    (tmp_path / "group").write_text(GROUP)
    return str(tmp_path / "passwd"), str(tmp_path / "group")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ann", (1000, 1001, [50], "/home/ann")),
        ("1000", (1000, 1001, [50], "/home/ann")),
        ("root", (0, 0, [], "/root")),
        ("0", (0, 0, [], "/root")),
        ("ann:staff", (1000, 50, [], "/home/ann")),
        ("ann:0", (1000, 0, [], "/home/ann")),
        ("77", (77, 0, [], "/")),
        ("77:88", (77, 88, [], "/")),
        (":staff", (0, 50, [], "/root")),
    ],
)
def test_names_and_numbers(files: tuple[str, str], text: str, wanted: tuple[int, int, list[int], str]) -> None:
    found = find(text, *files)
    assert (found.uid, found.gid, found.groups, found.home) == wanted


@pytest.mark.parametrize("text", ["nobody", "ann:none", "-1", "odd", str(1 << 31), "77:-1", "٣", "broken"])
def test_what_is_in_no_file_and_no_number_is_refused(files: tuple[str, str], text: str) -> None:
    with pytest.raises(Refusal) as refused:
        find(text, *files)
    assert (refused.value.field, refused.value.value) == ("user", text)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: None])
def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(tmp_path: Path, make: object) -> None:
    make(tmp_path / "users")  # type: ignore[operator]
    assert find("5:6", str(tmp_path / "users"), str(tmp_path / "users")).gid == 6
    with pytest.raises(Refusal):
        find("ann", str(tmp_path / "users"), str(tmp_path / "users"))


@given(text=st.text(), content=st.binary(max_size=200) | st.text(":0123ab,\n").map(str.encode))
def test_any_content_gives_numbers_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, text: str, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        found = find(text, str(path), str(path))
    except Refusal:
        return
    assert all(0 <= number < 1 << 31 for number in (found.uid, found.gid, *found.groups))
