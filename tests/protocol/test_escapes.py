"""Marks are for the names and texts that the client gets, in which hidden characters are escapes already."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podbot.protocol.acp import AcpChannel
from podbot.protocol.app_server import CodexChannel
from podbot.protocol.earlier import LONGEST, MOST_CALLS, MOST_PATHS, Call, EarlierCalls, first_of
from tests.protocol.asking import FRAME, MOUNT, UPDATE, asked, marked
from tests.protocol.drive import Outcome, from_agent

ETC = "[podbot: outside the workspace: /etc]"
ALSO = "[podbot: outside the workspace: "
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
        f'"toolCall":{{"title":"{ETC} {ALSO}a\\\\u0000] x"}},"path":["a\\\\u0000","/etc"]',
    )
    approved_as(
        '"reason":"x","cwd":["a\\u0000","/etc"]', f'"reason":"{ETC} {ALSO}a\\\\u0000] x","cwd":["a\\\\u0000","/etc"]'
    )


def test_what_is_outside_only_without_its_escapes_is_marked_also() -> None:
    marked('"toolCall":{"title":"x","path":"\ufeff/etc"}', f'"toolCall":{{"title":"{ETC} x","path":"\\\\ufeff/etc"}}')
    marked('"toolCall":{"title":"\u202e","path":"a"}', '"toolCall":{"title":"\\\\u202e","path":"a"}')
    approved_as('"reason":"x","cwd":"\ufeff/etc"', f'"reason":"{ETC} x","cwd":"\\\\ufeff/etc"')
    other = "[podbot: the description is of another command than the one that runs]"
    said = '"command":"ls","parsedCmd":[{"cmd":"rm"}],"cwd":"%s/etc"'
    approved_as('"reason":"x",' + said % "\ufeff", f'"reason":"{other} {ETC} x",' + said % "\\\\ufeff")


@pytest.mark.parametrize(("hidden", "seen"), [("\ufeff", "\\\\ufeff"), ("\\u0000", "\\\\u0000")])
def test_no_harmless_path_conceals_one_that_its_escape_would_bring_inside(hidden: str, seen: str) -> None:
    two = '"locations":[{"path":"/tmp/a"},{"path":"%s/etc/shadow"}]'
    both = f"{ALSO}/tmp/a] {ALSO}/etc/shadow]"
    call = '"toolCall":{"title":"%sx",%s}'
    marked(call % ("", two % hidden), call % (f"{both} ", two % seen))
    approved_as(
        f'"reason":"x","cwd":["/tmp/a","{hidden}/etc/shadow"]',
        f'"reason":"{both} x","cwd":["/tmp/a","{seen}/etc/shadow"]',
    )
    item = '{"method":"item/started","params":{"item":{"id":"i","changes":[{"path":"/tmp/a"}]}}}\n'
    reason = last(approved(f'"reason":"x","itemId":"i","cwd":"{hidden}/etc/shadow"', item))["reason"]
    assert reason == f"{both} x"


def test_no_contradiction_conceals_one_that_its_escape_would_resolve() -> None:
    words = '"command":["ls","%s"],"parsedCmd":[{"cmd":"ls"}],"proposedExecpolicyAmendment":["ls","\\\\u202e"]'
    other = "[podbot: the description is of another command than the one that runs]"
    lasting = "[podbot: the lasting permission is for another command: ls \\\\u202e]"
    approved_as('"reason":"x",' + words % "\u202e", f'"reason":"{other} {lasting} x",' + words % "\\\\u202e")


def test_a_path_is_named_once_however_it_is_spelled() -> None:
    """In the agent's spelling of the question, in the escaped one, and in an earlier update that had no escapes."""
    update = UPDATE % '{"sessionUpdate":"tool_call_update","toolCallId":"t","locations":[{"path":"/etc/\u202e"}]}'
    found = asked_in_turn(update, FRAME % '"toolCall":{"toolCallId":"t","title":"x","path":"/etc/\u202e"}')
    assert found == [f"{ALSO}/etc/\\u202e] x"]


