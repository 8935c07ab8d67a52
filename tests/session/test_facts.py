from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podbot.config.models import AppConfig
from podbot.errors import InvalidValue, MountRefused, PathError
from podbot.launch.mounts import plan_mounts
from podbot.launch.types import HostFacts, LaunchRequest, LinkFacts, PathFacts
from podbot.session.facts import collect_facts, git_identity
from tests.faults import ordinary_user

TYPED = LaunchRequest(trusted_workspace=True)


class Host:
    """A home, a working directory in it, and the configured paths."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.home = self.root / "ann"
        self.project = self.home / "proj"
        self.project.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    def config(self, **sections: dict[str, Any]) -> AppConfig:
        made = AppConfig()
        for name, values in sections.items():
            made = dataclasses.replace(made, **{name: dataclasses.replace(getattr(made, name), **values)})
        return made

    def facts(self, config: AppConfig | None = None, *, request: LaunchRequest = TYPED, **more: Any) -> HostFacts:
        kept = {"runtime_dir": str(self.root / "runtime")} | more
        return collect_facts(config or AppConfig(), request, environ=self.environ, **kept)

    def workspace(self, given: str, *, request: LaunchRequest = TYPED) -> PathFacts:
        found = self.facts(self.config(workspace={"host_path": given}), request=request).workspace
        assert found is not None
        return found


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path)
    monkeypatch.chdir(made.project)
    return made


def test_the_plain_facts(host: Host) -> None:
    found = host.facts(engine_socket_path="/nowhere/podman/podman.sock")
    assert found.home == str(host.home)
    assert found.cwd == str(host.project)
    assert found.uid == os.getuid()
    assert re.fullmatch(r"[0-9a-f]{6}", found.nonce)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", found.created)
    assert found.runtime_dir == str(host.root / "runtime")
    assert found.engine_socket_dir == "/nowhere/podman"
    assert found.workspace is None
    assert found.dev_fuse == os.access("/dev/fuse", os.R_OK | os.W_OK)
    assert host.facts().engine_socket_dir is None
    assert host.facts().nonce != found.nonce
    assert host.facts().created != found.created, (
        "sessions of one name that begin in the same second have files of their own"
    )


def test_only_the_variables_that_planning_needs_are_read(host: Host) -> None:
    host.environ |= {"TERM": "xterm", "API_KEY": "s3cret", "OTHER_KEY": "s3cret"}
    found = host.facts(host.config(agent={"env_allowlist": ("API_KEY", "GONE")}))
    assert found.env == {"TERM": "xterm", "API_KEY": "s3cret"}
    assert "s3cret" not in repr(found)


# --- paths ---


@pytest.mark.parametrize("given", [".", "../proj", "~/proj", "{project}", "{project}/"])
def test_a_typed_workspace_is_resolved(host: Host, given: str) -> None:
    given = given.format(project=host.project)
    assert host.workspace(given) == PathFacts(given, str(host.project), "directory")


def test_links_are_resolved_to_the_end(host: Host) -> None:
    (host.root / "real").mkdir()
    (host.project / "one").symlink_to("two")
    (host.project / "two").symlink_to(host.root / "real")
    assert host.workspace("one").resolved == str(host.root / "real")


# --- how the operator spells the workspace ---


@pytest.fixture
def linked(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A home that is reached through a link, as where /home leads to /var/home; the working directory was entered
    through it.
    """
    (host.root / "link").symlink_to("ann")
    host.environ |= {"HOME": str(host.root / "link"), "PWD": str(host.root / "link" / "proj")}
    monkeypatch.chdir(host.root / "link" / "proj")
    return host


@pytest.mark.parametrize(
    "given",
    ["{link}/proj", "/{link}//./proj/", "~/proj", "~/../link/proj", ".", "../proj", "a/..", "../../link/proj"],
)
def test_a_workspace_is_spelled_through_its_links(linked: Host, given: str) -> None:
    (linked.project / "a").mkdir()
    given = given.format(link=linked.root / "link")
    spelled = str(linked.root / "link" / "proj")
    found = linked.workspace(given)
    assert dataclasses.replace(found, links=()) == PathFacts(given, str(linked.project), "directory", spelled)
    assert [link.path for link in found.links] == [str(linked.root / "link")] or given.startswith("~")


