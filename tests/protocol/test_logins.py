"""agent -> client: login commands for the client's machine are taken out of answers."""

from __future__ import annotations

import pytest

from podbot.protocol.acp import AcpChannel
from tests.protocol.drive import from_agent
from tests.protocol.golden import LOGINS, LOGINS_REMOVED


def test_login_commands_are_taken_out() -> None:
    result = from_agent(LOGINS)
    assert result.to_client == LOGINS_REMOVED
    assert [(said.reason, said.id, said.size) for said in result.said] == [("removed_login", "0", len(LOGINS))]
    assert result.counts == (0, 0, 1, len(LOGINS_REMOVED), 0, 1)
    assert from_agent(LOGINS_REMOVED).said == []
    assert from_agent(LOGINS, channel=AcpChannel(delegation="terminal")).to_client == LOGINS
    assert from_agent(LOGINS, channel=AcpChannel(delegation="fs")).to_client == LOGINS_REMOVED


def offered(text: str) -> str:
    """What is left of one offer, or of the whole list when it stands in ``<>``."""
    holder = text[1:-1] if text.startswith("<") else f'"authMethods":[{text}]'
    frame = f'{{"id":1,"result":{{{holder}}}}}\n'.encode()
    left = from_agent(frame)
    error = from_agent(f'{{"id":1,"error":{{"code":-32000,"data":{{{holder}}}}}}}\n'.encode())
    batch = from_agent(b"[" + frame[:-1] + b"]\n")
    if not left.to_client:
        assert (error.to_client, batch.to_client) == (b"", b"")
        return left.reasons[0]
    inner = left.to_client.removeprefix(b'{"id":1,"result":{').removesuffix(b"}}\n").decode()
    assert error.to_client == f'{{"id":1,"error":{{"code":-32000,"data":{{{inner}}}}}}}\n'.encode()
    assert batch.to_client == b"[" + left.to_client[:-1] + b"]\n"
    assert bool(left.said) == (left.to_client != frame)
    return inner if text.startswith("<") else inner.removeprefix('"authMethods":[').removesuffix("]")


@pytest.mark.parametrize(
    ("offer", "left"),
    [
        ('{"type":"agent"}', '{"type":"agent"}'),
        ('{"type":null}', ""),
        ('{"type":5}', '{"type":5}'),
        ('{"type":"Terminal"}', ""),
        ('{"Type":"terminal"}', ""),
        ('{"type":"agent","type":"terminal"}', ""),
        ('{"typ\\u0065":"termin\\u0061l"}', ""),
        ('{"id":"x"},{"type":"terminal"},{"id":"y"}', '{"id":"x"},{"id":"y"}'),
        ('"text"', ""),
        ('[{"type":"terminal"}]', ""),
        ('{"_meta":{"terminal-auth":{}}}', '{"_meta":{}}'),
        ('{"_meta":{"terminal_auth":{},"b":1}}', '{"_meta":{"b":1}}'),
        ('{"_meta":{"b":1,"Terminal-Auth":{}}}', '{"_meta":{"b":1}}'),
        ('{"field_meta":{"terminal-auth":{}}}', '{"field_meta":{}}'),
        ('{"_meta":{"terminal-auth":1,"terminal-auth":2}}', ""),
        ('{"_meta":{},"_meta":{"terminal-auth":2}}', ""),
        ('{"_meta":null}', '{"_meta":null}'),
        ('{"id":"x","__proto__":{"type":"terminal"}}', ""),
        ('<"authMethods":null>', '"authMethods":null'),
        ('<"authMethods":{"0":{"type":"terminal"}},"b":1>', '"b":1'),
        ('<"b":1,"auth_methods":[{"type":"terminal"}]>', '"b":1,"auth_methods":[]'),
        ('<"authMethods":[],"AuthMethods":[{"type":"terminal"}]>', "duplicate_key"),
        ('<"_meta":{"terminal-auth":{"command":"sh"}},"authMethods":[]>', '"_meta":{},"authMethods":[]'),
    ],
)
def test_offers(offer: str, left: str) -> None:
    assert offered(offer) == left


@pytest.mark.parametrize(
    "frame",
    [
        b'{"id":1,"result":[1]}\n',
        b'{"id":1,"result":"x"}\n',
        b'{"id":1,"error":null}\n',
        b'{"id":1,"error":{"data":"x"}}\n',
        b'{"id":1,"error":{}}\n',
        b'{"method":"x","params":{"authMethods":[{"type":"terminal"}]}}\n',
    ],
)
def test_answers_without_offers(frame: bytes) -> None:
    assert from_agent(frame).to_client == frame


def test_an_error_that_says_one_thing_twice() -> None:
    result = from_agent(b'{"id":1,"error":{"data":{},"data":{"authMethods":[{"type":"terminal"}]}}}\n')
    assert (result.to_client, result.reasons) == (b"", ["duplicate_key"])


def test_a_type_that_ends_at_nul_however_long_it_is() -> None:
    for tail in ("", "x" * 100):
        assert offered(f'{{"type":"terminal\\u0000{tail}"}}') == ""


def test_an_offer_with_a_name_of_no_sane_length_is_dropped() -> None:
    assert offered('{"typ' + "_" * 5000 + 'e":"terminal"},{"id":"a"}') == '{"id":"a"}'
