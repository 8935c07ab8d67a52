"""Paths outside the workspace are named in the question whose tool call they are of."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.acp import AcpChannel
from podbot.protocol.path_map import LONGEST as LONGEST_PLACE
from podbot.protocol.path_map import PathScope
from podbot.protocol.questions import LONGEST_PATH
from tests.protocol.asking import FRAME, MOUNT, OPTIONS, UPDATE, asked, marked, option
from tests.protocol.drive import from_agent


def call(members: str, title: str = '"title":"%sRead"') -> tuple[str, str]:
    """A tool call, and the position of podbot's text."""
    form = '"toolCall":{' + title + "," + members + "}," + OPTIONS
    return form.replace("%s", ""), form


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ('"locations":[{"path":"/etc/passwd"}]', "/etc/passwd"),
        ('"content":[{"type":"diff","path":"/ws/../etc/x","newText":""}]', "/ws/../etc/x"),
        ('"rawInput":{"file_path":"/root/.ssh/id"}', "/root/.ssh/id"),
        ('"rawInput":{"a":[{"filePath":"/x"}],"cwd":"/y"}', "/x, /y"),
        ('"rawInput":{"path":"/ws/a","p\\u0061th":"/x"}', "/x"),
        ('"rawInput":{"path":["/ws/a","/x"]}', "/x"),
        ('"content":[{"uri":"file:///etc/x%20y"}]', "/etc/x y"),
        ('"content":[{"uri":"FILE:/etc/x"}]', "/etc/x"),
        ('"locations":[{"path":"../x"}]', "../x"),
        ('"locations":[{"path":"~/.bashrc"}]', "~/.bashrc"),
        (
            '"locations":[{"path":"/a"},{"path":"/b"},{"path":"/c"},{"path":"/d"},{"path":"/a"}]',
            "/a, /b, /c and 1 more",
        ),
        ('"locations":[{"path":"/home/me/shop/a"}]', "/home/me/shop/a"),
        ('"locations":[{"path":"/etc/://x"}]', "/etc/://x"),
        ('"content":[{"uri":"/etc/://x"}]', "/etc/://x"),
        ('"content":[{"uri":"file://localhost/etc/passwd"}]', "/etc/passwd"),
        ('"content":[{"uri":"FILE://LOCALHOST/etc"}]', "/etc"),
        ('"content":[{"uri":"\\tfile:///etc"}]', "/etc"),
        ('"content":[{"uri":"\u00a0fi\\nle:/\\t//etc"}]', "/etc"),
        ('"content":[{"path":" /etc"}]', "/etc"),
        ('"content":[{"uri":"file://other/ws/a"}]', "file://other/ws/a"),
        ('"content":[{"uri":"file:\\\\\\\\other\\\\ws"}]', "file:\\\\\\\\other\\\\ws"),
        ('"content":[{"uri":"file:etc/x"}]', "/etc/x"),
        ('"content":[{"uri":"file:///etc/x?/%2e%2e/../ws"}]', "file:///etc/x?/%2e%2e/../ws"),
        ('"content":[{"uri":"file:///etc/x#L1"}]', "/etc/x"),
        ('"rawInput":{"path":["/ws",{"k":1},"/etc/x"]}', "/etc/x"),
        ('"rawInput":{"path":["/ws",{"k":["/a"]},["/b"]]}', "/a, /b"),
        ('"rawInput":{"path":{"x":"/etc"}}', "/etc"),
        ('"rawInput":{"path":{"x":{"y":1},"z":"/etc"},"w":"/x"}', "/etc"),
        (
            '"rawInput":{"path":{"uri":"https://example.org","z":"https://example.org/../../../etc"}}',
            "https://example.org/../../../etc",
        ),
        # Members of tools, and of some that other things are called by as well.
        ('"rawInput":{"target_file":"/etc/x","relative_workspace_path":"../y"}', "/etc/x, ../y"),
        ('"rawInput":{"file_paths":["/ws/a","/x"],"dir_path":"~/y","paths":{"a":["/z"]}}', "/x, ~/y, /z"),
        ('"rawInput":{"source":"/etc/x","destination":"/ws/y"}', "/etc/x"),
        ('"rawInput":{"from":"a","to":"~/.bashrc"}', "~/.bashrc"),
        ('"rawInput":{"target":"../x","dest":"a/../../y","src":".."}', "../x, a/../../y, .."),
        ('"rawInput":{"file":"//etc/my notes","folder":"/"}', "//etc/my notes, /"),
        ('"rawInput":{"files":["/ws/a",["/b"],{"path":"/c","content":"/* d */"}],"root":"~me"}', "/b, /c, ~me"),
        ('"rawInput":{"file_name":"file:///etc/x","dir":"FILE:/y"}', "/etc/x, /y"),
        ('"rawInput":{"directory":" /x","glob":"/etc/**"}', "/x, /etc/**"),
        ('"rawInput":{"path":{"file":"no path","source":"/x","to":{"a":"/y"}}}', "/x, /y"),
        ('"rawInput":{"url":"file:///etc/x"}', "/etc/x"),
        # Addresses that an editor opens, or that act in it.
        ('"content":[{"uri":"vscode://file/etc/passwd"}]', "vscode://file/etc/passwd"),
        ('"content":[{"uri":"VSCode-Remote://ssh-remote+x/etc"}]', "VSCode-Remote://ssh-remote+x/etc"),
        ('"content":[{"uri":"zed://file/etc/passwd"}]', "zed://file/etc/passwd"),
        ('"content":[{"uri":"zed:///etc"}]', "zed:///etc"),
        ('"content":[{"uri":"cursor://file/ws/../etc"}]', "cursor://file/ws/../etc"),
        ('"content":[{"uri":"vscode://file%2Fetc%2Fpasswd"}]', "vscode://file%2Fetc%2Fpasswd"),
        ('"content":[{"uri":"vscode:/etc"}]', "vscode:/etc"),
        ('"content":[{"uri":"vs\\tcode:\\\\etc"}]', "vs\\\\tcode:\\\\etc"),
        ('"content":[{"uri":"idea://open?file=/etc/x&line=1"}]', "idea://open?file=/etc/x&line=1"),
        ('"content":[{"uri":"jetbrains://idea/ws?path=%2Fetc"}]', "jetbrains://idea/ws?path=%2Fetc"),
        ('"content":[{"uri":"x:open?url=file:///etc"}]', "x:open?url=file:///etc"),
        ('"content":[{"uri":"x:open?url=file://other/ws"}]', "x:open?url=file://other/ws"),
        ('"content":[{"uri":"view-source:file:///etc"}]', "view-source:file:///etc"),
        ('"content":[{"uri":"x:../y"}]', "x:../y"),
        ('"content":[{"uri":"command:workbench.action"}]', "command:workbench.action"),
        ('"content":[{"uri":"javascript:x"}],"rawInput":{"url":"vscode://a/b"}', "javascript:x, vscode://a/b"),
        ('"rawInput":{"path":"vscode://file/etc","target":"zed://file/x"}', "vscode://file/etc, zed://file/x"),
        ('"rawInput":{"path":"c:/x"}', "c:/x"),
    ],
)
def test_paths_outside_the_workspace_are_named_in_the_title(members: str, named: str) -> None:
    plain, form = call(members)
    expected = form.replace("%s", f"[podbot: outside the workspace: {named}] ")
    marked(plain, expected)


