"""What a stopped container has in place of its account files is found before the engine opens it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.http import Response
from podbot.engine.podman.account_files import odd_in
from podbot.errors import StartFailed
from tests.engine.podman.serve import Serve
from tests.engine.serving import http


@pytest.fixture
def layers(tmp_path: Path) -> tuple[Path, Path]:
    """The container's own layer, and the image's with its two files."""
    own, image = tmp_path / "own", tmp_path / "image"
    (own / "etc").mkdir(parents=True)
    (image / "etc").mkdir(parents=True)
    for name in ("passwd", "group"):
        (image / "etc" / name).write_text("x")
    return own, image


def document(layers: tuple[Path, Path]) -> str:
    own, image = layers
    return json.dumps({"GraphDriver": {"Data": {"UpperDir": str(own), "LowerDir": f"{image}:/nonexistent"}}})


def found(layers: tuple[Path, Path]) -> str:
    return odd_in(Response(200, {}, document(layers).encode()))


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(path.parent)
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


ODD: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a socket": unix_socket,
    "a link": lambda path: path.symlink_to("/workspace/x"),
}


@pytest.mark.parametrize("name", ["passwd", "group"])
@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_found(layers: tuple[Path, Path], kind: str, name: str) -> None:
    ODD[kind](layers[0] / "etc" / name)
    assert found(layers) == f"its /etc/{name} is {kind}, and the engine would wait for ever at it"


def test_files_of_the_image_and_files_that_were_written_inside_are_nothing_odd(layers: tuple[Path, Path]) -> None:
    assert found(layers) == ""
    (layers[0] / "etc" / "passwd").write_text("y")
    assert found(layers) == ""


def test_a_fifo_of_the_image_is_found_unless_it_was_replaced(layers: tuple[Path, Path]) -> None:
    (layers[1] / "etc" / "group").unlink()
    os.mkfifo(layers[1] / "etc" / "group")
    assert found(layers).startswith("its /etc/group is a FIFO")
    (layers[0] / "etc" / "group").write_text("y")
    assert found(layers) == ""


def test_a_link_of_the_image_is_its_own_matter(layers: tuple[Path, Path]) -> None:
    (layers[1] / "etc" / "passwd").unlink()
    (layers[1] / "etc" / "passwd").symlink_to("/nix/store/passwd")
    assert found(layers) == ""


def test_a_link_in_place_of_the_directory_is_found(layers: tuple[Path, Path]) -> None:
    (layers[0] / "etc").rmdir()
    (layers[0] / "etc").symlink_to("/workspace")
    assert found(layers) == "its /etc is a link"


def test_a_container_of_which_no_layer_is_known_is_not_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").symlink_to("/etc")
    monkeypatch.chdir(tmp_path)
    assert odd_in(Response(200, {}, b'{"GraphDriver": {}}')) == ""


@given(
    st.sampled_from([200, 404, 500]), st.sampled_from(["", "[]", "null", "{}", '{"GraphDriver": {"Data": 3}}', "{x"])
)
def test_what_cannot_be_told_is_left_to_the_engine(status: int, text: str) -> None:
    assert odd_in(Response(status, {}, text.encode())) == ""


def test_such_a_container_is_not_started(serve: Serve, layers: tuple[Path, Path]) -> None:
    os.mkfifo(layers[0] / "etc" / "passwd")
    engine, server = serve(http(200, document(layers)))
    with pytest.raises(StartFailed, match="its /etc/passwd is a FIFO"):
        engine.start("c")
    assert [request.method for request in server.requests] == ["GET"]
