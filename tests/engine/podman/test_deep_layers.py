"""A container's directories that are nested too deeply for Podman are removed, and nothing else is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.podman.deep_layers import is_incomplete, removed
from podbot.errors import RequestFailed
from tests.engine.podman.serve import Serve
from tests.engine.serving import http

LAYER = "e61bbf335559aa79fb5b51f227e24db9b68f5442f1655f394d52ced2ee9717f2"


def nothing_else() -> bytes:
    pytest.fail("the engine was asked again")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a layer that Podman has begun to remove. They are the tester's own: no user namespace is needed."""
    monkeypatch.setattr(os, "getuid", lambda: 0)
    path = tmp_path / "storage" / "overlay" / LAYER / "diff"
    path.mkdir(parents=True)
    listed(tmp_path, [{"id": "other"}, {"id": LAYER, "flags": {"incomplete": True}}])
    return path


def deepen(path: Path) -> None:
    """Nest directories more deeply than Python descends."""
    handle = os.open(path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)


def listed(tmp_path: Path, layers: object) -> None:
    (tmp_path / "storage" / "overlay-layers").mkdir(exist_ok=True)
    (tmp_path / "storage" / "overlay-layers" / "layers.json").write_text(json.dumps(layers))


def removal(files: object) -> bytes:
    """Podman's answer to the removal of the container (4.3.1)."""
    reason = f"1 error occurred:\n\t* openfdat {files}/d/d/d/d: too many open files\n\n"
    return json.dumps({"cause": reason, "message": f"removing container {LAYER} root filesystem: {reason}"}).encode()


def lookup(files: object) -> bytes:
    """Podman's answer to everything else from then on."""
    reason = f"getting store info: openfdat {files}/d/d/d/d: too many open files"
    return json.dumps({"cause": "too many open files", "message": reason, "response": 500}).encode()


@pytest.mark.parametrize("answer", [removal, lookup])
def test_the_files_of_the_layer_that_the_answer_names_are_removed(files: Path, answer: object) -> None:
    assert callable(answer)
    deepen(files)
    assert removed(answer(files), nothing_else)
    assert not files.exists()
    assert not removed(answer(files), nothing_else)  # so that a request is not repeated for ever


def test_a_layer_whose_removal_podman_has_not_begun_stays(files: Path, tmp_path: Path) -> None:
    nothing: tuple[object, ...] = ([{"id": LAYER}], [{"id": LAYER, "flags": {"incomplete": False}}], [], {}, [1], None)
    for layers in nothing:
        listed(tmp_path, layers)
        assert not removed(lookup(files), nothing_else)
    (tmp_path / "storage" / "overlay-layers" / "layers.json").unlink()
    assert not removed(lookup(files), nothing_else)
    assert files.exists()


def test_a_layer_behind_a_link_below_the_storage_stays(files: Path, tmp_path: Path) -> None:
    other = tmp_path / "storage2"
    other.mkdir()
    (other / "overlay-layers").symlink_to("../storage/overlay-layers")
    (other / "overlay").symlink_to("../storage/overlay")
    assert not removed(lookup(other / "overlay" / LAYER / "diff"), nothing_else)
    assert files.exists()


def test_a_storage_behind_a_link_is_the_engines_own_matter(files: Path, tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to("storage")
    assert removed(lookup(tmp_path / "home" / "overlay" / LAYER / "diff"), nothing_else)
    assert not files.exists()


@pytest.mark.parametrize(
    "message",
    [
        'open /merged/x\\": openfdat {}/d: too many open files',
        "cannot run `openfdat {}/d",
        "/x: openfdat {}/d",
        "openfdat {}",
        "openfdat ..{}/d",
    ],
)
def test_words_that_a_sandbox_may_have_written_name_no_layer(files: Path, message: str) -> None:
    answer = json.dumps({"message": message.format(files)}).encode()
    assert not removed(answer, nothing_else)
    assert files.exists()


@given(st.text(alphabet="/.overlaydif0a-", max_size=40))
def test_no_other_path_is_a_layer(path: str) -> None:
    assert not is_incomplete(path)


def test_the_request_is_sent_again(serve: Serve, files: Path) -> None:
    engine, server = serve(http(500, lookup(files).decode()), http(200, "[]"))
    assert engine.list_images(label="x") == []
    assert [request.method for request in server.requests] == ["GET", "GET"]
    assert not files.exists()


PANIC = http(500, json.dumps({"message": "runtime error: invalid memory address or nil pointer dereference"}))


def test_a_refusal_that_names_no_layer_is_looked_into(serve: Serve, files: Path) -> None:
    engine, server = serve(PANIC, http(500, lookup(files).decode()), http(404, "{}"))
    assert engine.image("x") is None
    assert [request.target.rpartition("/libpod")[2] for request in server.requests] == [
        "/images/x/json",
        "/images/json",
        "/images/x/json",
    ]


def test_a_refusal_for_another_reason_is_not_repeated(serve: Serve) -> None:
    engine, server = serve(PANIC, http(200, "[]"))
    with pytest.raises(RequestFailed, match="nil pointer"):
        engine.image("x")
    assert len(server.requests) == 2
