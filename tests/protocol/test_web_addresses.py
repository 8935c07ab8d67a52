"""Addresses that a user may be asked to open: none of the user's own machine, however it is spelled."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.web_addresses import is_web_address


@pytest.mark.parametrize(
    "host",
    [
        "example.org", "example.org.", "xn--mnchen-3ya.example", "10.0.0.7", "192.168.1.1", "172.16.0.1", "8.8.8.8",
        "128.0.0.1", "169.253.1.1", "[2001:db8::1]", "[fd00::1]", "[::ffff:8.8.8.8]", "intranet", "localhost.example",
        "[64:ff9b::808:808]", "[2002:808:808::]", "notlocalhost", "1password.com", "0x7f.example", "127.0.0.1.example",
    ],
)  # fmt: skip
def test_addresses_of_other_machines(host: str) -> None:
    for form in ("http://{}", "https://{}:8443/a", "HTTPS://{}?redirect_uri=http://localhost:1455/cb"):
        assert is_web_address(form.format(host))


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LocalHost", "localhost.", "app.localhost", "a.b.localhost.", "localhost.localdomain",
        "ip6-localhost", "host.docker.internal", "host.containers.internal",
        "127.0.0.1", "127.1.2.3", "127.0.0.1.", "0.0.0.0", "0.1.2.3", "169.254.169.254",
        # The same in spellings that browsers understand, or some do.
        "2130706433", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "017700000001", "0", "0x", "0x0",
        "0xa9fea9fe", "0251.0376.0251.0376", "2852039166", "127.0.0.0x1", "0X7F.0.0.1", "0127.0.0.1", "127.0.0.01",
        "4294967296", "1.2.3.4.5", "1.2.3.256", "127..1", ".127.0.0.1", "example.5", "127.0.0.1..",
        "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[fe80::1]",
        "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::ffff:0:127.0.0.1]", "[ff02::1]", "224.0.0.1", "255.255.255.255",
        "metadata.google.internal", "100.100.100.200", "[fd00:ec2::254]", "host.lima.internal", "loopback",
        "kubernetes.docker.internal",
        "[febf::1]", "[::FFFF:169.254.169.254]", "[::ffff:0:0]", "[1::2::3]", "[:]", "a" * 254,
    ],
)  # fmt: skip
def test_addresses_of_this_machine_and_doubtful_ones(host: str) -> None:
    for form in ("http://{}", "https://{}:8443/a", "http://{}/?x#y"):
        assert not is_web_address(form.format(host))


_OWN = ("127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/8", "224.0.0.0/3", "100.100.100.200/32")


@given(st.ip_addresses(v=4) | st.sampled_from(_OWN).flatmap(lambda net: st.ip_addresses(network=net)), st.data())
def test_an_ipv4_address_passes_in_its_plain_form_only(address: ipaddress.IPv4Address, data: st.DataObject) -> None:
    own = any(address in ipaddress.ip_network(net) for net in _OWN)
    assert is_web_address(f"http://{address}/") == (not own)
    assert is_web_address(f"http://[::ffff:{address}]/") == (not own)
    number = int(address)
    parts = [data.draw(st.sampled_from([f"{part:#x}", f"0{part:o}", str(part)])) for part in address.packed]
    for spelled in (str(number), hex(number), f"0{number:o}", ".".join(parts)):
        assert spelled == str(address) or not is_web_address(f"http://{spelled}/")
