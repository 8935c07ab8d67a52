"""Which addresses a sandbox may reach."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.gateway.addresses import refusal

PUBLIC = ["1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.0", "192.0.1.1", "198.20.0.1", "223.255.255.255",
          "2606:4700::1111", "2a00:1450:4001::200e", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"]  # fmt: skip
PRIVATE = ["10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "172.16.0.1", "172.31.255.255", "192.168.0.1",
           "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "::1", "fc00::1", "fd12:3456::1",
           "2001:db8::1", "3fff::1", "5f00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"]  # fmt: skip
NEVER = ["168.63.129.16", "100.100.100.200", "fd20:ce::254", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1",
         "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "192.0.0.170", "192.88.99.1", "224.0.0.1", "239.1.2.3",
         "240.0.0.1", "255.255.255.255", "::", "100::1", "fe80::1", "febf::1", "fec0::1", "ff02::1", "fd00:ec2::254",
         "2002:7f00:1::", "2002:808:808::", "2001::1", "64:ff9b:1::1", "::ffff:169.254.169.254", "::ffff:0.0.0.0",
         "64:ff9b::169.254.169.254", "::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1", "2606:4700::5efe:7f00:1",
         "2606:4700::200:5efe:a00:1", "4000::1", "e000::1"]  # fmt: skip


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_may_be_reached(text: str) -> None:
    assert refusal(ipaddress.ip_address(text)) is None


@pytest.mark.parametrize("text", PRIVATE)
def test_private_ones_only_if_the_operator_allowed_it(text: str) -> None:
    assert refusal(ipaddress.ip_address(text)) is not None
    assert refusal(ipaddress.ip_address(text), private=True) is None


@pytest.mark.parametrize("text", NEVER)
def test_others_never(text: str) -> None:
    assert refusal(ipaddress.ip_address(text), private=True) is not None


def test_the_reason_names_the_address_inside() -> None:
    assert refusal(ipaddress.ip_address("::ffff:127.0.0.1")) == "leads to 127.0.0.1, which is loopback"


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_inside_an_ipv6_one_is_judged_as_itself(address: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.IPv6Address(int(ipaddress.IPv6Address("::ffff:0:0")) | int(address))
    assert (refusal(mapped) is None) == (refusal(address) is None)


@given(st.ip_addresses())
def test_what_python_calls_private_is_not_reached(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if not address.is_global or address.is_multicast:
        mapped = getattr(address, "ipv4_mapped", None)
        assert refusal(address) is not None or (mapped is not None and refusal(mapped) is None)
