"""The policy and the log of a running session's filtered network, and what ``podbot net`` prints of them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.api.inspecting import filtered_network
from podbot.cli.entry import main as podbot
from podbot.cli.remedies import remedy_of
from podbot.errors import AmbiguousName, GatewayRefused, NoGateway, PathError
from podbot.management.filtered_network import FilteredNetwork
from podbot.session.directory import session_directory
from tests.gateway.running import gateway


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    run_dir = tmp_path / "run"
    run_dir.mkdir(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run_dir))
    return {"XDG_RUNTIME_DIR": str(run_dir), "HOME": str(tmp_path)}


@contextlib.contextmanager
def session(environ: dict[str, str], name: str = "shop") -> Iterator[Path]:
    """The directory of the gateway of a running session."""
    path = Path(environ["XDG_RUNTIME_DIR"], "podbot", name)
    path.parent.mkdir(0o700, exist_ok=True)
    with session_directory(str(path), "unix:///x"):
        directory = path / "gateway"
        directory.mkdir(0o700)
        with gateway(directory, log=str(directory / "log"), allow=("a.example",), deny=("b.example",)):
            yield directory


def found(environ: dict[str, str], name: str = "shop") -> FilteredNetwork:
    return filtered_network(name, environ=environ)


def test_the_policy_is_shown_and_changed(environ: dict[str, str]) -> None:
    with session(environ):
        network = found(environ, "sh")
        assert (network.session, network.policy().allow, network.policy().deny) == (
            "shop",
            ("a.example",),
            ("b.example",),
        )
        assert network.allow("b.example", "c.example:8443").allow == ("a.example", "b.example", "c.example:8443")
        assert network.policy().deny == ()
        assert network.deny("*.c.example").deny == ("*.c.example",)
        replaced = network.replace(allow=("@github",), private=("127.0.0.1:1",))
        assert ("github.com" in replaced.allow, replaced.deny, replaced.private) == (True, (), ("127.0.0.1:1",))
        with pytest.raises(GatewayRefused, match="'a b' has a character"):
            network.allow("a b")
        with pytest.raises(GatewayRefused) as caught:
            network.allow("https://docs.example.com/x")
        assert caught.value.remedy == "Write docs.example.com."
        with pytest.raises(GatewayRefused) as caught:
            network.allow("c.example", "10.0.0.5:5432")
        assert "10.0.0.5:5432 is private, and network.allow does not open that" in caught.value.message
        assert "Set network.private = 127.0.0.1:1,10.0.0.5:5432 for sessions" in caught.value.remedy
        assert "c.example" not in network.policy().allow
        assert network.allow("127.0.0.1:1").allow[-1] == "127.0.0.1:1"
    with pytest.raises(NoGateway):
        network.policy()


def test_a_session_without_one(environ: dict[str, str]) -> None:
    with pytest.raises(NoGateway, match="no running session of that name has it"):
        found(environ)
    with session_directory(os.path.join(environ["XDG_RUNTIME_DIR"], "podbot", "web"), "unix:///x"):
        with pytest.raises(NoGateway, match="web cannot be reached: that session has another network") as caught:
            found(environ, "web")
        assert "Start a session with `--network filtered`" in remedy_of(caught.value)
    with session(environ, "shop-1"), session(environ, "shop-2"):
        with pytest.raises(AmbiguousName, match="shop-1, shop-2"):
            found(environ)
        assert found(environ, "shop-2").session == "shop-2"
    whole = os.path.join(environ["XDG_RUNTIME_DIR"], "podbot", "shop")  # the session that is meant has none
    with session(environ, "shop-2"), session_directory(whole, "unix:///x"), pytest.raises(NoGateway, match="shop"):
        found(environ)
    with session(environ, "podbot-shop-1a2b3c"):
        assert found(environ).session == "podbot-shop-1a2b3c"


ENTRIES = [
    {"t": "2026-01-01T00:00:00Z", "what": "refused", "host": "b.example", "port": 443, "how": "connect",
     "reason": "no rule allows it", "count": 3},
    {"t": "2026-01-01T00:00:01Z", "what": "closed", "host": "a.example", "port": 443, "how": "connect", "sent": 5,
     "received": 7, "seconds": 0.5},
    {"t": "2026-01-01T00:00:02Z", "what": "failed", "host": "a.example", "port": 443, "how": "http", "reason": "gone"},
    {"t": "2026-01-01T00:00:03Z", "what": "policy", "allow": []},
]  # fmt: skip


def written(directory: Path) -> None:
    lines = [json.dumps(entry) for entry in ENTRIES]
    (directory / "log.1").write_text(lines[0] + "\n")
    (directory / "log").write_text("\n".join(lines[1:]) + '\n{"t": "half')


def test_the_log_of_both_files(environ: dict[str, str]) -> None:
    with session(environ) as directory:
        assert found(environ).log() == []
        written(directory)
        assert found(environ).log() == ENTRIES


def test_the_log_is_followed_until_the_session_ends(environ: dict[str, str]) -> None:
    with session(environ) as directory:
        written(directory)
        following = found(environ).follow()
        assert [next(following) for _ in ENTRIES] == ENTRIES
        with (directory / "log").open("a") as log:
            log.write('"}\n' + json.dumps(ENTRIES[2]) + "\n")
        assert [next(following), next(following)] == [{"t": "half"}, ENTRIES[2]]
    assert list(following) == []


def test_a_log_that_is_a_link_is_not_read(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text('{"t": "secret"}\n')
    with session(environ) as directory:
        (directory / "log").symlink_to(tmp_path / "mine")
        with pytest.raises(PathError, match="log"):
            found(environ).log()


def test_the_log_is_followed_through_its_rotations(environ: dict[str, str]) -> None:
    def write(path: Path, *names: str) -> None:
        path.write_text("".join(json.dumps({"t": name}) + "\n" for name in names))

    with session(environ) as directory:
        write(directory / "log.1", "a")
        write(directory / "log", "b", "c", "d")
        following = found(environ).follow()
        assert [next(following)["t"] for _ in range(4)] == ["a", "b", "c", "d"]
        (directory / "log").replace(directory / "log.1")
        write(directory / "log", "e", "f", "g")  # as many as are in the one before
        assert [next(following)["t"] for _ in range(3)] == ["e", "f", "g"]
        for names in (("h",), ("i",)):  # two rotations between two looks
            (directory / "log").replace(directory / "log.1")
            write(directory / "log", *names)
        assert [next(following)["t"] for _ in range(2)] == ["h", "i"]
    assert list(following) == []


def test_what_podbot_net_prints(environ: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    def said(*words: str, code: int = 0) -> str:
        assert podbot(["net", *words]) == code
        out, err = capfd.readouterr()
        return out if code == 0 else err

    with session(environ) as directory:
        assert said("show", "shop") == "allow    a.example\ndeny     b.example\nconnections: none yet\n"
        assert said("allow", "shop", "c.example") == (
            "allowed c.example for shop until it ends; for later sessions, use network.allow\n"
        )
        assert said("deny", "-q", "shop", "c.example") == ""
        shown = json.loads(said("deny", "--json", "shop", "d.example"))
        assert shown["deny"] == ["b.example", "c.example", "d.example"]
        os.unlink(directory / "log")
        written(directory)
        assert said("log", "shop").splitlines() == [
            "2026-01-01T00:00:00Z refused  b.example:443 no rule allows it (3 times)",
            "2026-01-01T00:00:01Z closed   a.example:443 5 bytes sent, 7 received, 0.5 s",
            "2026-01-01T00:00:02Z failed   a.example:443 gone",
            "2026-01-01T00:00:03Z policy   the rules were changed",
        ]
        assert len(said("log", "shop", "--tail", "1").splitlines()) == 1
        assert said("log", "shop", "--tail", "0") == ""
        assert [json.loads(line) for line in said("log", "shop", "--refused", "--json").splitlines()] == ENTRIES[:1]
        assert "the network of shop was not changed: 'a b' has" in said("allow", "shop", "a b", code=1)
        assert "Write HOST, *.HOST, HOST:PORT or @SET" in said("allow", "shop", "a b", code=1)
        assert "Write a." in said("allow", "shop", "https://a", code=1)
        assert "`podbot config set network.private 10.0.0.5:5432`" in said("allow", "shop", "10.0.0.5:5432", code=1)
    assert "the filtered network of shop cannot be reached" in said("show", "shop", code=1)
