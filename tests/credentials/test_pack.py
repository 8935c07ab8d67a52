from __future__ import annotations

import dataclasses
import json
import os
import socket

import pytest

from podbot.credentials.pack import Bundle, pack, upload
from podbot.errors import CredentialsTooLarge, CredentialUnreadable, UploadFailed
from podbot.events import ignore
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.testing import FakeEngine
from tests.credentials.logins import spec_of
from tests.credentials.trees import Home, contents, members
from tests.session.plans import SESSION, container


@pytest.fixture
def home(short_path: str) -> Home:
    return Home(os.path.join(short_path, "home"))


def test_both_families_in_their_order(home: Home) -> None:
    home.write(".codex/auth.json", "c")
    home.write(".claude/.credentials.json", "a")
    home.write(".ssh/id_rsa", "never")
    bundle = home.packed("claude", "codex")
    assert bundle.paths == ("/root/.claude", "/root/.codex")
    assert contents(bundle.archive) == {".claude/.credentials.json": b"a", ".codex/auth.json": b"c"}
    assert list(members(bundle.archive)) == [
        ".claude",
        ".claude/.credentials.json",
        ".codex",
        ".codex/auth.json",
    ]
    assert home.events == []


def test_without_the_tokens_that_renew_them_logins_are_reduced_or_left_out(home: Home) -> None:
    home.write(".codex/auth.json", '{"tokens": {"access_token": "a", "refresh_token": "c4n4ry"}}')
    home.write(".claude/.credentials.json", '{"another": "c4n4ry"}')
    home.write(".claude/settings.json", "{}")
    home.write(".codex/auth.json.bak", '{"tokens": {"refresh_token": "c4n4ry"}}')
    plan = dataclasses.replace(home.plan("claude", "codex"), renewable=False)
    found = contents(pack(plan, home.events.append).archive)
    assert sorted(found) == [".claude/settings.json", ".codex/auth.json"]
    assert "'auth.json.bak': it has the token that renews the login" in home.reported()
    assert json.loads(found[".codex/auth.json"]) == {"tokens": {"access_token": "a", "refresh_token": ""}}


def test_a_backup_of_a_login_that_is_mounted_is_left_out_too(home: Home) -> None:
    home.write(".codex/auth.json", '{"tokens": {"access_token": "a", "refresh_token": "c4n4ry"}}')
    home.write(".codex/auth.json.bak", '{"tokens": {"refresh_token": "c4n4ry"}}')
    plan = dataclasses.replace(home.plan("codex"), own="codex", renewable=False)
    assert b"c4n4ry" not in pack(plan, home.events.append).archive


def test_a_linked_login_is_reduced_and_what_it_leads_to_is_left_out(home: Home) -> None:
    home.write(".codex/accounts/work.json", '{"tokens": {"access_token": "a", "refresh_token": "c4n4ry"}}')
    home.link(".codex/auth.json", "accounts/work.json")
    archive = pack(dataclasses.replace(home.plan("codex"), renewable=False), home.events.append).archive
    assert b"c4n4ry" not in archive
    assert sorted(contents(archive)) == [".codex/auth.json"]


def test_nothing_selected_is_nothing_uploaded(home: Home) -> None:
    bundle = home.packed()
    assert bundle == Bundle()
    engine = FakeEngine()
    engine.create(container())
    engine.calls.clear()
    upload(engine, SESSION, bundle, home.events.append)
    assert engine.calls == []
    assert home.events == []


def test_modes_are_kept_and_the_owner_is_root(home: Home) -> None:
    home.write(".claude/a", mode=0o600)
    home.write(".claude/run.sh", mode=0o4755)
    home.write(".claude/skills/x", mode=0o444)
    os.chmod(os.path.join(home.path, ".claude/skills"), 0o2750)
    os.chmod(os.path.join(home.path, ".claude"), 0o700)
    found = members(home.packed("claude").archive)
    assert {name: member.mode for name, member in found.items()} == {
        ".claude": 0o700,
        ".claude/a": 0o600,
        ".claude/run.sh": 0o755,
        ".claude/skills": 0o750,
        ".claude/skills/x": 0o444,
    }
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in found.values()} == {(0, 0, "", "", 0)}


