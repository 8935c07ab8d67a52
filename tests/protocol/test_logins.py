"""agent -> client: login commands for the client's machine are removed from answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.agents import registry
from podbot.config.models import Delegation
from podbot.protocol.acp import AcpChannel
from podbot.protocol.logins import Logins
from tests.protocol.drive import Outcome, from_agent
from tests.protocol.golden import LOGINS, LOGINS_REMOVED


def test_login_commands_are_removed() -> None:
    result = from_agent(LOGINS)
    assert result.to_client == LOGINS_REMOVED
    assert [(said.reason, said.id, said.size) for said in result.said] == [("removed_login", "0", len(LOGINS))]
    assert result.counts == (0, 0, 1, len(LOGINS_REMOVED), 0, 1)
    assert from_agent(LOGINS_REMOVED).said == []
    assert from_agent(LOGINS, channel=AcpChannel(delegation="terminal")).to_client == LOGINS
    assert from_agent(LOGINS, channel=AcpChannel(delegation="fs")).to_client == LOGINS_REMOVED


def offered(text: str) -> str:
    """The remaining parts of one offer, or of the whole list when it is in ``<>``."""
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
        ('{"_meta":{"type":"terminal"}}', ""),
        ('{"type":"agent","_meta":{"Type":"TERMINAL"}}', ""),
        ('{"id":"x","field_meta":{"type":"terminal"}}', ""),
        ('{"_meta":{"a":1},"field_meta":{"type":"terminal","type":"x"}}', ""),
        ('{"_meta":{"type":null}}', ""),
        ('{"_meta":{"type":"agent","b":1}}', '{"_meta":{"type":"agent","b":1}}'),
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
        b'{"method":"session/update","params":{"authMethods":[{"type":"terminal"}]}}\n',
    ],
)
def test_answers_without_offers(frame: bytes) -> None:
    assert from_agent(frame).to_client == frame


def test_an_error_with_a_duplicate_member() -> None:
    result = from_agent(b'{"id":1,"error":{"data":{},"data":{"authMethods":[{"type":"terminal"}]}}}\n')
    assert (result.to_client, result.reasons) == (b"", ["duplicate_key"])


def test_a_type_that_ends_at_nul_however_long_it_is() -> None:
    for tail in ("", "x" * 100):
        assert offered(f'{{"type":"terminal\\u0000{tail}"}}') == ""


def test_an_offer_with_an_excessively_long_name_is_dropped() -> None:
    assert offered('{"typ' + "_" * 5000 + 'e":"terminal"},{"id":"a"}') == '{"id":"a"}'


# --- issue 10.17: logins that cannot finish inside ---

KNOWN = Logins(frozenset({"api-key"}), 'run "it" on the host')


def known(frame: bytes, delegation: str = "none", logins: Logins = KNOWN) -> Outcome:
    return from_agent(frame, channel=AcpChannel(delegation=delegation, logins=logins))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offers", "left"),
    [
        ('{"id":"api-key","name":"API Key"},{"id":"chat-gpt"}', '{"id":"api-key","name":"API Key"}'),
        ('{"id":"chat-gpt"}', ""),
        ('{"methodId":"api-key","type":"agent"},{"methodId":"chat-gpt"}', '{"methodId":"api-key","type":"agent"}'),
        ('{"id":"api-key","methodId":"chat-gpt"}', ""),  # a reader of either version would take its own
        ('{"id":"api-key","Id":"chat-gpt"}', ""),
        ('{"id":["api-key"]},{"id":null},{"id":{}},{}', ""),
        ('{"id":"api\\u002dkey"}', '{"id":"api\\u002dkey"}'),
        ('{"id":"api-key","type":"terminal"}', ""),
        ('{"id":"x","_meta":{"terminal-auth":{}}}', ""),
        ('{"id":"api-key","_meta":{"terminal-auth":{}}}', '{"id":"api-key","_meta":{}}'),
    ],
)
def test_a_known_agents_offers(offers: str, left: str) -> None:
    sent = known(f'{{"id":0,"result":{{"authMethods":[{offers}]}}}}\n'.encode())
    assert sent.to_client == f'{{"id":0,"result":{{"authMethods":[{left}]}}}}\n'.encode()
    assert sent.reasons == ["removed_login"] * (offers != left)


@pytest.mark.parametrize("delegation", ["terminal", "all"])
def test_delegated_login_commands_stay_but_logins_that_cannot_finish_are_removed(delegation: str) -> None:
    stay = '{"id":"x","type":"terminal"},{"id":"y","_meta":{"terminal-auth":{}}},{"id":"api-key"}'
    stay += ',{"id":"z","_meta":{"type":"terminal"}}'
    frame = f'{{"id":0,"result":{{"_meta":{{"terminal-auth":1}},"authMethods":[{stay},{{"id":"chat-gpt"}}]}}}}\n'
    assert known(frame.encode(), delegation).to_client == frame.replace(',{"id":"chat-gpt"}', "").encode()
    assert known(frame.encode(), delegation, Logins()).to_client == frame.encode()


def test_every_known_agent_offers_only_logins_without_a_browser() -> None:
    logins = {kind: found.login for kind, found in registry.agents().items() if found.login is not None}
    assert tuple(logins) == registry.known()
    seen = {  # with their versions of November 2026
        "claude": ({"gateway", "gateway-bedrock"}, {"claude-ai-login", "claude-login", "console-login"}),
        "codex": ({"api-key", "chat-gpt-device-code", "gateway"}, {"chat-gpt"}),
        "gemini": ({"gemini-api-key", "vertex-ai", "gateway"}, {"oauth-personal"}),
        "opencode": (set[str](), {"opencode-login"}),
    }
    assert {kind: (set(logins[kind].methods), set(logins[kind].others)) for kind in seen} == seen
    for login in logins.values():
        names = [*login.methods, *login.others]
        frame = json.dumps({"id": 0, "result": {"authMethods": [{"id": name} for name in names]}}).encode()
        sent = known(frame + b"\n", logins=Logins(login.methods, login.advice))
        left = json.loads(sent.to_client)["result"]["authMethods"]
        assert [offer["id"] for offer in left] == list(login.methods)


def test_an_error_that_asks_for_a_login_says_what_to_do_on_the_host() -> None:
    frame = b'{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Authentication required"}}\n'
    sent = known(frame)
    answer = json.loads(sent.to_client)
    assert answer["error"]["message"] == (
        "Authentication required (podbot: the agent cannot log in from inside its sandbox;"
        ' run "it" on the host, then start it again)'
    )
    assert (
        sent.to_client.replace(answer["error"]["message"].encode(), b"") != sent.to_client
        or b'\\"it\\"' in sent.to_client
    )
    assert [(said.reason, said.id) for said in sent.said] == [("advised_login", "3")]
    assert sent.counts.rewritten == 1
    assert known(frame, logins=Logins()).to_client == frame


@pytest.mark.parametrize(
    "error",
    [
        '"code":-32001,"message":"x"',
        '"code":"-32000","message":"x"',
        '"code":-32000.0,"message":"x"',
        '"code":-32000',
        '"message":"x"',
        '"code":-32000,"message":null',
        '"code":-32000,"message":["x"]',
    ],
)
def test_other_errors_keep_their_bytes(error: str) -> None:
    frame = f'{{"id":1,"error":{{{error}}}}}\n'.encode()
    assert known(frame).to_client == frame
    assert known(frame).said == []


def test_an_error_may_need_advice_and_removal() -> None:
    data = '"data":{"authMethods":[{"id":"chat-gpt"},{"id":"api-key"}]}'
    sent = known(f'{{"id":1,"error":{{{data},"code":-32000,"message":""}}}}\n'.encode())
    error = json.loads(sent.to_client)["error"]
    assert error["data"]["authMethods"] == [{"id": "api-key"}]
    assert error["message"].startswith(" (podbot: ")
    assert sent.reasons == ["advised_login"]


@given(st.text(), st.booleans(), st.text())
def test_the_advice_is_added_to_any_message(message: str, ascii_only: bool, advice: str) -> None:
    frame = json.dumps({"id": 1, "error": {"code": -32000, "message": message}}, ensure_ascii=ascii_only)
    try:
        line = frame.encode() + b"\n"
    except UnicodeEncodeError:
        line = json.dumps(json.loads(frame)).encode() + b"\n"
    sent = known(line, logins=Logins(None, advice))
    text = json.loads(sent.to_client)["error"]["message"]
    assert text.startswith(message)
    assert (advice in text[len(message) :]) or text == message
    assert sent.to_client.count(b"\n") == 1


# --- pages that an error asks the user to open -----------------------------------------------------

REQUIRED = '{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m","data":{"a":1,"elicitations":%s}}}\n'
PAGE = '{"mode":"url","elicitationId":"e","url":"https://example.org/x?to=http://localhost:1/","message":"m"}'


@pytest.mark.parametrize(
    ("pages", "left"),
    [
        (f"[{PAGE}]", f"[{PAGE}]"),
        ("null", "null"),
        ("[]", "[]"),
        (f'[{PAGE}, {{"mode":"url","url":"file:///etc/passwd"}}]', f"[{PAGE}]"),
        (f'[{{"url":"http://127.0.0.1:631/"}},{PAGE},{{"URL":"vscode://x/y"}}]', f"[{PAGE}]"),
        ('[{"mode":"url"},7,["https://example.org"],{"url":["https://example.org"]}]', "[]"),
        ('{"url":"file:///etc/passwd"}', "null"),
        ('"file:///etc/passwd"', "null"),
    ],
)
@pytest.mark.parametrize("delegation", ["none", "terminal"])
def test_an_error_asks_for_web_pages_only(pages: str, left: str, delegation: Delegation) -> None:
    result = from_agent((REQUIRED % pages).encode(), channel=AcpChannel(delegation=delegation))
    assert result.to_client.decode() == REQUIRED % left
    assert result.reasons == ([] if pages == left else ["removed_address"])


@pytest.mark.parametrize("error", ['"x"', '{"data":"elicitations"}', '{"data":["elicitations"]}', "null"])
def test_an_error_of_another_form_keeps_its_bytes(error: str) -> None:
    frame = f'{{"id":1,"error":{error}}}\n'.encode()
    assert from_agent(frame).to_client == frame


def test_an_error_with_two_lists_of_pages_is_refused() -> None:
    twice = REQUIRED % f'[],"Elicitations":[{PAGE}]'
    assert from_agent(twice.encode()).reasons == ["duplicate_key"]


def test_pages_and_logins_in_one_error() -> None:
    both = REQUIRED % '[{"url":"zed://x"}],"authMethods":[{"type":"terminal","id":"t"}]'
    result = from_agent(both.encode())
    assert result.to_client.decode() == REQUIRED % '[],"authMethods":[]'
    assert result.reasons == ["removed_login"]
