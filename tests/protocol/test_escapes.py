"""Marks are for the names and texts that the client gets, in which hidden characters are escapes already."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podbot.protocol.acp import AcpChannel
from podbot.protocol.app_server import CodexChannel
from tests.protocol.asking import FRAME, MOUNT, UPDATE, asked, marked
from tests.protocol.drive import Outcome, from_agent

ETC = "[podbot: outside the workspace: /etc]"
OBJECT, TEXT = '{"x\\u0000":1}', '"\\u202e"'  # titles
APPROVAL = '{"id":7,"method":"execCommandApproval","params":{%s}}\n'


def approved(inside: str, *before: str) -> Outcome:
    stream = "".join(before) + APPROVAL % inside
    return from_agent(stream.encode(), channel=CodexChannel(mount=MOUNT))


def approved_as(inside: str, expected: str) -> None:
    """The parameters come out as ``expected``, and unchanged a second time."""
    assert approved(inside).to_client.decode() == APPROVAL % expected
    assert (approved(expected).to_client.decode(), approved(expected).said) == (APPROVAL % expected, [])


@pytest.mark.parametrize("title", ['{"x\\u0000":1}', '["\u202e"]', '{"\\u200b":["\\u001b"],"y":"\u200b"}', "1"])
def test_a_marker_in_the_place_of_a_title_that_is_no_text_leaves_valid_json(title: str) -> None:
    marked(f'"toolCall":{{"title":{title}}},"path":"/etc"', f'"toolCall":{{"title":"{ETC}"}},"path":"/etc"')
    marked(f'"title":{title},"path":"/etc"', f'"title":"{ETC}","path":"/etc"')


@pytest.mark.parametrize("reason", ['{"x\\u0000":1}', '["\u202e"]', "1"])
def test_a_marker_in_the_place_of_a_reason_that_is_no_text_leaves_valid_json(reason: str) -> None:
    approved_as(f'"reason":{reason},"cwd":"/etc"', f'"reason":"{ETC}","cwd":"/etc"')


@pytest.mark.parametrize(("hidden", "seen"), [("\\u0000", "\\\\u0000"), ("\u200b", "\\\\u200b")])
def test_a_marker_is_where_the_client_looks_and_not_in_a_member_whose_name_becomes_another(
    hidden: str, seen: str
) -> None:
    marked(
        f'"toolCall":{{"title{hidden}":"Read","path":"/etc"}}',
        f'"toolCall":{{"title":"{ETC}","title{seen}":"Read","path":"/etc"}}',
    )
    marked(
        f'"toolCall{hidden}":{{"title":"Read","path":"/etc"}}',
        f'"toolCall{seen}":{{"title":"Read","path":"/etc"}},"title":"{ETC}"',
    )
    marked(
        f'"options":[{{"name":"Allow once","kind{hidden}":"allow_once"}}]',
        f'"options":[{{"name":"[podbot: unknown kind] Allow once","kind{seen}":"allow_once"}}]',
    )
    approved_as(f'"reason{hidden}":"x","cwd":"/etc"', f'"reason":"{ETC}","reason{seen}":"x","cwd":"/etc"')


def test_a_marker_names_the_paths_that_the_client_gets() -> None:
    marked(
        '"toolCall":{"title":"x"},"path":["a\\u0000","/etc"]',
        f'"toolCall":{{"title":"{ETC} x"}},"path":["a\\\\u0000","/etc"]',
    )
    approved_as('"reason":"x","cwd":["a\\u0000","/etc"]', f'"reason":"{ETC} x","cwd":["a\\\\u0000","/etc"]')


def test_what_is_outside_only_without_its_escapes_is_marked_when_nothing_else_is() -> None:
    marked('"toolCall":{"title":"x","path":"\ufeff/etc"}', f'"toolCall":{{"title":"{ETC} x","path":"\\\\ufeff/etc"}}')
    marked('"toolCall":{"title":"\u202e","path":"a"}', '"toolCall":{"title":"\\\\u202e","path":"a"}')
    approved_as('"reason":"x","cwd":"\ufeff/etc"', f'"reason":"{ETC} x","cwd":"\\\\ufeff/etc"')
    other = "[podbot: the description is of another command than the one that runs]"
    said = '"command":"ls","parsedCmd":[{"cmd":"rm"}],"cwd":"%s/etc"'
    approved_as('"reason":"x",' + said % "\ufeff", f'"reason":"{other} {ETC} x",' + said % "\\\\ufeff")


@pytest.mark.parametrize("ident", ["t\\u200b", "t\\u0000", "\u202e" * 300, "\\ud800" * 300, "\\ud800\U000e0041"])
def test_a_call_is_known_by_its_id_whether_its_characters_are_hidden_or_shown(ident: str) -> None:
    update = UPDATE % f'{{"sessionUpdate":"tool_call_update","toolCallId":"{ident}","locations":[{{"path":"/etc"}}]}}'
    question = FRAME % f'"toolCall":{{"toolCallId":"{ident}","title":"x"}}'
    result = from_agent((update + question).encode(), channel=AcpChannel(mount=MOUNT))
    assert last(result)["toolCall"]["title"] == f"{ETC} x"
    again = from_agent(result.to_client, channel=AcpChannel(mount=MOUNT))
    assert (again.to_client, again.said) == (result.to_client, [])
    item = f'{{"method":"item/started","params":{{"item":{{"id":"{ident}","changes":[{{"path":"/etc"}}]}}}}}}\n'
    assert last(approved(f'"reason":"x","callId":"{ident}"', item))["reason"] == f"{ETC} x"


def last(result: Outcome) -> Any:
    return json.loads(result.to_client.splitlines()[-1])["params"]


def test_a_question_in_a_batch_is_marked_in_its_own_place() -> None:
    one = '{"id":%d,"method":"session/request_permission","params":{"toolCall":{"title":%s},"path":"/etc"}}'
    batch = f"[{one % (1, OBJECT)},{one % (2, TEXT)}]\n"
    shown = batch.replace(OBJECT, f'"{ETC}"').replace(TEXT, f'"{ETC} \\\\u202e"')
    result = from_agent(batch.encode(), channel=AcpChannel(mount=MOUNT))
    assert (result.to_client.decode(), result.reasons) == (shown, ["marked_question"] * 2)


def test_an_elicitation_is_checked_as_the_agent_spelled_it() -> None:
    frame = '{"id":1,"method":"elicitation/create","params":{"mode\\u0000":"other"}}\n'
    assert from_agent(frame.encode()).reasons == ["denied_address"]
    assert asked('"mode\\u0000":"other"').reasons == ["marked_question"]
