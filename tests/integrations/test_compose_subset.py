from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import InvalidValue
from podbot.integrations.compose_subset import services_of
from podbot.integrations.sample_settings import SampleSettings

ORIGIN = "file compose.yaml"


def one(**keys: Any) -> SampleSettings:
    (found,) = services_of({"services": {"default": {"image": "localhost/x", **keys}}}, ORIGIN).values()
    return found


def refused(**keys: Any) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        one(**keys)
    assert caught.value.origin == ORIGIN
    return caught.value


@pytest.mark.parametrize(
    ("keys", "field", "value"),
    [
        ({"user": "1000:1000"}, "user", "1000:1000"),
        ({"user": 1000}, "user", "1000"),
        ({"working_dir": "/work"}, "working_dir", "/work"),
        ({"mem_limit": "512m"}, "memory", "512m"),
        ({"mem_limit": "512MB"}, "memory", "512m"),
        ({"mem_limit": "1gb"}, "memory", "1g"),
        ({"mem_limit": 1048576}, "memory", "1048576b"),
        ({"cpus": "1.5"}, "cpus", 1.5),
        ({"pids_limit": -1}, "pids", 0),
        ({"pids_limit": "100"}, "pids", 100),
        ({"deploy": {"resources": {"limits": {"cpus": "2", "memory": "2g"}}}}, "cpus", 2.0),
        ({"deploy": {"resources": {"limits": {"cpus": "2", "memory": "2g"}}}}, "memory", "2g"),
        ({}, "network", "none"),
        ({"network_mode": "none"}, "network", "none"),
        ({"network_mode": "bridge"}, "network", "default"),
        ({"environment": {"A": "b", "N": 1}}, "env", {"A": "b", "N": "1"}),
        ({"environment": ["A=b=c", "EMPTY=", "PRICE=$$5"]}, "env", {"A": "b=c", "EMPTY": "", "PRICE": "$5"}),
    ],
)
def test_what_podbot_honours(keys: dict[str, Any], field: str, value: object) -> None:
    assert getattr(one(**keys), field) == value


@pytest.mark.parametrize(
    "keys",
    [
        {"command": "tail -f /dev/null"},
        {"command": ["tail", "-f", "/dev/null"]},
        {"entrypoint": ["sleep", "infinity"]},
        {"init": True, "tty": True, "stdin_open": True, "restart": "no", "pull_policy": "never"},
        {"x-local": True, "x-anything": {"a": "$b"}},
        {"security_opt": ["no-new-privileges:true"]},
        {"volumes": None},
    ],
)
def test_what_changes_nothing(keys: dict[str, Any]) -> None:
    assert one(**keys) == one()


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"build": "."}, "podman build"),
        ({"volumes": ["/:/host"]}, "files"),
        ({"ports": ["80:80"]}, "ports"),
        ({"networks": ["a"]}, "network_mode"),
        ({"network_mode": "host"}, "host"),
        ({"network_mode": "service:other"}, "service:other"),
        ({"privileged": True}, "privileged"),
        ({"privileged": False}, "privileged"),
        ({"cap_add": ["SYS_ADMIN"]}, "cap_add"),
        ({"cap_drop": ["ALL"]}, "cap_drop"),
        ({"read_only": True}, "read_only"),
        ({"security_opt": ["seccomp=unconfined"]}, "seccomp"),
        ({"command": "python server.py"}, "main process"),
        ({"command": "tail -f /dev/null; server"}, "main process"),
        ({"env_file": ".env"}, "env_file"),
        ({"environment": ["SECRET"]}, "SECRET"),
        ({"environment": {"SECRET": None}}, "SECRET"),
        ({"environment": ["A=$HOME"]}, "variable"),
        ({"image": "${SAMPLE_METADATA_IMAGE}"}, "variable"),
        ({"image": None}, "required"),
        ({"image": ""}, "text"),
        ({"user": True}, "text"),
        ({"mem_limit": "lots"}, "lots"),
        ({"cpus": "many"}, "many"),
        ({"deploy": {"replicas": 3}}, "limits only"),
        ({"deploy": {"resources": {"reservations": {"memory": "1g"}}}}, "limits only"),
        ({"deploy": {"resources": {"limits": {"pids": 3}}}}, "pids"),
        ({"working_dir": "relative"}, "absolute"),
    ],
)
def test_what_podbot_cannot_honour_is_refused(keys: dict[str, Any], word: str) -> None:
    assert word in str(refused(**keys))


def test_the_default_service_is_first() -> None:
    a, b = {"image": "localhost/a"}, {"image": "localhost/b"}
    assert list(services_of({"services": {"a": a, "default": b}}, ORIGIN)) == ["default", "a"]
    assert list(services_of({"services": {"default": a, "b": {**b, "x-default": True}}}, ORIGIN)) == ["b", "default"]
    assert list(services_of({"services": {"only": a}}, ORIGIN)) == ["only"]


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ({}, "none"),
        ({"services": {}}, "none"),
        ({"services": {"a": {"image": "x"}, "b": {"image": "x"}}}, "x-default"),
        ({"services": {n: {"image": "x", "x-default": True} for n in "ab"}}, "a, b"),
        ({"services": {"a": {"image": "x"}}, "volumes": {"v": {}}}, "volumes"),
        ({"services": {"a": {"image": "x"}}, "networks": {"n": {}}}, "networks"),
    ],
)
def test_documents_that_are_refused(document: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidValue, match=word):
        services_of(document, ORIGIN)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
KEYS = st.sampled_from(["image", "user", "environment", "mem_limit", "cpus", "deploy", "command", "pids_limit"])


@given(st.dictionaries(KEYS | st.text(), JSON))
def test_any_service_is_honoured_or_refused(service: dict[str, Any]) -> None:
    try:
        found = services_of({"services": {"default": service}}, ORIGIN)
    except InvalidValue:
        return
    assert found["default"].network == "none" or "network_mode" in service
