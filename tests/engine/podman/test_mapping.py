from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.http import Response
from podbot.engine.podman.mapping import check, is_storage_full, reason_of, refusal
from podbot.errors import (
    ContainerNotFound,
    EngineStorageFull,
    KernelLimitReached,
    PodbotError,
    RequestFailed,
    StartFailed,
)
from tests.engine.serving import recorded

KEYS = st.sampled_from(["message", "cause", "response", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


def said(status: int, body: Any) -> Response:
    return Response(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_the_engines_own_message_is_used() -> None:
    entry = recorded()["create_failed"]
    reason = reason_of(said(entry["status"], entry["body"].encode()))
    assert reason == "unable to find network with name or ID nonet: network not found"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"cause": "only that"}, "only that"),
        ({"message": "two\nlines\t and  more"}, "two lines and more"),
        ({}, "HTTP status 500"),
        ([], "HTTP status 500"),
        (b"", "HTTP status 500"),
        (b"<h1>proxy</h1>", "<h1>proxy</h1>"),
    ],
)
def test_missing_or_unexpected_messages(body: Any, reason: str) -> None:
    assert reason_of(said(500, body)) == reason


@given(st.integers(100, 999), st.one_of(st.binary(), JSON))
def test_any_answer_gives_a_bounded_reason_on_one_line(status: int, body: Any) -> None:
    reason = reason_of(said(status, body))
    assert 0 < len(reason) <= 600
    assert len(reason.splitlines()) == 1
    assert isinstance(refusal("do it", said(status, body)), PodbotError)


def test_a_full_disk_is_reported_first() -> None:
    body = {"message": "writing blob: write /var/lib/x: no space left on device"}
    exc = refusal("create a container", said(404, body), container="c")
    assert isinstance(exc, EngineStorageFull)
    assert exc.operation == "create a container"


def test_not_found_needs_a_container_name() -> None:
    exc = refusal("inspect it", said(404, {"message": "no such container"}), container="c")
    assert isinstance(exc, ContainerNotFound)
    assert exc.container == "c"
    other = refusal("list them", said(404, {"message": "no such thing"}))
    assert isinstance(other, RequestFailed)
    assert (other.operation, other.status, other.reason) == ("list them", 404, "no such thing")


@pytest.mark.parametrize(
    "text",
    [
        "container 7eca24ea23d1 does not exist in database: no such container",
        "no container with ID 3860fecd44e5 found in database: no such container",
    ],
    ids=["4.3", "5.4"],
)
def test_a_container_that_is_being_removed_is_gone(text: str) -> None:
    assert isinstance(refusal("inspect it", said(500, {"message": text}), container="c"), ContainerNotFound)
    assert isinstance(refusal("inspect it", said(500, {"message": text})), RequestFailed)
    other = {"message": f"{text} was printed by a hook"}
    assert isinstance(refusal("inspect it", said(500, other), container="c"), RequestFailed)


@pytest.mark.parametrize(
    ("reason", "limit"),
    [
        (
            (
                "runc: runc create failed: unable to start container process: error during container init: unable to"
                " join session keyring: unable to create session key: disk quota exceeded: OCI runtime error"
            ),
            "kernel keys",
        ),
        ("crun: create keyring `c0ffee`: Disk quota exceeded: OCI runtime error", "kernel keys"),
        ("inotify_add_watch /x: no space left on device", "inotify watches"),
        ("fork/exec /usr/bin/conmon: no space left on device", "namespaces"),
        ("crun: clone: No space left on device", "namespaces"),
        ("write /sys/fs/cgroup/cpuset/libpod/tasks: no space left on device", "control groups"),
    ],
)
def test_a_limit_of_the_kernel_is_no_full_disk(reason: str, limit: str) -> None:
    for exc in (refusal("start it", said(500, {"message": reason})), checked(said(500, {"message": reason}))):
        assert isinstance(exc, KernelLimitReached)
        assert exc.limit.startswith(limit)
        assert not is_storage_full(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "mkdir /var/lib/containers/storage/overlay/keyring: no space left on device",
        "write /home/a/clone: disk quota exceeded",
        "open /var/lib/containers/storage/fork/exec: No space left on device",
    ],
)
def test_a_full_disk_stays_one_whatever_its_path_is(reason: str) -> None:
    for exc in (refusal("start it", said(500, {"message": reason})), checked(said(500, {"message": reason}))):
        assert isinstance(exc, EngineStorageFull)


def checked(response: Response) -> PodbotError:
    with pytest.raises(PodbotError) as caught:
        check(response, "c", StartFailed(container="c", reason="it broke"))
    return caught.value
