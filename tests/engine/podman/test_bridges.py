"""The bridge of a removed network goes with the namespaces on it, if it is still the one that it was."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from podbot.engine.podman.bridges import interface_index, remove_bridge

ONE, OTHER = "netns-c43d0912-7e7b-b0c0-cc5c-291d7750f726", "netns-04f24194-47e5-afe7-7f58-7db985ff0798"
ON_IT = f"""617: veth3@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master podman5 state UP
    link/ether 9e:94:b6:57:57:b4 brd ff:ff:ff:ff:ff:ff link-netns {ONE}
618: veth4@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master podman5 state UP
    link/ether 9e:94:b6:57:57:b5 brd ff:ff:ff:ff:ff:ff link-netns {OTHER}
619: tap0: <BROADCAST> mtu 1500 master podman5
    link/ether 9e:94:b6:57:57:b6 brd ff:ff:ff:ff:ff:ff link-netns work
620: veth5@if2: <BROADCAST> mtu 1500 master podman5
    link/ether 9e:94:b6:57:57:b7 brd ff:ff:ff:ff:ff:ff link-netnsid 5
"""
DELETED = [["netns", "delete", ONE], ["netns", "delete", OTHER]]
LINK = ["link", "delete", "dev", "podman5", "type", "bridge"]


class Ip:
    """iproute2, and the interface ``podman5`` with an index. ``last``: it goes with the last of the namespaces."""

    def __init__(self, index: int, *, last: bool = False) -> None:
        self.index, self.last = index, last
        self.ran: list[list[str]] = []

    def run(self, words: Sequence[str]) -> str:
        if words[1] != "show":
            self.ran.append(list(words))
        if self.last and words[-1] == OTHER:
            self.index = 0
        return ON_IT if list(words) == ["link", "show", "master", "podman5"] else ""

    def find(self, name: str) -> int:
        assert name == "podman5"
        return self.index

    def removes(self, index: int) -> list[list[str]]:
        remove_bridge("podman5", index, run=self.run, find=self.find)
        return self.ran


def test_the_bridge_goes_with_podmans_namespaces_on_it() -> None:
    assert Ip(616).removes(616) == [*DELETED, LINK]
    assert Ip(616, last=True).removes(616) == DELETED


@pytest.mark.parametrize(("index", "now"), [(616, 0), (616, 700), (0, 0), (0, 616)])
def test_another_bridge_of_that_name_stays(index: int, now: int) -> None:
    """It is another session's, which got the name as soon as it was free."""
    assert Ip(now).removes(index) == []


@pytest.mark.parametrize("text", ["", "x", "1" * 5000, None])
def test_an_interface_without_an_index_is_none(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "podman5").mkdir()
    if text is not None:
        (tmp_path / "podman5" / "ifindex").write_text(text)
    assert interface_index("podman5", str(tmp_path)) == 0


@pytest.mark.parametrize("name", ["", ".", "..", "../podman5", "a/b"])
def test_a_name_that_is_a_path_is_no_interface(tmp_path: Path, name: str) -> None:
    (tmp_path / "podman5").mkdir()
    for place in (tmp_path, tmp_path / "podman5"):
        (place / "ifindex").write_text("7")
    assert interface_index(name, os.path.join(tmp_path, "podman5")) == 0


def test_the_kernel_s_indexes_are_read() -> None:
    assert interface_index("lo") == 1
    assert interface_index("no-such-one") == 0