@pytest.mark.parametrize(
    "members",
    [
        '"locations":[{"path":"/ws/src/a.py","line":3},{"path":"/more/x"},{"path":"src/b"},{"path":""}]',
        '"content":[{"uri":"https://example.org/etc"},{"uri":"file:///ws/a"}]',
        '"content":[{"uri":"file://localhost/ws/a"},{"uri":"file:/ws/a%20b?x#L1-20"},{"uri":"file:///ws/a.py#L3"}]',
        '"rawInput":{"path":{"x":{"y":["/ws"]}},"other":"/etc","more":["/etc",{"a":"/etc"}]}',
        '"rawInput":{"command":["/bin/bash","-lc","cat /etc/passwd"],"path":5,"other":"/etc"}',
        '"rawInput":{"' + "p" * 5000 + '":"/etc"}',
        '"rawInput":{"target":"/ws/a","source":"src/b","from":"me","to":"you and ~5 others","file":"a/../b","dir":""}',
        '"rawInput":{"source":"// a comment","destination":"/* b */ c","src":"/a\\n/b","target":"file: the name"}',
        '"rawInput":{"source":"/* ' + "x" * 20000 + '","to":"/' + "x" * 20000 + '","files":{"a":"/etc","b":["/etc"]}}',
        '"rawInput":{"source":{"root":"main","text":"/etc"},"from":["now on"],"url":"/api/users","glob":"**/*.py"}',
        '"rawInput":{"url":"https://example.org/../../etc","source":"https://example.org/../..","to":"mailto:/a"}',
        '"content":[{"uri":"vscode://file/ws/a.py:3:1"},{"uri":"zed:///ws/a"},{"uri":"idea://open?file=/ws/a&line=1"}]',
        '"content":[{"uri":"mcp://server/resource"},{"uri":"memory://x/y"},{"uri":"data:image/png;base64,/9j/4AAQ"}]',
        '"content":[{"uri":"notes://1"},{"uri":"urn:isbn:1"},{"uri":"x:a/b?range=1..5"},{"uri":"x:?f=file:///ws/a"}]',
        '"rawInput":{"path":"https://example.org/a","cwd":"mcp://a/b","file":"node:fs"}',
    ],
)
def test_other_text_and_paths_inside_keep_their_bytes(members: str) -> None:
    plain, _ = call(members)
    marked(plain, plain)


