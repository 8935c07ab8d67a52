"""An agent's questions to the user: marked where they could display something else than they say, otherwise
unchanged.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.acp import AcpChannel
from podbot.protocol.escapes import MOST_MARKS, visible
from podbot.protocol.permission_options import LONGEST, prefix_of
from tests.protocol.asking import FRAME, MOUNT, OPTIONS, UPDATE, asked, marked, option
from tests.protocol.drive import Outcome, from_agent

# --- characters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "shown"),
    [
        ("a\u202eb", "a\\\\u202eb"),
        ("a\\u202Eb", "a\\\\u202eb"),
        ("\\u001b[2J", "\\\\u001b[2J"),
        ("\\b\\f", "\\\\u0008\\\\u000c"),
        ("a\\rb", "a\\\\u000db"),
        ("a\\u000d\\nb", "a\\\\u000d\\nb"),
        ("\x7f\x9b", "\\\\u007f\\\\u009b"),
        ("\u200e\u200f\u061c\u2066\u2069", "\\\\u200e\\\\u200f\\\\u061c\\\\u2066\\\\u2069"),
        ("\u200b\u2060\ufeff\u00ad\u3164", "\\\\u200b\\\\u2060\\\\ufeff\\\\u00ad\\\\u3164"),
        ("\u2800\\u2800", "\\\\u2800\\\\u2800"),
        ("\u034f\u115f\u1160\uffa0", "\\\\u034f\\\\u115f\\\\u1160\\\\uffa0"),
        ("\u180b\ufe0e", "\\\\u180b\\\\ufe0e"),
        ("\U0001d159\\ud834\\udd59", "\\\\U0001d159\\\\U0001d159"),
        ("\u2028\u2029\x85", "\\\\u2028\\\\u2029\\\\u0085"),
        ("\U000e0041", "\\\\U000e0041"),
        ("\\udb40\\udc41", "\\\\U000e0041"),
        ("\\ud800x", "\\\\ud800x"),
        ("\\udc00\\ud83c\\udf0d", "\\\\udc00\\ud83c\\udf0d"),
        ("\\\\\\u202e", "\\\\\\\\u202e"),
        ("\\u0000", "\\\\u0000"),
    ],
)
def test_characters_that_hide_or_reorder_text_are_shown(spelled: str, shown: str) -> None:
    for place in ('"toolCall":{"title":"%s"}', '"toolCall":{"content":[{"x":["%s"]}]}', '"options":[],"%s":1'):
        marked(place % spelled, place % shown)


@pytest.mark.parametrize(
    "spelled",
    [
        "line\\nline\\r\\nline\\ttab",
        "\\\\u202e",
        "\\\\\\\\u202e",
        "\\\\r",
        "\\r\\n\\r\\n",
        "\\u000a\\u0009",
        "שלום مرحبا",
        'caf\\u00e9 \\u05e9 \\/ \\" ',
        "\U0001f469\u200d\U0001f4bb\ufe0f \\ud83c\\udf0d",
        "\u0645\u06cc\u200c\u062e\u0648",
    ],
)
def test_ordinary_text_keeps_its_bytes(spelled: str) -> None:
    marked(f'"toolCall":{{"title":"{spelled}"}},{OPTIONS}', f'"toolCall":{{"title":"{spelled}"}},{OPTIONS}')


def test_only_questions_are_checked() -> None:
    frame = b'{"method":"session/update","params":{"a":"\\u001b\xe2\x80\xae"}}\n{"id":1,"result":"\\u202e"}\n'
    assert from_agent(frame).to_client == frame


@pytest.mark.parametrize("params", ['["tool_call"]', '"tool_call"', '{"update":"tool_call"}', '{"x":"tool_call"}', "1"])
def test_an_update_of_unexpected_form_keeps_its_bytes(params: str) -> None:
    frame = f'{{"jsonrpc":"2.0","method":"session/update","params":{params}}}\n'.encode()
    result = from_agent(frame, channel=AcpChannel(mount=MOUNT))
    assert (result.to_client, result.said) == (frame, [])


@pytest.mark.parametrize("kind", ["tool_call", "tool_call_update", "tool\\u005fcall", "\\u0074ool_call"])
@pytest.mark.parametrize(("spelled", "shown"), [("\u202e", "\\\\u202e"), ("\\u001b", "\\\\u001b"), ("a", "a")])
def test_a_tool_calls_title_is_marked_in_the_earlier_update(kind: str, spelled: str, shown: str) -> None:
    form = UPDATE % f'{{"sessionUpdate":"{kind}","toolCallId":"t","title":"%s","content":[{{"text":"\u202e\\u001b"}}]}}'
    other = UPDATE % '{"sessionUpdate":"agent_message_chunk","content":{"text":"\u202e"}}'
    result = from_agent((other + form % spelled + other).encode())
    assert result.to_client.decode() == other + form % shown + other
    assert result.reasons == ([] if spelled == shown else ["marked_question"])


@pytest.mark.parametrize("update", ["null", "[]", "{}", '{"title":null}', '{"title":["x"]}', '{"x":"\u202e"}'])
def test_an_update_without_a_title_keeps_its_bytes(update: str) -> None:
    for frame in (
        UPDATE % update,
        f'{{"method":"session/update","params":{update}}}\n',
        '{"method":"session/update"}\n',
    ):
        closely = frame.replace("session/update", "session/upd\\u0061te").replace('"x"', '"tool_call"')
        assert from_agent(closely.encode()).to_client.decode() == closely


def test_a_tool_call_with_two_titles_is_refused() -> None:
    frame = UPDATE % '{"sessionUpdate":"tool_call","title":"a","Title":"b"}'
    result = from_agent(frame.encode())
    assert (result.to_client, result.reasons) == (b"", ["duplicate_key"])


def test_an_elicitations_text_is_marked_as_well() -> None:
    frame = b'{"id":1,"method":"elicitation/create","params":{"mode":"form","message":"\\u202e"}}\n'
    assert from_agent(frame).to_client == frame.replace(b"\\u202e", b"\\\\u202e")


@pytest.mark.parametrize("spelled", ["\u202e", "\\u202e", "\\b"])
def test_too_many_such_characters_are_refused_and_answered(spelled: str) -> None:
    fine = asked(f'"toolCall":{{"title":"{spelled * MOST_MARKS}"}}')
    assert fine.reasons == ["marked_question"]
    result = asked(f'"toolCall":{{"title":"{spelled * (MOST_MARKS + 1)}"}}')
    assert (result.to_client, result.reasons) == (b"", ["too_many_marks"])
    assert json.loads(result.to_agent)["error"]["code"] == -32001


@given(st.text(st.characters(codec="utf-8")), st.booleans())
def test_the_displayed_text_contains_escapes(text: str, ascii_only: bool) -> None:
    frame = FRAME % f'"x":{json.dumps(text, ensure_ascii=ascii_only)}'
    shown = json.loads(from_agent(frame.encode()).to_client)["params"]["x"]
    assert shown == "\r\n".join(visible(part) for part in text.split("\r\n"))


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("allow_once", ("Yes", "Allow", "Allow once", "Yes, proceed", "Yes, just this once", "Yes, enter plan mode",
                        "Yes, manually approve edits", "Yes, implement this plan",
                        "Yes, grant these permissions for this turn")),
        ("allow_always", ("Yes, and don't ask again for git add * and git commit * commands", "Always allow",
                          "Yes, and don't ask again for commands that start with `git add -A`",
                          "Yes, and don't ask again for npm commands", "Allow for this session",
                          "Allow for this file in all future sessions", "Yes, and use auto mode",
                          "Yes, auto-accept edits",
                          "Yes, and bypass permissions", "Yes, and allow this host for this conversation",
                          "Yes, allow all edits in src/ during this session")),
        ("reject_once", ("No", "Reject", "Cancel", "Deny", "No, and tell Codex what to do differently",
                         "No, continue without running it", "No, keep planning", "Don't allow")),
        ("reject_always", ("No, and block this host in the future", "Always reject")),
        ("allow_always", ("Always Allow", "Allow always", "Allow for all future sessions", "Allow all edits, always",
                          "Allow all server tools for this session", "Yes, and don't ask again",
                          "Yes, and do not ask me again for this command")),
        ("allow_once", ("Allow this command", "Accept only this edit", "OK", "Yes, allow once.")),
    ],
)  # fmt: skip
def test_options_of_todays_agents_keep_their_bytes(kind: str, names: tuple[str, ...]) -> None:
    """claude-agent-acp 0.100, codex-acp 2.6, gemini-cli 0.61, opencode 1.18."""
    for name in names:
        marked(option(name, kind), option(name, kind))


@pytest.mark.parametrize(
    ("kind", "name", "prefix"),
    [
        ("allow_always", "Reject", "allows always"),
        ("allow_always", "Allow", "allows always"),
        ("allow_always", "Allow once", "allows always"),
        ("allow_once", "No, cancel", "allows once"),
        ("allow_once", "Allow always", "allows once"),
        ("allow_once", "Allow me to cancel this", "allows once"),
        ("allow_always", "Yes, never ask", "allows always"),
        ("allow_once", "Continue", "allows once"),
        ("allow_once", "Erlauben", "allows once"),
        ("allow_once", "\u0410llow", "allows once"),
        ("allow_once", "Allow\\nor not", "allows once"),
        ("allow_once", "", "allows once"),
        ("allow_once", "[podbot: rejects once] Allow", "allows once"),
        ("reject_once", "Allow", "rejects once"),
        ("reject_always", "Yes", "rejects always"),
        ("reject_once", "Later", "rejects once"),
        ("allow_always", "Allow once, ask me again next time", "allows always"),
        ("allow_always", "Allow this one time in this session", "allows always"),
        ("allow_always", "Yes (in the future: once only)", "allows always"),
        ("allow_always", "Yes, always ask again", "allows always"),
        ("allow_once", "OK, dismiss", "allows once"),
        ("allow_once", "OK, close this dialog", "allows once"),
        ("allow_once", "Yes, forbid it", "allows once"),
        ("allow_once", "Accept rejection", "allows once"),
        ("allow_once", "Approve refusal", "allows once"),
        ("allow_once", "Allow none of it", "allows once"),
        ("allow_once", "Allow 0 files", "allows once"),
        ("allow_once", "Proceed to denied list", "allows once"),
        ("allow_once", "Allow forever", "allows once"),
        ("allow_once", "Allow  once", "allows once"),
        ("allow_once", "O\u212a", "allows once"),
        ("allow_once", "Only this time", "allows once"),
        ("reject_once", "No objection", "rejects once"),
        ("reject_once", "Cancel reject", "rejects once"),
        ("reject_once", "Always reject", "rejects once"),
        ("reject_always", "Reject", "rejects always"),
    ],
)
def test_an_option_whose_name_contradicts_its_kind_is_marked(kind: str, name: str, prefix: str) -> None:
    marked(option(name, kind), option(f"[podbot: {prefix}] {name}", kind))


def test_a_long_name_of_an_option_is_not_read_word_by_word() -> None:
    """60 MiB of words took 2 GB."""
    name = "Allow" + " once" * 39
    assert len(name) == LONGEST
    marked(option(name), option(name))
    marked(option(f"{name} it"), option(f"[podbot: allows once] {name} it"))


@pytest.mark.parametrize("kind", ['"maybe"', "null", "7", "[]", '"Allow_once"'])
def test_an_option_of_an_unknown_kind(kind: str) -> None:
    form = '"options":[{"name":"%s","kind":' + kind + "}]"
    marked(form % "Allow", form % "[podbot: unknown kind] Allow")


def test_an_option_without_a_kind() -> None:
    marked('"options":[{"name":"Yes"}]', '"options":[{"name":"[podbot: unknown kind] Yes"}]')


@pytest.mark.parametrize("options", ["null", "{}", "[]", "[1,null]", '[{"kind":"allow_once"}]', '[{"name":5}]'])
def test_an_invalid_option_is_left_to_the_client(options: str) -> None:
    marked(f'"options":{options}', f'"options":{options}')


@pytest.mark.parametrize(
    "inside",
    [
        '"options":[],"Options":[{"name":"Yes","kind":"allow_always"}]',
        '"options":[{"name":"No","kind":"allow_always","kind":"reject_once"}]',
        '"options":[{"name":"No","NAME":"Yes","kind":"reject_once"}]',
        '"toolCall":{"path":"/etc","title":"a","title":"b"}',
        '"toolCall":{},"tool_call":{"path":"/etc"}',
        '"__proto__":{"options":[]}',
    ],
)
def test_a_duplicate_member_is_refused_and_answered(inside: str) -> None:
    result = asked(inside)
    assert result.to_client == b""
    assert result.reasons[0] in ("duplicate_key", "ambiguous_key")
    assert json.loads(result.to_agent)["error"]["data"]["method"] == "session/request_permission"


TWO = "[podbot: two options have this id] "


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('"a"', '"a"'), ('"a"', '"\\u0061"'), ('"1"', "1"), ("7", "7"), ("null", "null"), ('{"a":[1]}', '{"a":[1]}'),
        ('""', '""'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["optionId", "option_id"])
def test_options_that_share_their_id_are_marked(first: str, second: str, key: str) -> None:
    form = (
        '"options":[{"optionId":%s,"name":"%sNo","kind":"reject_once"},{"optionId":"b","name":"Allow","kind":"allow_once"},'
        '{"%s":%s,"kind":"allow_always","name":"%s%sAllow"}]'
    )
    marked(form % (first, "", key, second, "", ""), form % (first, TWO, key, second, TWO, "[podbot: allows always] "))


@pytest.mark.parametrize(
    "options",
    [
        '{"name":"No","kind":"reject_once"},{"name":"Yes","kind":"allow_once"}',
        '{"optionId":"a","name":"No","kind":"reject_once"},{"optionId":"A","name":"Yes","kind":"allow_once"}',
        '{"optionId":"","name":"No","kind":"reject_once"},{"name":"Yes","kind":"allow_once"}',
        '{"optionId":"a","name":5},{"optionId":"b","name":"Yes","kind":"allow_once"},7',
    ],
)
def test_options_with_their_own_ids_keep_their_bytes(options: str) -> None:
    marked(f'"options":[{options}]', f'"options":[{options}]')


def test_an_option_without_a_name_shares_its_id_as_well() -> None:
    form = '"options":[{"optionId":"a","kind":"allow_always"},{"optionId":"a","name":"%sNo","kind":"reject_once"}]'
    marked(form % "", form % TWO)


@given(st.text(max_size=30), st.sampled_from(["allow_once", "allow_always", "reject_once", "reject_always", "x", None]))
def test_a_prefix_states_the_effect_of_the_kind(name: str, kind: str | None) -> None:
    prefix = prefix_of(name, kind)
    assert prefix == "" or prefix.startswith("[podbot: ")
    assert prefix_of(prefix + name, kind).strip() in (prefix.strip(), "[podbot: unknown kind]")
    shared = prefix_of(name, kind, shared=True)
    assert shared.startswith(TWO)
    assert prefix_of(shared + name, kind, shared=True) == shared or name.startswith(TWO)
    assert prefix or any(word in name.lower() for word in ("yes", "allow", "accept", "approve", "ok", "permit",
        "proceed", "no", "reject", "deny", "cancel", "decline", "refuse"))  # fmt: skip


# --- addresses -----------------------------------------------------------------------------------


def elicited(**params: object) -> Outcome:
    return from_agent(json.dumps({"id": 1, "method": "elicitation/create", "params": params}).encode() + b"\n")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org", "http://example.org/", "HTTPS://Example.org:8443/a?b=c#d", "http://10.0.0.7:1455/cb",
        "https://[2001:db8::1]/x", "https://example.org?x=%20", "https://example.org/?redirect_uri=http://127.0.0.1:1455/",
    ],
)  # fmt: skip
def test_plain_web_addresses_pass(url: str) -> None:
    assert elicited(mode="url", elicitationId="e", url=url, message="m").to_client


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "FILE:///etc/passwd", "javascript:alert(1)", "vscode://x/y", "zed://x", "ftp://x/", "",
        "/etc",         "https:/example.org", "https://", "https://user@example.org/", "https://example.org@evil.example/",
        "https://example.org\\@evil.example", "https://example.org /", " https://example.org", "https://example.org\n",
        "https://\u212a.org/", "http\u017f://example.org/",
        "https://ex\u0430mple.org/", "https://example.org/\u202e", "https://example.org/\u00e9", "data:text/html,x", 7,
        None,         ["https://example.org"], {"a": 1}, True,
        "http://127.0.0.1:1455/cb", "http://localhost/", "http://169.254.169.254/latest/meta-data", "http://[::1]:631/",
        "http://2130706433/", "http://0x7f.1/", "http://0.0.0.0:8080/",
    ],
)  # fmt: skip
def test_other_addresses_are_refused_and_answered(url: object) -> None:
    for params in (
        {"mode": "url", "url": url},
        {"url": url},
        {"mode": "form", "url": url},
        {"mode": "url", "URL": url},
    ):
        result = elicited(**params)
        assert (result.to_client, result.reasons) == (b"", ["denied_address"])
        assert "web address" in json.loads(result.to_agent)["error"]["message"]


@pytest.mark.parametrize("mode", ["file", "URL", "", None, 1, ["form"]])
def test_unknown_modes_of_asking_are_refused(mode: object) -> None:
    assert elicited(mode=mode, message="m").reasons == ["denied_address"]


def test_a_form_passes_with_its_bytes() -> None:
    frame = b'{"id":1,"method":"elicitation/create","params":{"mode":"form","requestedSchema":{"url":"file:///x"}}}\n'
    assert from_agent(frame).to_client == frame
    two = b'{"id":1,"method":"elicitation/create","params":{"url":"https://a.b","url":"file:///x"}}\n'
    assert from_agent(two).reasons == ["duplicate_key"]