@pytest.mark.parametrize("given", ["{real}", "{real}/", "{real}/../proj", "/{real}"])
def test_a_path_without_links_is_spelled_as_it_is(linked: Host, given: str) -> None:
    assert linked.workspace(given.format(real=linked.project)).spelled is None


@pytest.mark.parametrize("pwd", ["", "proj", "/", "/nonexistent", "{root}/link", "/a\0b", "{root}/ann/proj"])
def test_a_pwd_that_is_not_where_we_are_counts_for_nothing(linked: Host, pwd: str) -> None:
    linked.environ["PWD"] = pwd.format(root=linked.root)
    assert linked.workspace(".") == PathFacts(".", str(linked.project), "directory")


def test_a_spelling_that_leads_elsewhere_counts_for_nothing(host: Host) -> None:
    """``link/..`` is the parent of where the link leads to; by its spelling it is the link's own."""
    (host.root / "far" / "away").mkdir(parents=True)
    (host.project / "link").symlink_to(host.root / "far" / "away")
    link = LinkFacts(str(host.project / "link"), str(host.root / "far" / "away"))
    assert host.workspace("link/..") == PathFacts("link/..", str(host.root / "far"), "directory", links=(link,))
    assert host.workspace("link").spelled == str(host.project / "link")


# --- the links through which the working directory was entered ---


