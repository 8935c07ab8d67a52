"""What ``--env-file`` reads, and through which links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.cli.env_files import LARGEST_FILE, read_env_file
from podbot.errors import InvalidValue


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A home with a secret, and a repository beside it."""
    for name in ("home", "src/shop/.git"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/secret.env").write_text("KEY=s3cret\n")
    (tmp_path / "src/shop/own.env").write_text("A=1\n")
    return tmp_path


def read(host: Path, path: str) -> bytes:
    return read_env_file(str(host / path), {"HOME": str(host / "home")})


@pytest.mark.parametrize("target", ["../../home/secret.env", "between", "/proc/self/environ"])
def test_a_link_that_an_agent_could_have_made_is_refused(host: Path, target: str) -> None:
    (host / "src/shop/between").symlink_to("../../home")
    target = f"{target}/secret.env" if target == "between" else target
    (host / "src/shop/dev.env").symlink_to(target)
    with pytest.raises(InvalidValue) as caught:
        read(host, "src/shop/dev.env")
    assert f"the link {host}/src/shop/dev.env leads out" in caught.value.reason
    assert os.path.realpath(host / "src/shop" / target).split("/")[-1] in caught.value.hint
    with pytest.raises(InvalidValue):
        read(host, "src/shop/between/secret.env")


@pytest.mark.parametrize("path", ["prod.env", "../b/prod.env", "../prod.env"])
def test_a_planted_link_through_which_the_working_directory_was_entered_is_judged(
    host: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cd shop/api`, where an agent left `api -> ../../other/a`."""
    for name in ("other/a", "other/b", "other"):
        (host / name).mkdir(parents=True, exist_ok=True)
        (host / name / "prod.env").write_text("KEY=s3cret\n")
    (host / "src/shop/api").symlink_to("../../other/a")
    (host / "home/work").symlink_to("../other/a")
    monkeypatch.chdir(host / "other/a")
    environ = {"HOME": str(host / "home"), "PWD": str(host / "src/shop/api")}
    with pytest.raises(InvalidValue, match=f"the link {host}/src/shop/api leads out") as caught:
        read_env_file(path, environ)
    assert caught.value.hint.endswith(f"If you mean {os.path.realpath(path)}, write that.")
    for pwd in ("home/work", "other/a", "other/b", "gone"):
        assert read_env_file(path, environ | {"PWD": str(host / pwd)}) == b"KEY=s3cret\n"
    assert read_env_file(os.path.realpath(path), environ) == b"KEY=s3cret\n"


def test_a_link_inside_of_a_repository_or_in_a_home_is_followed(host: Path) -> None:
    (host / "src/shop/dev.env").symlink_to("own.env")
    (host / "home/link.env").symlink_to("../src/shop/own.env")
    assert read(host, "src/shop/dev.env") == read(host, "home/link.env") == b"A=1\n"
    assert read(host, "home/secret.env") == b"KEY=s3cret\n"


def test_a_pipe_is_read(host: Path) -> None:
    """A shell's ``<(command)`` is /dev/fd/N."""
    reader, writer = os.pipe()
    os.write(writer, b"B=2\n")
    os.close(writer)
    try:
        assert read_env_file(f"/dev/fd/{reader}", {}) == b"B=2\n"
    finally:
        os.close(reader)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_what_is_neither_a_file_nor_a_pipe_is_refused(host: Path, path: str) -> None:
    with pytest.raises(InvalidValue, match="is neither a file nor a pipe"):
        read(host, path)


def test_a_large_file_is_refused(host: Path) -> None:
    assert LARGEST_FILE == 1 << 20
    (host / "home/large").write_bytes(b"#" * (LARGEST_FILE + 1))
    with pytest.raises(InvalidValue, match="larger than 1 MiB"):
        read(host, "home/large")


def test_links_in_a_circle_a_directory_and_a_file_in_the_way_are_named(host: Path) -> None:
    (host / "one").symlink_to("two")
    (host / "two").symlink_to("one")
    for path, said in (
        ("one", "one cannot be read: its symbolic links lead in a circle. Correct the links, or name the file itself."),
        ("src", "src is a directory. Name a file."),
        ("src/shop/own.env/x", "own.env/x cannot be read: a part of its path is a file. Check the path."),
    ):
        with pytest.raises(InvalidValue) as caught:
            read(host, path)
        assert str(caught.value).endswith(said)


def test_a_missing_file_that_looks_like_a_variable_is_not_repeated(host: Path) -> None:
    with pytest.raises(InvalidValue, match="there is no file TOKEN=…") as caught:
        read_env_file("TOKEN=s3cret", {"HOME": str(host)})
    assert "s3cret" not in str(caught.value)
