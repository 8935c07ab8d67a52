"""What a container has in place of its account files is found before the engine opens it, or let go afterwards."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.http import Response
from podbot.engine.podman.account_files import AccountFiles, account_files
from podbot.engine.podman.rest import RestLimits
from podbot.errors import ExecFailed, StartFailed, UploadFailed
from tests.engine.podman.serve import TRUE, Serve
from tests.engine.serving import http
from tests.waiting import attempts


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
    return account_files(Response(200, {}, document(layers).encode())).odd()


def no_sleep(_seconds: float) -> None:
    pass


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


LINKS = ["/nix/store/passwd", "../nix/store/passwd", "/../../nix/./store//passwd", "/nix/alias/passwd"]


@pytest.mark.parametrize("leads", LINKS)
def test_a_link_of_the_image_is_followed_within_the_container(layers: tuple[Path, Path], leads: str) -> None:
    own, image = layers
    (image / "etc" / "passwd").unlink()
    (image / "etc" / "passwd").symlink_to(leads)
    assert found(layers) == "", "it leads nowhere"
    (image / "nix" / "store").mkdir(parents=True)
    (image / "nix" / "alias").symlink_to("store")
    (image / "nix" / "store" / "passwd").write_text("x")
    assert found(layers) == ""
    (own / "nix" / "store").mkdir(parents=True)
    os.mkfifo(own / "nix" / "store" / "passwd")
    assert found(layers).startswith("its /etc/passwd is a FIFO"), "the agent has replaced the file that it leads to"
    (own / "nix" / "store" / "passwd").unlink()
    (own / "nix" / "store").rmdir()
    (own / "nix" / "store").write_text("a file hides the directory")
    assert found(layers) == ""


def test_a_link_of_the_image_does_not_lead_to_the_host(layers: tuple[Path, Path], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (layers[1] / "etc" / "passwd").unlink()
    (layers[1] / "etc" / "passwd").symlink_to(tmp_path / "pipe")
    assert found(layers) == ""


@pytest.mark.parametrize("name", ["etc", "etc/passwd"])
def test_links_of_the_image_that_lead_in_a_circle_are_left_to_the_engine(layers: tuple[Path, Path], name: str) -> None:
    path = layers[1] / name
    path.rename(layers[1] / "away")
    path.symlink_to(f"/{name}")
    if name == "etc":
        (layers[0] / "etc").rmdir()
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
    assert account_files(Response(200, {}, b'{"GraphDriver": {}}')).odd() == ""


@given(
    st.sampled_from([200, 404, 500]),
    st.sampled_from(["", "[]", "null", "{}", '{"GraphDriver": {"Data": 3}}', "{x", '{"State": {"Pid": "1"}}']),
)
def test_what_cannot_be_told_is_left_to_the_engine(status: int, text: str) -> None:
    found = account_files(Response(status, {}, text.encode()))
    assert (found.odd(), found.release(sleep=no_sleep)) == ("", "")


def test_such_a_container_is_not_started(serve: Serve, layers: tuple[Path, Path]) -> None:
    os.mkfifo(layers[0] / "etc" / "passwd")
    engine, server = serve(http(200, document(layers)))
    with pytest.raises(StartFailed, match="its /etc/passwd is a FIFO"):
        engine.start("c")
    assert [request.method for request in server.requests] == ["GET"]


def test_a_command_is_not_run_by_the_engine_in_such_a_container(serve: Serve, layers: tuple[Path, Path]) -> None:
    """The engine would have hung for everybody, and the command's start could not be ended."""
    os.mkfifo(layers[0] / "etc" / "group")
    engine, server = serve(http(200, document(layers)))
    with pytest.raises(ExecFailed, match="its /etc/group is a FIFO"):
        engine.exec_create("c", TRUE)
    assert [request.method for request in server.requests] == ["GET"]


def test_nothing_is_uploaded_into_such_a_container(serve: Serve, layers: tuple[Path, Path]) -> None:
    """The engine looks up the container's user then."""
    os.mkfifo(layers[0] / "etc" / "passwd")
    engine, server = serve(http(200, document(layers)))
    with pytest.raises(UploadFailed, match="its /etc/passwd is a FIFO"):
        engine.put_archive("c", "/root", b"x")
    assert [request.method for request in server.requests] == ["GET"]


PID = 7


@pytest.fixture
def running(tmp_path: Path) -> tuple[AccountFiles, Path, str]:
    """A container that runs, its directory /etc, and a /proc in which its first process is."""
    etc = tmp_path / "root" / "etc"
    etc.mkdir(parents=True)
    (tmp_path / "proc" / str(PID)).mkdir(parents=True)
    (tmp_path / "proc" / str(PID) / "root").symlink_to(tmp_path / "root")
    return AccountFiles(pid=PID), etc, str(tmp_path / "proc")


def reader(path: Path) -> threading.Thread:
    """Opens ``path`` for reading and reads it, as an engine does."""
    thread = threading.Thread(target=path.read_bytes, daemon=True)
    thread.start()
    return thread


def test_an_engine_that_waits_at_a_fifo_is_let_go(running: tuple[AccountFiles, Path, str]) -> None:
    accounts, etc, proc = running
    for name in ("passwd", "group"):
        os.mkfifo(etc / name)
        waiting = reader(etc / name)
        found = ""
        for _ in attempts("the engine to be let go"):
            found = accounts.release(proc=proc, sleep=no_sleep) or found
            if not waiting.is_alive():
                break
        assert found == f"its /etc/{name} is a FIFO, at which the engine waited"


def test_at_a_fifo_where_nobody_waits_nothing_is_said(running: tuple[AccountFiles, Path, str]) -> None:
    accounts, etc, proc = running
    os.mkfifo(etc / "passwd")
    (etc / "group").write_text("x")
    assert accounts.release(proc=proc, sleep=no_sleep) == ""


@pytest.mark.parametrize("where", ["etc/passwd", "etc"])
def test_no_link_of_the_container_is_followed_to_let_the_engine_go(
    running: tuple[AccountFiles, Path, str], tmp_path: Path, where: str
) -> None:
    """It would lead to a FIFO of the host's, whose reader would read an end that nobody wrote."""
    accounts, etc, proc = running
    outside = tmp_path / "outside"
    outside.mkdir()
    os.mkfifo(outside / "passwd")
    reads = os.open(outside / "passwd", os.O_RDONLY | os.O_NONBLOCK)
    if where == "etc":
        etc.rmdir()
        etc.symlink_to(outside)
    else:
        (etc / "passwd").symlink_to(outside / "passwd")
    assert accounts.release(proc=proc, sleep=no_sleep) == ""
    os.close(reads)


def test_a_start_that_hangs_at_a_fifo_ends_with_that_reason(
    serve: Serve, running: tuple[AccountFiles, Path, str]
) -> None:
    """The agent put it there between podbot's look and the engine's."""
    accounts, _, _ = running
    released: list[str] = []

    class Released(AccountFiles):
        def release(self, **_options: object) -> str:
            released.append("released")
            return "its /etc/passwd is a FIFO, at which the engine waited"

    engine, _ = serve(lambda _request, sock: sock.recv(1) and None, limits=RestLimits(exec_start=0.02))
    engine.accounts["e"] = Released(pid=accounts.pid)
    with pytest.raises(ExecFailed, match="at which the engine waited"):
        engine.exec_start("e", tty=False, size=None)
    assert released