def test_the_same_files_are_the_same_archive(home: Home, tmp_path: os.PathLike[str]) -> None:
    other = Home(os.path.join(tmp_path, "other"))
    names = [f".claude/{name}" for name in ("b", "a", "d/e", "c")]
    for name in names:
        home.write(name, name)
    for name in reversed(names):
        other.write(name, name)
        os.utime(os.path.join(other.path, name), (1, 1))
    assert home.packed("claude").archive == other.packed("claude").archive == home.packed("claude").archive


def test_records_of_other_projects_are_not_copied(home: Home) -> None:
    kept = (".claude/settings.json", ".claude/skills/projects/s.md", ".claude/CLAUDE.md", ".codex/config.toml")
    left = (
        ".claude/projects/-home-ann-secret/1.jsonl",
        ".claude/history.jsonl",
        ".claude/backups/.claude.json.backup.1",
        ".claude/.config.json",
        ".claude/ide/1234.lock",
        ".claude/shell-snapshots/s.sh",
        ".codex/sessions/2026/x.jsonl",
        ".codex/state_5.sqlite-wal",
        ".codex/log/codex-tui.log",
        ".codex/history.jsonl",
        ".codex/memories_1.sqlite",
    )
    for name in (*kept, *left):
        home.write(name, "x")
    assert sorted(contents(home.packed("claude", "codex").archive)) == sorted(kept)
    assert {event.level for event in home.events} == {"debug"}
    names = {name for event in home.events for name in event.fields["names"]}
    assert {"projects", "backups", "state_5.sqlite-wal"} <= names


def test_links(home: Home) -> None:
    home.write(".claude/real/file", "x")
    home.write("elsewhere/CLAUDE.md", "never")
    top = os.path.join(home.path, ".claude")
    inside = {
        "relative": "real/file",
        "real/up": "../real/file",
        "absolute": f"{top}/real/file",
        "round": "../.claude/real",
        "chain": "relative",
        "loop-to-top": ".",
        "real/top": "../",
    }
    outside = {
        "out": "../elsewhere/CLAUDE.md",
        "passwd": "/etc/passwd",
        "self": "self",
        "a": "b",
        "b": "a",
        "dangling": "gone",
        "through-a-file": "real/file/../file",
        "excluded": "projects/x",
    }
    home.write(".claude/projects/x", "never")
    for name, target in (inside | outside).items():
        home.link(f".claude/{name}", target)
    found = members(home.packed("claude").archive)
    links = {name.removeprefix(".claude/"): member.linkname for name, member in found.items() if member.issym()}
    assert links == {
        "relative": "real/file",
        "real/up": "file",
        "absolute": "real/file",
        "round": "real",
        "chain": "real/file",
        "loop-to-top": ".",
        "real/top": "..",
    }
    assert "'out'" in home.reported()
    assert "passwd" in str(home.events)


def test_sockets_and_fifos_are_not_opened(home: Home) -> None:
    home.write(".claude/a", "x")
    os.mkfifo(os.path.join(home.path, ".claude/fifo"))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.path.join(home.path, ".claude/sock"))
        assert sorted(members(home.packed("claude").archive)) == [".claude", ".claude/a"]


def test_names_of_any_bytes(home: Home) -> None:
    name = os.fsdecode(b".claude/\xff\n" + b"x" * 150)
    home.write(name, "x")
    home.link(".claude/to", os.path.join(home.path, name))
    found = members(home.packed("claude").archive)
    assert found[name].isreg()
    assert os.fsencode(found[".claude/to"].linkname) == os.fsencode(name)[len(b".claude/") :]