def test_an_overlong_path_counts_as_outside() -> None:
    """60 MiB of names took 2 GB; no system call accepts such a long path."""
    path = "/ws" + "/a" * ((LONGEST_PLACE - 3) // 2)
    plain, form = call(f'"path":"{path}"')
    marked(plain, plain)
    plain, form = call(f'"path":"{path}/a"')
    marked(plain, form.replace("%s", f"[podbot: outside the workspace: {path[:LONGEST_PATH]}] "))


def test_a_question_of_many_names_costs_no_more_than_its_text() -> None:
    """Peak of what Python allocates, for each byte of the frame; it was 25 and more."""
    for inside in (
        f'"toolCall":{{"title":"x","path":"/ws{"/ab" * 700_000}"}}',
        f'"toolCall":{{"title":"x","uri":"file:///ws{"%41" * 700_000}"}}',
        option("Allow " + "ab " * 700_000),
    ):
        frame = (FRAME % inside).encode()
        channel = AcpChannel(mount=MOUNT)
        tracemalloc.start()
        try:
            channel.agent_data(frame)
            assert tracemalloc.get_traced_memory()[1] < 12 * len(frame)
        finally:
            tracemalloc.stop()


def test_without_a_mount_paths_are_not_checked() -> None:
    plain, _ = call('"locations":[{"path":"/etc"}]')
    marked(plain, plain, mount=None)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ('"toolCall":{"path":"/x"}', '"toolCall":{"title":"%s","path":"/x"}'),
        ('"toolCall":{"title":null,"path":"/x"}', '"toolCall":{"title":"%s","path":"/x"}'),
        ('"toolCall":{},"x":{"path":"/x"}', '"toolCall":{"title":"%s"},"x":{"path":"/x"}'),
        ('"title":"T","subject":{"cwd":"/x"}', '"title":"%s T","subject":{"cwd":"/x"}'),
        ('"title":"T","toolCall":{"path":"/x"}', '"title":"%s T","toolCall":{"title":"%s","path":"/x"}'),
        ('"toolCall":{"title":7,"path":"/x"}', '"toolCall":{"title":"%s","path":"/x"}'),
        (
            '"title":"T","subject":{"toolCall":{"path":"/x"}}',
            '"title":"%s T","subject":{"toolCall":{"title":"%s","path":"/x"}}',
        ),
        ('"toolCall":["/x"],"path":"/x"', '"toolCall":["/x"],"path":"/x","title":"%s"'),
        # Version 2: the title is the question's own, and its call is in the subject.
        (
            '"title":"T","subject":{"type":"command","cwd":"/x"}',
            '"title":"%s T","subject":{"type":"command","cwd":"/x"}',
        ),
        ('"subject":{"type":"command","cwd":"/x"}', '"subject":{"type":"command","cwd":"/x"},"title":"%s"'),
        ('"title":null,"subject":{"cwd":"/x"}', '"title":"%s","subject":{"cwd":"/x"}'),
        ('"title":["T"],"subject":{"cwd":"/x"} ', '"title":"%s","subject":{"cwd":"/x"} '),
        ('"Title":"T","subject":{"cwd":"/x"}', '"Title":"%s T","subject":{"cwd":"/x"}'),
        (
            '"subject":{"toolCall":{"title":"C","path":"/x"}}',
            '"subject":{"toolCall":{"title":"%s C","path":"/x"}},"title":"%s"',
        ),
        (
            '"title":"T","subject":{"type":"tool_call","toolCall":{"title":"C","locations":[{"path":"/x"}]}}',
            '"title":"%s T","subject":{"type":"tool_call","toolCall":{"title":"%s C","locations":[{"path":"/x"}]}}',
        ),
        (
            '"title":"T","subject":{"tool_call":{"title":"C","content":[{"changes":[{"oldPath":"/x"}]}]}}',
            '"title":"%s T","subject":{"tool_call":{"title":"%s C","content":[{"changes":[{"oldPath":"/x"}]}]}}',
        ),
        ('"subject":"/x","path":"/x"', '"subject":"/x","path":"/x","title":"%s"'),
        ('"subject":{"toolCall":"t"},"path":"/x"', '"subject":{"toolCall":"t"},"path":"/x","title":"%s"'),
        (
            '"toolCall":{"title":"C"},"subject":{"toolCall":{"title":"D","path":"/x"}}',
            '"toolCall":{"title":"%s C"},"subject":{"toolCall":{"title":"%s D","path":"/x"}}',
        ),
    ],
)
def test_the_position_of_the_text_without_a_plain_title(inside: str, expected: str) -> None:
    marked(inside, expected.replace("%s", "[podbot: outside the workspace: /x]"))


