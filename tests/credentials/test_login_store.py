"""The logins that podbot keeps, and the copies of sessions; a session's directory is the agent's to change."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from podbot.credentials.login_access import read_login
from podbot.credentials.login_store import FOREIGN, LoginStore
from podbot.credentials.own_login import LARGEST, Refused
from podbot.errors import FilesystemError
from tests.credentials.logins import CODEX, changed, spec_of, value_at
from tests.faults import GiveAway

REFRESH = ("tokens", "refresh_token")


class Bench:
    def __init__(self, base: Path) -> None:
        self.told: list[tuple[str, str]] = []
        self.root = str(base / "logins" / "codex")
        base.chmod(0o700)
        self.store = self.another()
        self.store.save(json.dumps(CODEX).encode())

    def another(self) -> LoginStore:
        """As in another process."""
        return LoginStore(self.root, spec_of("codex"), refused=lambda name, reason: self.told.append((name, reason)))

    def file(self, name: str) -> Path:
        return Path(self.root, "sessions", name, "login", "auth.json")

    def renew(self, name: str, token: str) -> None:
        """As Codex does it: a new file, by a rename."""
        new = self.file(name).with_name("auth.json.new")
        new.write_bytes(changed(CODEX, REFRESH, token))
        new.replace(self.file(name))

    def token(self, name: str = "") -> str:
        path = self.file(name) if name else Path(self.store.path)
        return str(value_at(path.read_bytes(), REFRESH))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "state").mkdir()
    return Bench(tmp_path / "state")


def test_everything_is_private(bench: Bench) -> None:
    bench.store.hand_out("a")
    for at, directories, files in os.walk(os.path.dirname(bench.root)):
        for name in directories:
            assert stat.S_IMODE(os.lstat(os.path.join(at, name)).st_mode) == 0o700
        for name in files:
            assert stat.S_IMODE(os.lstat(os.path.join(at, name)).st_mode) == 0o600


def test_a_session_gets_the_login_alone(bench: Bench) -> None:
    assert bench.store.hand_out("a")
    assert os.listdir(bench.file("a").parent) == ["auth.json"]
    assert bench.token("a") == "r"


def test_a_renewed_token_reaches_the_login_and_the_other_sessions(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.store.hand_out(name)
    bench.renew("b", "r2")
    assert bench.another().synchronize()
    assert {name: bench.token(name) for name in ("", "a", "b", "c")} == dict.fromkeys(("", "a", "b", "c"), "r2")
    assert not bench.store.synchronize()


def test_a_file_that_is_written_in_place_is_taken(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.file("a").write_bytes(changed(CODEX, REFRESH, "r2"))
    assert bench.store.synchronize()
    assert bench.token() == "r2"


def test_of_two_renewals_the_later_one_is_in_force(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.store.hand_out("b")
    bench.renew("b", "first")
    while bench.file("b").stat().st_ctime_ns >= os.stat(bench.root).st_ctime_ns:
        bench.renew("a", "second")
        if bench.file("a").stat().st_ctime_ns > bench.file("b").stat().st_ctime_ns:
            break
    bench.store.synchronize()
    assert (bench.token(), bench.token("a"), bench.token("b")) == ("second",) * 3


def test_a_renewal_while_the_files_are_compared_is_taken_by_the_next_call(bench: Bench) -> None:
    store = LoginStore(bench.root, spec_of("codex"), refused=lambda _name, _reason: bench.renew("b", "r2"))
    for name in ("a", "b"):
        store.hand_out(name)
    bench.file("a").write_bytes(b"{}")
    assert not store.synchronize(), "b was read before it was renewed"
    assert store.synchronize()
    assert bench.token() == "r2"


def test_a_renewal_that_could_not_be_taken_is_taken_by_the_next_call(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.renew("a", "r2")
    lock = Path(bench.root, "lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(FilesystemError, match="lock"):
        bench.store.synchronize()
    lock.rmdir()
    assert bench.store.synchronize()
    assert bench.token() == "r2"


def test_an_emptied_copy_gets_the_token_that_another_session_renewed(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.store.hand_out("b")
    bench.renew("b", "")
    bench.store.synchronize()
    assert (bench.token(), bench.token("b")) == ("r", "")
    bench.renew("a", "r2")
    bench.store.synchronize()
    assert bench.token("b") == "r2"
    assert bench.told == [("b", "it contains no login any more")]


def test_another_login_stays_the_session_s_own(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.store.hand_out("b")
    bench.file("b").write_bytes(changed(CODEX, ("tokens", "account_id"), "other"))
    bench.renew("a", "r2")
    for _ in range(3):
        bench.store.synchronize()
    assert (bench.token(), bench.token("b")) == ("r2", "r")
    assert bench.told == [("b", "it contains another login")]


def test_logging_out_in_a_session_concerns_it_alone(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.store.hand_out("b")
    bench.file("a").unlink()
    bench.renew("b", "r2")
    bench.store.synchronize()
    assert bench.token() == "r2"
    assert not bench.file("a").exists()


@pytest.mark.parametrize("what", ["link", "fifo", "directory", "large", "loop"])
def test_a_hostile_file_is_neither_followed_nor_waited_for(bench: Bench, tmp_path: Path, what: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(changed(CODEX, REFRESH, "of the host"))
    bench.store.hand_out("a")
    bench.store.hand_out("b")
    path = bench.file("a")
    path.unlink()
    if what == "link":
        path.symlink_to(secret)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "directory":
        (path / "x").mkdir(parents=True)
    elif what == "loop":
        path.symlink_to(path)
    else:
        path.write_bytes(b" " * (LARGEST * 2))
    bench.renew("b", "r2")
    assert bench.store.synchronize()
    assert bench.token() == "r2"
    assert secret.read_bytes() == changed(CODEX, REFRESH, "of the host")


def test_an_unreadable_copy_of_another_user_is_reported_once(bench: Bench, give_away: GiveAway) -> None:
    bench.store.hand_out("a")
    bench.file("a").unlink()
    os.mkfifo(bench.file("a"))  # as unreadable for root, who may run the tests, as a private file is for others
    give_away(bench.file("a"))
    for _ in range(2):
        bench.store.hand_out("b")
    assert bench.told == [("a", FOREIGN)]
    assert bench.token() == "r"


def test_a_mounted_directory_that_became_a_link_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    bench.store.hand_out("a")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "auth.json").write_bytes(changed(CODEX, REFRESH, "elsewhere"))
    directory = bench.file("a").parent
    bench.file("a").unlink()
    directory.rmdir()
    directory.symlink_to(outside)
    bench.store.synchronize()
    assert bench.token() == "r"


def test_a_link_at_the_file_is_replaced_by_a_new_login_and_not_written_through(bench: Bench, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(changed(CODEX, REFRESH, "target"))
    bench.store.hand_out("a")
    bench.file("a").unlink()
    bench.file("a").symlink_to(target)
    bench.store.hand_out("a")
    assert not bench.file("a").is_symlink()
    assert value_at(target.read_bytes(), REFRESH) == "target"


def test_what_a_session_renewed_survives_its_end(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.renew("a", "r2")
    bench.store.forget("a")
    assert (bench.token(), bench.store.names()) == ("r2", [])
    bench.store.forget("a")


def test_a_session_that_a_podbot_uses_is_forgotten_by_none_that_sweeps(bench: Bench) -> None:
    with bench.store.in_use("a"):
        bench.store.hand_out("a")
        bench.another().forget("a", even_in_use=False)
        assert bench.token("a") == "r"
    bench.another().forget("a", even_in_use=False)
    assert bench.store.names() == []


def test_a_new_login_replaces_that_of_all_sessions(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.store.save(changed(CODEX, ("tokens", "account_id"), "other"))
    assert value_at(bench.file("a").read_bytes(), ("tokens", "account_id")) == "other"


def test_a_renewal_of_the_earlier_login_does_not_replace_a_new_one(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.renew("a", "old")
    bench.store.save(changed(CODEX, REFRESH, "new"))
    assert (bench.token(), bench.token("a")) == ("new", "new")


def test_a_login_after_a_logout_replaces_what_running_agents_wrote_since(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.store.hand_out(name)
    bench.store.remove()
    bench.renew("a", "old")
    bench.another().save(changed(CODEX, REFRESH, "new"))
    assert not bench.store.synchronize()
    assert [bench.token(name) for name in ("", "a", "b")] == ["new"] * 3


def test_a_refused_login_leaves_the_kept_one(bench: Bench) -> None:
    with pytest.raises(Refused):
        bench.store.save(b"{}")
    assert bench.token() == "r"


def test_removing_the_login_removes_every_copy(bench: Bench) -> None:
    bench.store.hand_out("a")
    bench.renew("a", "r2")
    assert bench.store.remove()
    assert not bench.file("a").exists()
    assert bench.store.saved_at() is None
    assert not bench.store.remove()
    bench.renew("a", "r3")
    assert not bench.store.synchronize(), "a session does not bring it back"
    assert not bench.store.hand_out("b")
    assert not bench.file("b").exists()


def test_threads_and_processes_that_renew_at_once_leave_one_valid_login(bench: Bench) -> None:
    names = [f"s{number}" for number in range(4)]
    for name in names:
        bench.store.hand_out(name)

    def work(name: str) -> None:
        store = bench.another()
        for number in range(5):
            bench.renew(name, f"{name}.{number}")
            store.synchronize()

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.store.synchronize()
    assert {bench.token(name) for name in names} == {bench.token()}


def test_reading_from_a_directory_that_is_missing(tmp_path: Path) -> None:
    assert read_login(str(tmp_path / "missing"), "auth.json") is None
