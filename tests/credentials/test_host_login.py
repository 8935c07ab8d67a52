"""One session's copy of the host's login, which follows the host."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from podbot.credentials.host_login import HostLogin
from podbot.credentials.own_login import Refused
from tests.credentials.logins import CLAUDE, CODEX, changed, spec_of, value_at
from tests.faults import GiveAway

NAME = "shop-20260801T120000Z"
REFRESH = ("tokens", "refresh_token")
HOSTS = json.dumps(CODEX).encode()


class Bench:
    def __init__(self, base: Path) -> None:
        base.chmod(0o700)
        self.told: list[str] = []
        self.root = base / "logins" / "codex.host" / NAME
        self.file = self.root / "sessions" / NAME / "login" / "auth.json"
        self.copy = self.another()
        self.copy.follow(HOSTS)
        self.copy.hand_out(NAME)

    def another(self) -> HostLogin:
        """As in another process."""
        return HostLogin(str(self.root), spec_of("codex"), NAME, refused=lambda _name, reason: self.told.append(reason))

    def renew(self, token: str) -> None:
        self.write(changed(CODEX, REFRESH, token))

    def write(self, data: bytes) -> None:
        new = self.file.with_name("new")
        new.write_bytes(data)
        new.replace(self.file)

    def token(self) -> str:
        return str(value_at(self.file.read_bytes(), REFRESH))

    def started_again(self, found: bytes | None = HOSTS, *, emptied: bool = False) -> bool:
        """Whether the session has a login after a start on a host with the login ``found``."""
        self.copy = self.another()
        self.copy.follow(found, emptied=emptied)
        return self.copy.hand_out(NAME)

    def at_rest(self) -> list[str]:
        """Files below the copy's directory that have a token."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return sorted(path.name for path in found if b"access_token" in path.read_bytes())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "state").mkdir()
    return Bench(tmp_path / "state")


def test_a_stopped_session_has_no_login_at_all(bench: Bench) -> None:
    assert bench.at_rest() == ["auth.json", "login"]
    bench.copy.withdraw()
    assert bench.at_rest() == []
    bench.copy.withdraw()
    assert bench.started_again()
    assert bench.token() == "r"


def test_what_a_session_renewed_stays_until_the_host_s_login_changes(bench: Bench) -> None:
    bench.renew("r2")
    bench.copy.withdraw()
    assert bench.at_rest() == ["login"]
    assert bench.started_again()
    assert bench.token() == "r2", "the host's is older"
    assert bench.started_again(changed(CODEX, REFRESH, "r3"))
    assert bench.token() == "r3", "the host logged in again"


def test_a_change_of_the_host_s_file_that_is_not_its_login_is_no_newer_login(bench: Bench) -> None:
    bench.renew("r2")
    assert bench.started_again(changed(CODEX, ("more",), "of a tool server"))
    assert bench.token() == "r2"


def test_a_login_that_the_host_no_longer_has_does_not_come_back(bench: Bench) -> None:
    bench.renew("r2")
    bench.copy.withdraw()
    assert not bench.started_again(None)
    assert bench.at_rest() == []
    assert bench.started_again(), "the host logged in again"


def test_a_file_that_the_host_s_agent_emptied_takes_no_renewed_login_away(bench: Bench) -> None:
    """The server refused the host's login because the session had renewed it."""
    bench.renew("r2")
    assert bench.started_again(None, emptied=True)
    assert bench.token() == "r2"


def test_an_emptied_file_of_the_host_ends_a_login_that_was_not_renewed(bench: Bench) -> None:
    assert not bench.started_again(None, emptied=True)
    assert bench.at_rest() == []


def test_a_renewal_of_the_host_reaches_the_running_session(bench: Bench) -> None:
    bench.copy.follow(changed(CODEX, REFRESH, "r2"))
    assert bench.token() == "r2"


def test_a_login_of_another_account_that_was_made_inside_stays_there(bench: Bench) -> None:
    bench.write(changed(CODEX, ("tokens", "account_id"), "another"))
    bench.copy.withdraw()
    assert bench.file.exists()
    assert bench.started_again()
    assert value_at(bench.file.read_bytes(), ("tokens", "account_id")) == "another"
    assert set(bench.told) == {"it contains another login"}