def test_too_much_is_an_error_that_names_the_largest_part(
    home: Home, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write(".codex/auth.json", "x")
    with open(home.write(".codex/plugins/pack"), "wb") as file:
        file.truncate(1 << 40)  # sparse: it would take an hour to read
    home.write(".codex/rules", b"x" * 4096)
    with pytest.raises(CredentialsTooLarge) as caught:
        home.packed("codex")
    text = str(caught.value)
    assert "'plugins' with 1048576.0 MiB" in text
    assert "codex" in text
    assert "creds.copy_codex = false" in text
    assert "64.0 MiB" in text


def test_many_small_files_count_too(home: Home) -> None:
    for number in range(30):
        home.write(f".claude/{number}")
    with pytest.raises(CredentialsTooLarge):
        home.packed("claude", limit=20 * 512)


def test_a_family_that_is_a_link_is_read_where_it_leads(home: Home) -> None:
    home.write("dotfiles/claude/settings.json", "x")
    home.write("dotfiles/claude/real", "y")
    home.link(".claude", "dotfiles/claude")
    home.link("dotfiles/claude/to", os.path.join(home.path, ".claude/real"))
    found = members(home.packed("claude").archive)
    assert sorted(found) == [".claude", ".claude/real", ".claude/settings.json", ".claude/to"]
    assert found[".claude/to"].linkname == "real"


@pytest.mark.parametrize("target", [".", "..", "/"])
def test_a_family_that_leads_to_the_home_is_refused(home: Home, target: str) -> None:
    home.link(".claude", target)
    with pytest.raises(CredentialUnreadable, match="holds the home directory"):
        home.packed("claude")


def test_a_family_that_leads_elsewhere_since_it_was_planned(home: Home) -> None:
    home.write(".claude/x")
    home.write("other/secret", "never")
    plan = home.plan("claude")
    os.rename(os.path.join(home.path, ".claude"), os.path.join(home.path, "away"))
    home.link(".claude", "other")
    from podbot.credentials.pack import pack

    with pytest.raises(CredentialUnreadable, match="target changed"):
        pack(plan, home.events.append)


@pytest.mark.parametrize("kind", ["file", "loop", "fifo"])
def test_a_family_that_is_not_a_directory(home: Home, kind: str) -> None:
    path = os.path.join(home.path, ".claude")
    if kind == "file":
        home.write(".claude", "x")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        home.link(".claude", ".claude")
    with pytest.raises(CredentialUnreadable) as caught:
        home.packed("claude")
    assert path in str(caught.value)
    assert "creds.copy_claude = false" in str(caught.value)


def test_the_first_run_file_is_copied(home: Home) -> None:
    home.write(".claude/.credentials.json", "x")
    secret = json.dumps({"theme": "dark", "mcpServers": {"x": {"env": {"TOKEN": "never"}}}})
    home.write(".claude.json", secret)
    bundle = home.packed("claude", first_run=True, key="k" * 40)
    assert bundle.paths == ("/root/.claude",)
    assert members(bundle.archive)[".claude.json"].mode == 0o600
    made = json.loads(contents(bundle.archive)[".claude.json"])
    assert made["theme"] == "dark"
    assert list(made["projects"]) == ["/workspace"]
    assert made["customApiKeyResponses"]["approved"] == ["k" * 20]
    assert "never" not in str(made)
    without = home.packed("claude", first_run=True)
    assert b"kk" not in contents(without.archive)[".claude.json"]


def test_first_run_without_one_on_the_host(home: Home) -> None:
    bundle = home.packed(first_run=True)
    assert bundle.paths == ()
    assert json.loads(contents(bundle.archive)[".claude.json"])["hasCompletedOnboarding"] is True
    engine = FakeEngine()
    engine.create(container())
    upload(engine, SESSION, bundle, home.events.append)
    assert home.events[-1].message == "copied /root/.claude.json into the sandbox"


def test_a_first_run_file_that_is_a_fifo_does_not_block(home: Home) -> None:
    os.mkfifo(os.path.join(home.path, ".claude.json"))
    assert contents(home.packed(first_run=True).archive)


def test_upload(home: Home) -> None:
    home.write(".claude/a", "canary")
    bundle = home.packed("claude")
    assert "canary" not in repr(bundle)
    engine = FakeEngine()
    engine.create(container())
    upload(engine, SESSION, bundle, home.events.append)
    ((path, archive),) = engine.by_name[SESSION].archives
    assert (path, archive) == ("/root", bundle.archive)
    (event,) = home.events
    assert (event.kind, event.fields) == ("credentials.uploaded", {"paths": ["/root/.claude"]})


def test_the_directories_that_an_archive_goes_through_are_known(home: Home) -> None:
    """In the place of an entry the engine replaces a link, and follows one in an entry's path."""
    home.write(".claude/skills/a/SKILL.md")
    home.write(".codex/config.toml")
    for bundle in (home.packed("claude"), home.packed("codex"), home.packed(first_run=True)):
        assert bundle.through == ("/root",)
    above = ("/root", "/root/.local", "/root/.local/share", "/root/.local/share/opencode")
    assert pack(CredentialsPlan(own="opencode"), home.events.append).through == above
    assert home.packed().through == ()


def test_an_upload_that_fails(home: Home) -> None:
    home.write(".claude/a")
    engine = FakeEngine()
    engine.create(container())
    engine.fail("put_archive", UploadFailed(container=SESSION, path="/root", reason="no"))
    with pytest.raises(UploadFailed):
        upload(engine, SESSION, home.packed("claude"), home.events.append)
    assert home.events == []


@pytest.mark.parametrize("kind", ["codex", "gemini", "opencode"])
def test_a_login_of_podbot_s_own_is_a_link_to_the_mounted_copy(home: Home, kind: str) -> None:
    spec = spec_of(kind)
    bundle = pack(CredentialsPlan(own=kind), home.events.append)
    link = members(bundle.archive)[spec.path]
    assert (link.issym(), link.linkname) == (True, f"/run/podbot/login/{os.path.basename(spec.path)}")
    assert contents(bundle.archive) == {path: text.encode() for path, text in spec.texts.items()}
    assert bundle.paths == ()


def test_claude_s_own_login_needs_no_link() -> None:
    assert pack(CredentialsPlan(own="claude"), ignore) == Bundle()


def test_it_replaces_the_login_of_the_family_and_not_its_settings(home: Home) -> None:
    home.write(".codex/auth.json", "of the host")
    home.write(".codex/config.toml", "settings")
    bundle = pack(CredentialsPlan(home.sources("codex"), own="codex"), home.events.append)
    assert contents(bundle.archive) == {".codex/config.toml": b"settings"}
    assert members(bundle.archive)[".codex/auth.json"].issym()


def test_a_login_made_of_a_key_replaces_the_file_of_the_host(home: Home) -> None:
    home.write(".codex/auth.json", "{}")
    home.write(".codex/config.toml", "x = 1")
    plan = dataclasses.replace(home.plan("codex"), keyed="codex", key="c4n4ry-key")
    bundle = pack(plan, ignore)
    found = contents(bundle.archive)
    assert set(found) == {".codex/config.toml", ".codex/auth.json"}
    assert json.loads(found[".codex/auth.json"]) == {"auth_mode": "apikey", "OPENAI_API_KEY": "c4n4ry-key"}
    assert members(bundle.archive)[".codex/auth.json"].mode == 0o600
    assert "c4n4ry" not in repr(plan) + repr(bundle)
    again = pack(dataclasses.replace(plan, key=""), ignore)  # of a session that is started again
    assert set(contents(again.archive)) == {".codex/config.toml"}
