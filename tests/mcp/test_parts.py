"""Mounts of the command line, tokens, addresses of resources, kept output, and the registry."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PathError, TokenFileRefused, ToolValidationError, UsageError
from podbot.mcp.bearer_tokens import BearerTokens, own_tokens, read_tokens
from podbot.mcp.kept_output import KeptOutputs
from podbot.mcp.offered_mounts import chosen, offered_mounts
from podbot.mcp.resource_reader import file_uri, output_uri, parse_uri
from tests.faults import STRANGER, GiveAway
from tests.mcp.workspaces import Served
from tests.waiting import HANG

TOKEN = "t" * 40


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "shop" / "src").mkdir(parents=True)
    (tmp_path / "data.csv").write_text("1")
    return tmp_path


def test_mounts_of_the_command_line(host: Path) -> None:
    words = [f"{host}/shop", f"{host}/data.csv", f"{host}/shop:/x/y", "~/shop:/z:*.py", f"{host}/shop/:/g"]
    found = offered_mounts(words, str(host))
    assert [one.name for one in found] == [
        "/workspace", "/workspace/data.csv", "/workspace/x/y", "/workspace/z", "/workspace/g",
    ]  # fmt: skip
    assert [one.root for one in found] == [f"{host}/shop", str(host), *[f"{host}/shop"] * 3]
    assert found[3].mount.include_glob == ("*.py",)
    assert found[0].mount.mount_path == "/"
    assert found[1].mount.host_path == f"{host}/data.csv"


def test_a_mount_is_where_its_links_lead_when_the_server_starts(host: Path) -> None:
    (host / "link").symlink_to(host / "shop")
    (found,) = offered_mounts([f"{host}/link"], str(host))
    assert found.root == f"{host}/shop"
    assert found.mount.host_path == f"{host}/shop"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("", "a mount is"),
        (":/x", "a mount is"),
        ("HERE/none", r"there is no file or directory .*/none\. Check the path\.$"),
        ("HERE/none:*.py", r"there is no file or directory .*/none\. A path with a colon"),
        ("HERE/shop:a:b", "a mount is"),
        ("HERE/shop:/x:", "a mount is"),
        ("HERE/shop:", "a mount is"),
        ("HERE/shop:/../x", ".."),
        ("HERE/data.csv:/", "a file"),
        ("/", "whole file system"),
        ("HERE/shop:/x:a:b", "a mount is"),
    ],
)
def test_mounts_that_are_refused(host: Path, word: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        offered_mounts([word.replace("HERE", str(host))], str(host))


def test_a_file_whose_name_no_tool_accepts(host: Path) -> None:
    (host / "ä.txt").write_text("1")
    with pytest.raises(UsageError, match="ASCII"):
        offered_mounts([f"{host}/ä.txt"], str(host))
    (found,) = offered_mounts([f"{host}/ä.txt:/a.txt"], str(host))
    assert found.name == "/workspace/a.txt"


def test_a_file_of_one_mount_where_another_has_something(host: Path) -> None:
    (host / "shop" / "data.csv").write_text("2")
    with pytest.raises(UsageError, match="is a file of the mount"):
        offered_mounts([f"{host}/shop", f"{host}/data.csv"], str(host))


def test_two_mounts_in_one_place(host: Path) -> None:
    with pytest.raises(UsageError, match="already"):
        offered_mounts([f"{host}/shop", f"{host}/shop/src"], str(host))


def test_a_client_chooses_among_the_offered_mounts_by_name(host: Path) -> None:
    offered = offered_mounts([f"{host}/shop", f"{host}/data.csv"], str(host))
    assert chosen(offered, None) == offered
    assert chosen(offered, []) == ()
    assert chosen(offered, ["/workspace/data.csv"] * 2) == offered[1:]
    for name in (str(host), f"{host}/shop", "/workspace/", "/etc", "", "../x"):
        with pytest.raises(ToolValidationError, match="offers /workspace"):
            chosen(offered, [name])


def write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_file_of_tokens(tmp_path: Path) -> None:
    other = "u" * 40
    path = write(tmp_path / "t", f"# two\n{TOKEN}\n\n{other}\n{TOKEN}\n")
    tokens = read_tokens(path)
    assert tokens == (TOKEN, other)
    known = BearerTokens(tokens)

    async def client(token: str) -> str | None:
        found = await known.verify_token(token)
        assert found is None or found.token == ""
        return None if found is None else found.client_id

    assert [anyio.run(client, token) for token in (TOKEN, other, "", TOKEN[:-1], "é", "\udcff")] == [
        "client-1", "client-2", None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_file_of_tokens_that_others_may_read(tmp_path: Path, mode: int) -> None:
    with pytest.raises(TokenFileRefused, match="chmod 600"):
        read_tokens(write(tmp_path / "t", TOKEN, mode))


@pytest.mark.parametrize("text", ["", "\n# none\n", "t" * 31, f"{TOKEN}\nshort", f"{TOKEN} x", "é" * 40, "x" * 70_000])
def test_files_without_valid_tokens(tmp_path: Path, text: str) -> None:
    with pytest.raises(TokenFileRefused) as caught:
        read_tokens(write(tmp_path / "t", text))
    assert "short" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_other_files_of_tokens_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "link").symlink_to(write(tmp_path / "t", TOKEN))
    for name in ("fifo", "."):
        with pytest.raises(TokenFileRefused, match="regular"):
            read_tokens(str(tmp_path / name))
    for name in ("link", "none"):
        with pytest.raises(PathError):
            read_tokens(str(tmp_path / name))
    with pytest.raises(TokenFileRefused, match="other users"):
        read_tokens(write(tmp_path / "u", TOKEN, 0o644))


def test_a_file_of_tokens_of_another_user_is_refused(tmp_path: Path, give_away: GiveAway) -> None:
    path = write(tmp_path / "t", TOKEN)
    give_away(path)
    with pytest.raises(TokenFileRefused, match=f"it belongs to user {STRANGER}"):
        read_tokens(path)


def test_podbots_own_token_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "mcp-token"
    (token,) = own_tokens(str(path))
    assert len(token) >= 40
    assert path.stat().st_mode & 0o777 == 0o600
    assert own_tokens(str(path)) == (token,)


def test_servers_that_start_at_once_for_the_first_time_have_one_token(tmp_path: Path) -> None:
    for number in range(20):
        path = str(tmp_path / str(number) / "mcp-token")
        meet = threading.Barrier(4)
        found: list[tuple[str, ...]] = []

        def start(path: str = path, meet: threading.Barrier = meet, found: list[tuple[str, ...]] = found) -> None:
            meet.wait(60)
            found.append(own_tokens(path))

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [own_tokens(path)] * 4
        assert os.listdir(tmp_path / str(number)) == ["mcp-token"]


HANDLE = "sbx-" + "0" * 32
NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="/"), min_size=1, max_size=20)


@given(st.lists(NAMES.filter(lambda name: name.strip(".") and name == name.strip()), max_size=6).map(tuple))
def test_the_address_of_a_file_names_it(path: tuple[str, ...]) -> None:
    if path[:1] == ("workspace",):
        return
    place = parse_uri(file_uri(HANDLE, path))
    assert (place.handle, place.path, place.number) == (HANDLE, path, None)


@given(st.text(max_size=60))
def test_an_address_names_nothing_outside(text: str) -> None:
    for uri in (text, f"podbot://{HANDLE}/files/{text}", f"podbot://{text}", f"podbot://{HANDLE}/output/{text}"):
        try:
            place = parse_uri(uri)
        except ToolValidationError:
            continue
        assert not {".", ".."} & set(place.path)
        assert all("/" not in segment and "\0" not in segment for segment in place.path)


def test_addresses_of_output() -> None:
    assert parse_uri(output_uri(HANDLE, 7)).number == 7
    for bad in ("", "x", "-1", "1/2", "9" * 10, "²"):
        with pytest.raises(ToolValidationError):
            parse_uri(f"podbot://{HANDLE}/output/{bad}")


def test_kept_output_drops_the_oldest() -> None:
    outputs = KeptOutputs(most=10)
    made = [outputs.add("x", data, len(data)) for data in (b"aaaa", b"bbbb", b"cccc")]
    assert outputs.listed() == tuple(made[1:])
    assert outputs.get(made[0].number) is None
    large = outputs.add("y", b"d" * 20, 20)
    assert large.data == b"d" * 10
    assert outputs.listed() == (large,)


def test_first_calls_at_once_make_one_default_sandbox(served: Served) -> None:
    found: list[str] = []

    def find() -> None:
        found.append(served.registry.find("a", None).handle)

    threads = [threading.Thread(target=find) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(served.making.made) == 1
    assert served.registry.find("b", None).handle not in found


def test_a_sandbox_is_not_made_after_the_end(served: Served) -> None:
    served.registry.close_all()
    with pytest.raises(ToolValidationError, match="ending"):
        served.registry.create("a")


def test_the_first_call_of_one_client_does_not_wait_for_anothers(served: Served) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert go.wait(60)

    default = served.registry.find("b", None)
    served.making.before = slow
    thread = threading.Thread(target=served.registry.find, args=("a", None))
    thread.start()
    assert begun.wait(60)
    served.making.before = None
    try:
        found: list[str] = []
        others = [
            threading.Thread(target=lambda owner=owner: found.append(served.registry.find(owner, None).handle))
            for owner in ("b", "c")
        ]
        for other in others:
            other.start()
        for other in others:
            other.join(60)
        assert len(found) == 2
        assert default.handle in found
    finally:
        go.set()
        thread.join()


def test_a_client_cannot_take_the_places_of_another(tmp_path: Path) -> None:
    served = Served(tmp_path, most=5, clients=2)
    for owner in ("a", "a", "b", "b"):
        served.registry.create(owner)
        if owner == "a" and len(served.registry.listed("a")) == 2:
            with pytest.raises(ToolValidationError, match="you have 2 already, your share of 5"):
                served.registry.create("a")
    served.registry.close("a", served.registry.listed("a")[0].handle)
    served.registry.create("a")
    served.registry.close_all()


def test_at_the_end_of_a_server_no_sandbox_waits_for_another(tmp_path: Path) -> None:
    served = Served(tmp_path)
    for _ in range(32):
        served.registry.create("a")
    together = threading.Barrier(32)
    for made in served.making.made:
        made.ending = lambda: together.wait(HANG)
    served.registry.close_all()
    assert served.events == []


def test_a_place_is_free_once_the_sandbox_has_ended(tmp_path: Path) -> None:
    served = Served(tmp_path, most=1)
    held = served.registry.create("a")
    refused: list[str] = []

    def create() -> None:
        try:
            served.registry.create("b")
        except ToolValidationError as error:
            refused.append(str(error))

    served.making.made[0].ending = create
    served.registry.close("a", held.handle)
    assert "there are 1 already" in refused[0]
    assert served.registry.create("b").owner == "b"
    served.registry.close_all()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none", "there is no such file"),
        ("link", "it is a symbolic link"),
        ("t/x", "a part of its path is a file"),
        (".", "it is not a regular file"),
    ],
)
def test_a_file_of_tokens_that_was_named_is_refused_with_its_origin(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "link").symlink_to(write(tmp_path / "t", TOKEN))
    with pytest.raises(TokenFileRefused) as caught:
        read_tokens(str(tmp_path / name), "flag --token-file")
    assert caught.value.message == f"the token file {tmp_path / name} (flag --token-file) cannot be used: {reason}"
    assert caught.value.remedy == "Correct the path, or name none: podbot then uses its own file."