@pytest.mark.parametrize("host", [None, changed(CODEX, REFRESH, "r9")], ids=["logged out", "renewed"])
def test_what_the_host_does_leaves_a_login_that_was_made_inside(bench: Bench, host: bytes | None) -> None:
    inside = changed(CODEX, ("tokens", "account_id"), "another")
    bench.write(inside)
    bench.copy.follow(host)
    assert bench.file.read_bytes() == inside
    bench.copy.withdraw()
    bench.started_again(host)
    assert bench.file.read_bytes() == inside


def test_a_login_that_was_made_inside_where_the_host_has_none_stays(bench: Bench) -> None:
    bench.started_again(None)
    bench.write(HOSTS)
    bench.copy.withdraw()
    assert bench.started_again(None) is False
    assert bench.file.read_bytes() == HOSTS


def test_the_order_of_the_host_s_file_and_its_other_fields_make_no_newer_login(bench: Bench) -> None:
    bench.renew("r2")
    same = {**dict(reversed(CODEX.items())), "last_refresh": "2027-01-01T00:00:00Z"}
    assert bench.started_again(json.dumps(same).encode())
    assert bench.token() == "r2"


def test_a_directory_in_place_of_the_login_prevents_no_start(bench: Bench) -> None:
    bench.file.unlink()
    (bench.file / "deep").mkdir(parents=True)
    bench.copy.withdraw()
    assert bench.started_again()
    assert bench.token() == "r"


def test_part_of_a_login_that_a_killed_podbot_wrote_goes_at_stop(bench: Bench) -> None:
    bench.file.with_name(".auth.json.0123456789abcdef.tmp").write_bytes(HOSTS)
    bench.copy.withdraw()
    assert bench.at_rest() == []


def test_a_removed_copy_is_not_made_again(bench: Bench) -> None:
    other = bench.another()
    bench.copy.remove()
    shutil.rmtree(bench.root)
    other.synchronize()
    other.withdraw()
    assert not bench.root.exists()


def test_a_killed_start_that_had_not_noted_the_host_s_login_changes_nothing(bench: Bench) -> None:
    (bench.root / "given").unlink()
    bench.renew("r2")
    bench.copy.synchronize()
    assert bench.started_again(changed(CODEX, REFRESH, "r2"))
    assert bench.token() == "r2"


def test_what_is_no_login_is_not_kept(bench: Bench) -> None:
    bench.write(b"not JSON")
    bench.copy.withdraw()
    assert bench.started_again()
    assert bench.token() == "r"


def test_a_file_of_another_user_stays_where_it_is(bench: Bench, give_away: GiveAway) -> None:
    """What root in a sandbox of a rootful engine renewed; podbot, an ordinary user, cannot read it."""
    bench.renew("r2")
    give_away(str(bench.file))
    bench.copy.withdraw()
    assert bench.file.exists()
    assert bench.started_again()
    assert bench.file.exists()


@pytest.mark.parametrize("note", [b"", b"\xff\xfe", b"x" * 9000])
def test_with_a_damaged_note_the_host_s_login_is_taken_again(bench: Bench, note: bytes) -> None:
    (bench.root / "given").write_bytes(note)
    assert bench.started_again(changed(CODEX, REFRESH, "r3"))
    assert bench.token() == "r3"


def test_the_parts_of_a_file_that_are_no_login_are_not_copied(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    copy = HostLogin(str(tmp_path / "logins" / "claude.host" / NAME), spec_of("claude"), NAME)
    copy.follow(json.dumps(CLAUDE).encode())
    assert list(json.loads(Path(copy.path).read_bytes())) == ["claudeAiOauth"]
    with pytest.raises(Refused):
        copy.follow(b"{}")


def test_a_copy_is_left_when_no_podbot_uses_it(bench: Bench) -> None:
    assert bench.copy.is_left()
    with bench.copy.in_use(NAME):
        assert not bench.another().is_left()
    bench.copy.remove()
    os.rename(bench.root, bench.root.with_name("gone"))
    assert not bench.copy.is_left()
    assert not bench.root.exists(), "and it is not made again"