def test_podbots_text_contains_nothing_hidden_and_is_limited() -> None:
    path = "/\u202e" + "x" * 500
    shown: dict[str, Any] = json.loads(asked(f'"toolCall":{{"title":"T","path":"{path}"}}').to_client)["params"]
    marker = shown["toolCall"]["title"]
    assert marker.startswith("[podbot: outside the workspace: /\\u202exxx")
    assert len(marker) < LONGEST_PATH + 60
    marked(
        f'"toolCall":{{"title":"T","path":"{path}"}}',
        f'"toolCall":{{"title":"{marker[:-1]}T","path":"{path}"}}'.replace("\u202e", "\\u202e").replace("\\u", "\\\\u"),
    )
    lines = json.loads(asked('"toolCall":{"title":"T","path":"/a\\nb\\tc\\r\\n"}').to_client)["params"]["toolCall"]
    assert lines["title"] == "[podbot: outside the workspace: /a\\nb\\tc\\u000d\\n] T"


@pytest.mark.parametrize("params", ["[]", '"x"', "7", "null"])
def test_parameters_that_are_not_an_object_are_refused(params: str) -> None:
    for method in ("session/request_permission", "elicitation/create"):
        result = from_agent(f'{{"id":1,"method":"{method}","params":{params}}}\n'.encode())
        assert (result.to_client, result.reasons) == (b"", ["bad_params"])
        assert json.loads(result.to_agent)["id"] == 1