@pytest.fixture
def planted(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """An agent left `mono/api -> ../secretproj`, and the operator went there: `cd mono/api`."""
    src = host.root / "src"
    for name in ("mono/.git", "mono/lib", "secretproj/sub", "foo", "parts/one/deep"):
        (src / name).mkdir(parents=True)
    (src / "mono" / "api").symlink_to("../secretproj")
    (src / "mono" / "same").symlink_to("lib")
    go(host, src / "mono" / "api", monkeypatch)
    return host


def go(host: Host, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell's ``cd``, which leaves the name of the directory in PWD."""
    host.environ["PWD"] = str(place)
    monkeypatch.chdir(place)


def planned(host: Host, given: str, *mounts: str, follow_links: bool = False) -> list[str]:
    """The sources that a session would mount."""
    request = LaunchRequest(trusted_workspace=True, follow_links=follow_links, mounts=mounts)
    made = host.config(workspace={"host_path": given})
    found = plan_mounts(made, request, host.facts(made, request=request)).mounts
    return sorted({mount.source for mount in found})


OUT = [".", "..", "../foo", "../foo/", "./..", "sub", "sub/..", "sub/../..", "../secretproj", "../foo/../secretproj"]


@pytest.mark.parametrize("given", OUT)
def test_a_planted_link_in_pwd_selects_no_workspace(planted: Host, given: str) -> None:
    """A shell's ``cd ..`` goes back to mono; the kernel's ``..`` is the parent of secretproj."""
    with pytest.raises(MountRefused) as caught:
        planned(planted, given)
    mono, end = planted.root / "src" / "mono", os.path.realpath(given)
    assert caught.value.reason == f"the link {mono}/api leads out of {mono}, to {planted.root}/src/secretproj"
    assert caught.value.hint.endswith(f"write {end}, or set follow_links.")
    assert planned(planted, given, follow_links=True) == [end]
    assert planned(planted, end) == [end], "the remedy works"


@pytest.mark.parametrize("given", ["../mono", "../mono/lib", "../mono/same", "../mono/lib/.."])
def test_what_the_link_s_author_had_anyway_is_a_workspace(planted: Host, given: str) -> None:
    assert planned(planted, given) == [os.path.realpath(given)]


@pytest.mark.parametrize("given", OUT)
def test_a_planted_link_in_pwd_selects_no_further_mount(planted: Host, given: str) -> None:
    mono = str(planted.root / "src" / "mono")
    with pytest.raises(MountRefused, match=r"the link .*/mono/api leads out") as caught:
        planned(planted, mono, given)
    assert "--follow-links" not in caught.value.hint
    end = os.path.realpath(given)
    if not (mono + "/").startswith(end + "/"):
        assert end in planned(planted, mono, end)


@pytest.mark.parametrize(
    ("links", "place"),
    [
        ({"mono/api": "../secretproj"}, "mono/api/sub"),
        ({"mono/lib/x": "../api"}, "mono/lib/x"),
        ({"mono/lib/x": "../../secretproj/sub"}, "mono/lib/x"),
        ({"mono/lib/x": "{src}/secretproj"}, "mono/lib/x"),
        ({"mono/parts": "../parts"}, "mono/parts/one/deep"),
        ({"parts/one/x": "../../secretproj"}, "parts/one/x"),
    ],
)
@pytest.mark.parametrize("given", [".", "..", "../foo"])
def test_links_anywhere_in_pwd_are_judged(
    planted: Host, links: dict[str, str], place: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second link, one above the working directory, one outside of any repository."""
    src = planted.root / "src"
    for name, text in links.items():
        if name != "mono/api":
            (src / name).symlink_to(text.format(src=src))
    go(planted, src / place, monkeypatch)
    os.makedirs("../foo", exist_ok=True)
    with pytest.raises(MountRefused, match=r"the link .* leads out of"):
        planned(planted, given)


def test_a_link_within_its_repository_leads_out_by_what_follows_it(
    planted: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    mono = planted.root / "src" / "mono"
    go(planted, mono / "same", monkeypatch)
    assert planned(planted, ".") == [str(mono / "lib")]
    assert planned(planted, "..") == [str(mono)]
    with pytest.raises(MountRefused) as caught:
        planned(planted, "../../foo")
    foo = mono.parent / "foo"
    assert caught.value.reason == f"behind the link {mono}/same the path leads out of {mono}, to {foo}"
    assert caught.value.hint.endswith(f"If you mean this directory, write {foo}, or set follow_links.")


@pytest.mark.parametrize("pwd", [None, "", "api", "{src}/foo", "{src}/mono", "{src}/gone", "{src}/secretproj"])
@pytest.mark.parametrize("given", [".", "../foo", "sub"])
def test_a_pwd_that_names_another_directory_refuses_nothing(planted: Host, pwd: str | None, given: str) -> None:
    """``make -C``, or a program that starts podbot elsewhere without a shell."""
    del planted.environ["PWD"]
    if pwd is not None:
        planted.environ["PWD"] = pwd.format(src=planted.root / "src")
    assert planned(planted, given) == [os.path.realpath(given)]


@pytest.mark.parametrize("given", [".", "..", "../foo", "one/..", "../parts/one", "../../src/foo"])
def test_a_link_of_the_operator_s_own_in_pwd_is_followed(
    planted: Host, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """~/work -> /data/src, in a home that is reached through a link as well."""
    src = planted.root / "src"
    (planted.root / "link").symlink_to("ann")
    (planted.home / "work").symlink_to(src)
    planted.environ["HOME"] = str(planted.root / "link")
    go(planted, planted.home / "work" / "parts", monkeypatch)
    assert planned(planted, given) == [os.path.realpath(given)]


def test_an_absolute_path_and_one_of_the_home_do_not_begin_in_pwd(planted: Host) -> None:
    foo = str(planted.root / "src" / "foo")
    assert planned(planted, foo) == [foo]
    assert planned(planted, "~/proj") == [str(planted.project)]
    assert planned(planted, foo, "~/proj") == sorted([foo, str(planted.project)])


def test_a_link_that_is_changed_after_the_check_is_not_a_source(linked: Host) -> None:
    """An agent that can write next to the workspace plants links there."""
    config = linked.config(workspace={"host_path": "~/proj", "container_path": "host"})
    found = linked.facts(config)
    (linked.root / "link").unlink()
    (linked.root / "link").symlink_to("/etc")
    made = plan_mounts(config, TYPED, found)
    assert {mount.source for mount in made.mounts} == {str(linked.project)}
    assert len(made.mounts) == 2


def test_existing_paths(host: Host) -> None:
    (host.project / "file").write_text("x")
    (host.project / "loop").symlink_to("loop")
    assert host.workspace("file").kind == "other"
    assert host.workspace("file/below").kind == "missing"
    assert host.workspace("nothing/at/all").kind == "missing"
    assert host.workspace("loop").kind == "circle"
    assert host.workspace("a\0b").kind == "missing"


def test_a_directory_that_this_user_may_not_open(open_directory: str) -> None:
    host = Host(Path(open_directory))
    with ordinary_user():
        assert host.workspace(str(host.project)).kind == "directory"
    host.project.chmod(0)
    with ordinary_user():
        assert host.workspace(str(host.project)).kind == "unreadable"


@pytest.mark.parametrize("given", [None, "", "  "])
def test_no_workspace(host: Host, given: str | None) -> None:
    assert host.facts(host.config(workspace={"host_path": given})).workspace is None


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("workspace", {"host_path": "proj"}),
        ("workspace", {"host_path": "."}),
        ("workspace", {"allowed_roots": (".",)}),
        ("workspace", {"allowed_roots": ("/srv", "src")}),
        ("sandbox", {"extra_mounts": ("data:/data",)}),
        ("sandbox", {"extra_mounts": ("/data",)}),
    ],
)
def test_a_configured_path_never_depends_on_the_working_directory(
    host: Host, section: str, values: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue) as caught:
        host.facts(host.config(**{section: values}), request=LaunchRequest())
    assert caught.value.field == f"{section}.{next(iter(values))}"


def test_roots_and_extra_mounts_are_resolved_with_the_home(host: Host) -> None:
    (host.root / "link").symlink_to(host.home)
    found = host.facts(
        host.config(
            workspace={"allowed_roots": ("~", str(host.root / "link" / "proj"))},
            sandbox={"extra_mounts": ("~/proj:/p:ro", "/nonexistent/x:/x")},
        )
    )
    assert [root.resolved for root in found.allowed_roots] == [str(host.home), str(host.project)]
    assert found.extra_mounts == (
        PathFacts("~/proj", str(host.project), "directory"),
        PathFacts("/nonexistent/x", "/nonexistent/x", "missing"),
    )


def test_typed_mounts_come_after_the_configured_ones_and_may_be_relative(host: Host) -> None:
    request = LaunchRequest(mounts=("../ref:ro", "~/proj:/p"))
    found = host.facts(host.config(sandbox={"extra_mounts": ("/nonexistent/x:/x",)}), request=request)
    assert [(source.given, source.resolved) for source in found.extra_mounts] == [
        ("/nonexistent/x", "/nonexistent/x"),
        ("../ref", str(host.home / "ref")),
        ("~/proj", str(host.project)),
    ]


def test_the_target_of_a_protected_link_is_refused_as_a_typed_mount(host: Host) -> None:
    keys = host.root / "keys"
    keys.mkdir()
    (host.home / ".ssh").symlink_to(keys)
    assert str(keys) in host.facts(request=LaunchRequest(mounts=(str(keys),))).protected


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_usable_home_the_users_own_counts(host: Host, home: str | None) -> None:
    if home is None:
        del host.environ["HOME"]
    else:
        host.environ["HOME"] = home
    assert os.path.isabs(host.facts().home)


def test_a_user_without_an_entry_has_no_home(host: Host) -> None:
    del host.environ["HOME"]
    assert host.facts(uid=2_000_000_000).home == "/"


def test_a_removed_working_directory(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = host.root / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(PathError, match="working directory"):
        host.facts()


# --- links at refused places ---


def test_where_links_at_refused_places_lead_is_refused_too(host: Host) -> None:
    keys = host.root / "vault" / "keys"
    keys.mkdir(parents=True)
    (host.home / ".ssh").symlink_to(keys)
    for given in (keys, keys.parent):
        config = host.config(workspace={"host_path": str(given), "source": "host_mount"})
        found = host.facts(config)
        assert str(keys) in found.protected
        with pytest.raises(MountRefused, match="target of a link"):
            plan_mounts(config, TYPED, found)


def test_a_link_into_a_credential_directory_is_checked_by_its_target(host: Host) -> None:
    (host.home / ".aws").mkdir()
    (host.project / "innocent").symlink_to(host.home / ".aws")
    config = host.config(workspace={"host_path": "innocent"})
    with pytest.raises(MountRefused, match="credentials"):
        plan_mounts(config, TYPED, host.facts(config))


def test_a_project_in_a_plain_home_is_fine(host: Host) -> None:
    config = host.config(workspace={"host_path": "."})
    assert plan_mounts(config, TYPED, host.facts(config)).workspace.source == str(host.project)


# --- git ---


def git_config(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def identity(host: Host) -> tuple[str | None, str | None]:
    found = host.facts()
    return found.git_name, found.git_email


def test_an_absolute_include_leads_into_a_workspace_only_at_the_same_path(host: Host) -> None:
    git_config(host.project / "shared.cfg", "[commit]\n\tgpgsign = true\n")
    git_config(host.project / ".git" / "config", f"[include]\n\tpath = {host.project}/shared.cfg\n")

    def settings(place: str) -> tuple[tuple[str, str], ...]:
        config = host.config(workspace={"host_path": "~/proj", "container_path": place})
        return host.facts(config).repository.settings

    assert settings("host") == (("commit.gpgsign", "true"),)
    assert settings("/work") == ()


def test_the_operators_identity_with_what_it_includes(host: Host) -> None:
    git_config(host.home / ".gitconfig", "[user]\n\tname = Ann Ä\n[include]\n\tpath = private\n")
    git_config(host.home / "private", "[user]\n\temail = ann@example.org\n")
    assert identity(host) == ("Ann Ä", "ann@example.org")


def test_a_repository_never_affects_the_identity(host: Host) -> None:
    git_config(host.home / ".gitconfig", "[user]\n\tname = Ann\n\temail = ann@example.org\n")
    subprocess.run(["git", "init", "-q", str(host.project)], check=True, env=host.environ)
    with open(host.project / ".git" / "config", "a", encoding="utf-8") as file:
        file.write("[user]\n\tname = Mallory\n\temail = m@evil\n[core]\n\tfsmonitor = touch pwned\n")
    assert identity(host) == ("Ann", "ann@example.org")
    assert not (host.project / "pwned").exists()


def test_variables_that_redirect_git_have_no_effect(host: Host) -> None:
    host.environ |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Mallory"}
    host.environ["GIT_DIR"] = str(host.project / ".git")
    assert identity(host)[0] != "Mallory"


def test_an_identity_with_a_line_break_is_not_used(host: Host) -> None:
    git_config(host.home / ".gitconfig", '[user]\n\tname = "A\\nB"\n\temail = " "\n')
    host.environ["XDG_CONFIG_HOME"] = str(host.home)
    assert identity(host) == (None, None)


def test_without_git_there_is_no_identity(host: Host) -> None:
    host.environ["PATH"] = str(host.root)
    assert identity(host) == (None, None)


def test_a_git_that_hangs_is_not_waited_for(host: Host) -> None:
    git = host.root / "git"
    git.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    git.chmod(0o755)
    host.environ["PATH"] = str(host.root)
    assert git_identity(host.environ, seconds=0.05) == (None, None)


def test_login_variables_that_are_set_here_are_known_by_name_only(host: Host) -> None:
    host.environ |= {"OPENAI_API_KEY": "sk-1", "CODEX_API_KEY": " ", "ANTHROPIC_API_KEY": "sk-2"}
    found = host.facts(host.config(agent={"kind": "codex"}))
    assert found.login_variables == ("OPENAI_API_KEY",)
    assert "sk-" not in repr(found)
    assert host.facts(host.config(agent={"kind": "custom"})).login_variables == ()
    host.environ |= {"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_USE_VERTEX": "0"}
    assert host.facts(host.config(agent={"kind": "claude"})).login_variables == ("ANTHROPIC_API_KEY",)


def test_existing_credential_families(host: Host) -> None:
    assert host.facts().credentials == ()
    (host.root / "dots").mkdir()
    (host.home / ".claude").symlink_to(host.root / "dots")
    (host.home / ".codex").symlink_to("nowhere")
    (found,) = host.facts().credentials
    assert (found.family, found.target) == ("claude", "/root/.claude")
    assert (found.given, found.source) == (str(host.home / ".claude"), str(host.root / "dots"))
    assert not found.logged_in
    login = host.root / "dots" / ".credentials.json"
    login.write_text("{}")
    assert [found.logged_in for found in host.facts().credentials] == [False]
    login.write_text('{"claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "scopes": ["user:inference"]}}')
    assert [found.logged_in for found in host.facts().credentials] == [True]


def test_the_directories_that_the_agents_own_variables_name(host: Host) -> None:
    (host.home / ".claude").mkdir()
    (host.root / "other").mkdir()
    (host.root / "other" / ".credentials.json").write_text("{}")
    host.environ |= {"CLAUDE_CONFIG_DIR": str(host.root / "other"), "CODEX_HOME": "relative"}
    found = host.facts()
    assert [(source.family, source.given) for source in found.credentials] == [("claude", str(host.root / "other"))]
    assert dict(found.credentials[0].files) == {".credentials.json": b"{}"}
    assert found.login_dirs == (("claude", str(host.root / "other")),)
    with pytest.raises(InvalidValue, match="CODEX_HOME"):
        host.facts(host.config(agent={"kind": "codex"}))


def test_credential_families_have_one_order_and_unreadable_is_not_missing(host: Host) -> None:
    (host.home / ".codex").symlink_to(".codex")
    (host.home / ".claude").write_text("")
    assert [found.family for found in host.facts().credentials] == ["claude", "codex"]


@pytest.mark.parametrize(
    ("text", "renews"),
    [
        ('{"tokens": {"refresh_token": "r"}}', True),
        ('{"OPENAI_API_KEY": "sk-1", "tokens": null}', False),
        ('{"tokens": {"refresh_token": ""}}', False),
        ('["tokens"]', False),
        ("{", False),
    ],
    ids=["login", "key", "empty", "list", "cut"],
)
def test_whether_a_login_renews_itself(host: Host, text: str, renews: bool) -> None:
    (host.home / ".codex").mkdir()
    (host.home / ".codex" / "auth.json").write_text(text)
    assert [found.renews for found in host.facts().credentials if found.family == "codex"] == [renews]


@pytest.mark.parametrize("renewable", [True, False])
def test_a_login_that_works_can_be_kept_apart(host: Host, renewable: bool) -> None:
    (host.home / ".codex").mkdir()
    text = '{"tokens": {"access_token": "a", "refresh_token": "c4n4ry"}}'
    (host.home / ".codex" / "auth.json").write_text(text)
    found = host.facts(host.config(creds={"copy_refresh_tokens": renewable}))
    (codex,) = (source for source in found.credentials if source.family == "codex")
    assert (codex.logged_in, codex.alone, codex.renews) == (True, True, renewable)
    assert (b"c4n4ry" in bytes(codex.files["auth.json"])) is renewable  # type: ignore[arg-type]


def test_a_login_of_podbot_s_own_is_known_for_the_configured_agent(host: Host) -> None:
    host.environ["XDG_STATE_HOME"] = str(host.root)
    codex = host.config(agent={"kind": "codex"})
    assert host.facts(codex).own_logins == ()
    login = host.root / "podbot" / "logins" / "codex" / "login"
    login.parent.mkdir(parents=True, mode=0o700)
    login.write_text("{}")
    (host.root / "podbot").chmod(0o700)
    assert host.facts(codex).own_logins == ("codex",)
    assert host.facts().own_logins == ()


def test_the_certificates_of_the_operators_file_are_read(host: Host) -> None:
    assert host.facts().certificates is None
    with pytest.raises(InvalidValue, match=r"/ann/company\.pem: No such file"):
        host.facts(host.config(sandbox={"ca_certificates": "~/company.pem"}))


@pytest.mark.parametrize("given", ["~/keys/app.pem", "{home}/keys/app.pem", " ~/keys/app.pem "])
def test_the_private_key_is_known_by_both_of_its_names(host: Host, given: str) -> None:
    real = host.root / "data"
    real.mkdir()
    (host.home / "keys").symlink_to(real)
    path = given.format(home=host.home)
    facts = host.facts(host.config(github={"private_key_path": path}))
    assert facts.private_key == (str(host.home / "keys" / "app.pem"), str(real / "app.pem"))


@pytest.mark.parametrize("given", [None, "", "relative.pem", "~", "/a\0b"])
def test_an_invalid_key_path_is_ignored(host: Host, given: str | None) -> None:
    facts = host.facts(host.config(github={"private_key_path": given}))
    assert facts.private_key == ((str(host.home),) if given == "~" else ())