def test_a_path_that_only_the_agents_spelling_names_is_remembered_for_the_call() -> None:
    question = FRAME % '"toolCall":{"toolCallId":"t","title":"x"%s}'
    shadow, own = ',"path":"\ufeff/etc/shadow"', ',"path":"/tmp/a"'
    assert asked_in_turn(question % shadow, question % "") == [f"{ALSO}/etc/shadow] x"] * 2
    assert asked_in_turn(question % shadow, question % own)[1] == f"{ALSO}/tmp/a] {ALSO}/etc/shadow] x"
    many = "".join(f',"path":"/tmp/{number}"' for number in range(20))
    assert asked_in_turn(question % many, question % shadow, question % "")[2].endswith(f"{ALSO}/etc/shadow] x")


def test_a_call_whose_id_only_the_agents_spelling_has_is_marked_and_remembered() -> None:
    named = '"toolCall":{"toolCallId%s":"t","title":"x"%s}'
    update = UPDATE % '{"sessionUpdate":"tool_call_update","toolCallId":"t","locations":[{"path":"/etc"}]}'
    sly = FRAME % named % ("\\u0000", "")
    assert asked_in_turn(update, sly) == [f"{ETC} x"]
    assert asked_in_turn(sly) == ["x"]
    plain = FRAME % named % ("", "")
    assert asked_in_turn(FRAME % named % ("\\u0000", ',"path":"/etc"'), plain) == [f"{ETC} x"] * 2


def test_a_forgotten_path_of_the_agents_spelling_makes_an_unknown_call_doubtful() -> None:
    numbers = range(MOST_CALLS + 1)
    question = FRAME % '"toolCall":{"toolCallId":"%s","title":"x"%s}'
    first = [question % (number, ',"path":"\ufeff/etc"') for number in numbers]
    doubtful = "[podbot: perhaps outside the workspace: the call's update was too long ago]"
    last_question = question % ("new", "")
    assert asked_in_turn(*first, last_question)[-1] == f"{doubtful} x"
    sly = last_question.replace("Id", "Id\\u0000")
    assert asked_in_turn(*first, sly)[-1] == f"{doubtful} x"
    assert asked_in_turn(*first, sly.replace('"x"', '"x","path":"/etc"'))[-1] == f"{ETC} x"


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


def test_a_question_of_many_calls_notes_few_of_its_many_paths_for_each() -> None:
    """20,000 calls and as many paths took half a minute."""
    calls = ",".join(f'{{"toolCallId":"{number}"}}' for number in range(2_000))
    sly = ",".join(f'{{"toolCallId\\u0000":"x{number}"}}' for number in range(500))
    paths = ",".join(['"/etc"'] * 2_000 + ['"\ufeff/tmp"'] * 100)
    title = asked(f'"toolCall":{{"title":"x"}},"more":[{calls},{sly}],"path":[{paths}]').to_client
    assert f"{ETC} {ALSO}/tmp] x".encode() in title
    assert first_of(["/etc"] * 20_000 + ["/tmp"]) == ["/etc", "/tmp"]
    assert len(first_of(map(str, range(100)))) == 2 * MOST_PATHS


def test_the_ids_of_one_call_bring_its_paths_once() -> None:
    """Only the beginning of an id is kept, so a question can name one call very many times."""
    earlier = EarlierCalls()
    earlier.note("x" * LONGEST, ["/etc"])
    ids = [f"{'x' * LONGEST}{number}" for number in range(1000)]
    assert earlier.each_of(ids) == [Call(("/etc",))]
    assert earlier.each_of(["new", *ids, "newer"]) == [Call(), Call(("/etc",))]


def asked_in_turn(*frames: str) -> list[str]:
    """The titles of the questions in ``frames``, after they were found to stay the same when filtered again."""
    result = from_agent("".join(frames).encode(), channel=AcpChannel(mount=MOUNT))
    again = from_agent(result.to_client, channel=AcpChannel(mount=MOUNT))
    assert (again.to_client, again.said) == (result.to_client, [])
    found = [json.loads(line)["params"] for line in result.to_client.splitlines()]
    return [params["toolCall"]["title"] for params in found if "toolCall" in params]


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