def test_a_question_without_parameters_and_one_with_an_answer_in_it() -> None:
    frame = b'{"id":1,"method":"session/request_permission"}\n'
    assert from_agent(frame).to_client == frame
    both = b'{"id":1,"method":"session/request_permission","params":{"x":"\\u202e"},"result":{"authMethods":[%s]}}\n'
    result = from_agent(both % b'{"type":"terminal"}')
    assert result.to_client == both.replace(b"\\u202e", b"\\\\u202e") % b""
    assert result.reasons == ["removed_login"]


# --- paths that only an earlier update named -------------------------------------------------------


def update(call: str, **members: Any) -> bytes:
    """An update of a tool call."""
    update = {"sessionUpdate": "tool_call_update", "toolCallId": call, **members}
    params = {"sessionId": "s", "update": update}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"


def question_after(inside: str, *before: bytes, mount: PathScope | None = MOUNT) -> Any:
    """The parameters of a question as the client gets it; earlier frames keep their bytes."""
    stream = b"".join(before) + (FRAME % inside).encode()
    result = from_agent(stream, channel=AcpChannel(mount=mount))
    assert result.to_client.startswith(b"".join(before))
    assert from_agent(stream, places=range(0, len(stream), 11), channel=AcpChannel(mount=mount)) == result
    return json.loads(result.to_client.splitlines()[-1])["params"]


@pytest.mark.parametrize(
    "before",
    [
        update("t", locations=[{"path": "/etc/passwd", "line": 1}]),
        update("t", rawInput={"file_path": "/etc/passwd"}),
        update("t", content=[{"type": "diff", "path": "/etc/passwd", "oldText": "", "newText": ""}]),
        update("t", locations=[{"path": "/etc/passwd"}]) + update("t", locations=[{"path": "/ws/a"}]),
        update("t", title="Edit")
        + update("u", locations=[{"path": "/ws"}])
        + update("t", rawInput={"cwd": "/etc/passwd"}),
        update("t", locations=[{"path": "/etc/passwd"}]).replace(b"tool_call", b"tool\\u005fcall"),
        update("t", locations=[{"path": "/etc/passwd"}]).replace(b"toolCallId", b"tool_call_id"),
    ],
)
def test_an_earlier_path_is_named_in_the_question(before: bytes) -> None:
    marker = "[podbot: outside the workspace: /etc/passwd] "
    asked_of = '"toolCall":{"toolCallId":"%s","title":"Edit a"},"options":[]'
    assert question_after(asked_of % "t", before)["toolCall"]["title"] == marker + "Edit a"
    assert question_after(asked_of % "v", before)["toolCall"]["title"] == "Edit a"
    assert question_after(asked_of % "t", before, mount=None)["toolCall"]["title"] == "Edit a"


def test_a_question_without_a_title_keeps_the_earlier_one() -> None:
    before = update("t", title="Edit a\u202e", locations=[{"path": "/etc/a"}]).replace(b"\\u202e", b"!")
    found = question_after('"toolCall":{"toolCallId":"t"}', before)
    assert found["toolCall"]["title"] == "[podbot: outside the workspace: /etc/a] Edit a!"


IN_SUBJECT = [
    '"type":"tool_call","toolCall":{"toolCallId":"t"}',
    '"toolCall":{"toolCallId":"t","title":"C"}',
    '"toolCall":{"title":"C","tool_call_id":"t"}',
    '"type":"command","toolCallId":"t","command":"x","cwd":"/ws"',
    '"type":"_more","calls":[{"toolCallId":"u"},{"toolCallId":"t"}]',
    '"type":"_more","request":{"toolCall":{"toolCallId":"t"}}',
    '"toolCall":{"toolCallId":"u"},"toolCallId":"t"',
    '"toolCall":{"toolCallId":"u","toolCall\\u0049d":"t"}',
    '"toolCall":{"toolCallId":"t","toolCallId":"u"}',
    '"toolCall":[{"toolCallId":"t"}]',
]


@pytest.mark.parametrize("subject", IN_SUBJECT)
@pytest.mark.parametrize("title", ['"title":"x",', ""])
def test_a_question_of_version_2_has_its_call_in_the_subject(subject: str, title: str) -> None:
    before = update("t", title="Edit", locations=[{"path": "/root/.ssh/authorized_keys"}])
    found = question_after(f'{title}"subject":{{{subject}}}', before)
    marker = "[podbot: outside the workspace: /root/.ssh/authorized_keys]"
    assert found["title"] == (f"{marker} x" if title else marker)
    call = found["subject"].get("toolCall")
    if isinstance(call, dict):
        assert call["title"] == f"{marker} C" if '"C"' in subject else call["title"].startswith(marker)
    other = question_after(f'{title}"subject":{{{subject}}}', before.replace(b'"t"', b'"v"'))
    assert "podbot" not in json.dumps(other)


@pytest.mark.parametrize(
    "before",
    [
        b'{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"changes":[{"oldPath":"b","path":"/etc/a"}]}}',
        b'{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"diff","changes":[{"path":"/etc/a"}]}]}',
    ],
)
def test_updates_of_version_2_name_paths_for_its_question(before: bytes) -> None:
    frame = UPDATE.encode() % before
    found = question_after('"title":"x","subject":{"type":"tool_call","toolCall":{"toolCallId":"t"}}', frame)
    assert found["title"] == "[podbot: outside the workspace: /etc/a] x"


def test_a_path_in_the_subject_is_named_in_the_next_question_about_its_call() -> None:
    subject = '"title":"%s","subject":{"toolCall":{"toolCallId":"t"%s}}'
    first = (FRAME % (subject % ("x", ',"locations":[{"path":"/etc/a"}]'))).encode()
    second = (FRAME % (subject % ("y", ""))).encode()
    *_, found = from_agent(first + second, channel=AcpChannel(mount=MOUNT)).to_client.splitlines()
    assert json.loads(found)["params"]["title"] == "[podbot: outside the workspace: /etc/a] y"


# What version 1 and 2 allow, and what an agent could send beside it.
_IDS = st.sampled_from(["t", "u"])
_PATHS = st.sampled_from(["/ws/a", "/etc/a", "b"])
_CALLS = st.fixed_dictionaries(
    {}, optional={"toolCallId": _IDS, "title": st.just("C"), "locations": st.lists(_PATHS.map(lambda p: {"path": p}))}
)
_SUBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["tool_call", "command", "_x"]), "toolCall": _CALLS | st.none(), "toolCallId": _IDS,
        "command": st.just("x"), "cwd": _PATHS, "more": st.lists(_CALLS, max_size=2),
    },
)  # fmt: skip
_QUESTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"options": st.just([])}, optional={"title": st.just("T"), "toolCall": _CALLS, "subject": _SUBJECTS}
)


@given(_QUESTIONS, st.booleans())
def test_each_title_of_a_question_is_marked_when_it_or_its_call_names_a_path_outside(
    question: dict[str, Any], named: bool
) -> None:
    inside = json.dumps(question)[1:-1]
    before = update("t", locations=[{"path": "/root/x"}]) if named else update("t", locations=[])
    found = question_after(inside, before)
    marked = '"/etc/a"' in inside or (named and '"toolCallId": "t"' in inside)
    titles = [found.get("title")]
    titles += [holder.get("toolCall", {}).get("title") for holder in (found, found.get("subject") or {})
               if isinstance(holder.get("toolCall"), dict)]  # fmt: skip
    present = [title for title in titles if title is not None]
    assert all(title.startswith("[podbot: outside") == marked for title in present)
    assert present or not marked
    assert found == {"sessionId": "s", **question} or marked


def test_paths_of_an_earlier_question_are_named_in_the_next_one_of_its_call() -> None:
    """A client treats a question as an update of the call."""
    first = (FRAME % '"toolCall":{"toolCallId":"t","title":"x","locations":[{"path":"/etc/a"}]}').encode()
    second = (FRAME % '"toolCall":{"toolCallId":"t","title":"y"}').encode()
    *_, found = from_agent(first + second, channel=AcpChannel(mount=MOUNT)).to_client.splitlines()
    assert json.loads(found)["params"]["toolCall"]["title"] == "[podbot: outside the workspace: /etc/a] y"


def test_own_and_earlier_paths_are_named_once() -> None:
    before = update("t", locations=[{"path": "/etc/a"}, {"path": "/etc/b"}])
    found = question_after('"toolCall":{"toolCallId":"t","title":"x","locations":[{"path":"/etc/b"}]}', before)
    assert found["toolCall"]["title"] == "[podbot: outside the workspace: /etc/b, /etc/a] x"


def test_memory_for_an_agents_paths_is_bounded_and_forgetting_is_reported() -> None:
    channel = AcpChannel(mount=MOUNT)
    tracemalloc.start()
    try:
        for number in range(1500):
            paths = [{"path": f"/etc/{number}/{at}" + "y" * 1800} for at in range(10)]
            channel.agent_data(update(f"{number:06}" + "x" * 1000, title="z" * 1000, locations=paths))
            channel.for_client()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 8 << 20
    frame = (FRAME % ('"toolCall":{"toolCallId":"000000%s","title":"t"}' % ("x" * 1000))).encode()
    title = json.loads(from_agent(frame, channel=channel).to_client)["params"]["toolCall"]["title"]
    assert title == "[podbot: perhaps outside the workspace: the call's update was too long ago] t"


def test_many_harmless_calls_make_no_question_doubtful() -> None:
    calls = b"".join(update(f"{number}", title="t", locations=[{"path": "/ws/a"}]) for number in range(1500))
    assert question_after('"toolCall":{"toolCallId":"new","title":"t"}', calls)["toolCall"]["title"] == "t"


# --- addresses, and names that other things have too -----------------------------------------------


@given(
    st.sampled_from(["vscode", "ZED", "idea", "x-y.z+1"]), st.sampled_from(["file", "", "ssh%2Dremote+x", "a:1"]),
    st.sampled_from(["/etc/a", "/ws/a", "/ws/../b", "/more/c", "/", "/ws/a b"]), st.booleans(), st.booleans(),
    st.sampled_from(["uri", "url", "path", "target"]),
)  # fmt: skip
def test_an_address_is_named_exactly_when_its_path_is_outside(  # noqa: PLR0917 - what makes an address
    scheme: str, host: str, path: str, in_query: bool, encoded: bool, key: str
) -> None:  # fmt: skip
    spelled = "".join(f"%{ord(char):02x}" for char in path) if encoded else path
    address = f"{scheme}://{host}/ws?line=1&file={spelled}" if in_query else f"{scheme}://{host}{spelled}"
    title = question_after(f'"toolCall":{{"title":"T","rawInput":{{"{key}":{json.dumps(address)}}}}}')["toolCall"][
        "title"
    ]
    outside = path in ("/etc/a", "/ws/../b", "/")
    assert title == (f"[podbot: outside the workspace: {address}] T" if outside else "T")


@given(st.text("ab/.~: \n*", max_size=12), st.sampled_from(["target", "from", "files", "file_name"]))
def test_only_what_looks_like_a_path_is_one_under_a_name_of_other_things(text: str, key: str) -> None:
    given_text = json.dumps(text)
    found = question_after(f'"toolCall":{{"title":"T","rawInput":{{"{key}":[{given_text},{{"x":{given_text}}}]}}}}')
    title = found["toolCall"]["title"]
    assert title == "T" or text.lstrip().startswith(("/", "~")) or ".." in text or ":/" in text
    as_path = question_after(f'"toolCall":{{"title":"T","rawInput":{{"path":{given_text}}}}}')["toolCall"]["title"]
    assert title in ("T", as_path)
