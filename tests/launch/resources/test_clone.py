from __future__ import annotations

import string
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podbot.agents.registry import agent
from podbot.config.models import DEFAULT_ORIGIN, Origin
from podbot.container_spec import Mount
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired, MountRefused
from podbot.launch.plan import plan_session
from podbot.launch.resources.clone import ClonePlan, Server, checked_branch, checked_repo, server_of
from podbot.launch.resources.guest import GuestPlan
from podbot.launch.resources.token import TokenPlan
from podbot.launch.types import LaunchPlan, LaunchRequest
from tests.examples import examples
from tests.launch.build import config, directory, facts, resource, text_of, typed

BASE = "/work"  # workspace.base_dir

APP: dict[str, Any] = {
    "github.app_id": 12345,
    "github.installation_id": 67890,
    "github.private_key_path": "/home/ann/.config/podbot/app.pem",
    "workspace.source": "github_clone",
    "workspace.host_path": None,
}
SHOP = LaunchRequest(repo="octo/shop")


def plan(
    values: dict[str, Any] | None = None,
    request: LaunchRequest = SHOP,
    origins: dict[str, Origin] | None = None,
    **changes: Any,
) -> LaunchPlan:
    return plan_session(config(APP | (values or {}), origins), request, facts(workspace=None, **changes))


def test_a_whole_clone() -> None:
    made = plan({"workspace.depth": 3, "workspace.submodules": True}, LaunchRequest(repo="octo/Shop.js", branch="b/1"))
    assert made.sandbox.session == "podbot-shop-js-0a1b2c"
    assert resource(made, ClonePlan) == ClonePlan(
        repo="octo/Shop.js",
        branch="b/1",
        url="https://github.com/octo/Shop.js.git",
        server="https://github.com",
        directory="/work/Shop.js",
        depth=3,
        submodules=True,
    )
    assert resource(made, TokenPlan) == TokenPlan(
        app_id=12345,
        installation_id=67890,
        private_key_path="/home/ann/.config/podbot/app.pem",
        server_url="https://github.com",
        server="https://github.com",
        api_url=None,
        repo="octo/Shop.js",
        permissions={"contents": "write", "pull_requests": "write", "metadata": "read"},
        secrets_dir="/run/user/1000/podbot/podbot-shop-js-0a1b2c/secrets",
    )
    assert made.sandbox.workspace is None
    assert made.sandbox.keep == "when_unsaved"
    assert resource(made, GuestPlan).leased  # it ends with its podbot, and stays until its work was looked at
    assert not made.sandbox.container.auto_remove
    assert made.agent.command.workdir == "/work/Shop.js"
    container = made.sandbox.container
    assert (container.workdir, container.make_workdir, container.mounts) == ("/work/Shop.js", True, ())
    assert [(file.target, file.read_only) for file in container.files] == [
        ("/run/podbot/askpass", True),
        ("/run/podbot/gitconfig", True),
        ("/etc/claude-code/managed-settings.d/podbot-connectors.json", True),
        ("/etc/claude-code/managed-settings.d/podbot.json", True),
        ("/run/secrets", True),
        ("/root/.claude/projects", False),
        ("/run/podbot/guest", True),
    ]
    assert container.files[4].source == resource(made, TokenPlan).secrets_dir
    assert container.env == {
        "STORAGE_DRIVER": "vfs",
        "GIT_CONFIG_SYSTEM": "/run/podbot/gitconfig",
        **agent("claude").env,
        "GIT_ASKPASS": "/run/podbot/askpass",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "credential.https://github.com.helper",
        "GIT_CONFIG_VALUE_0": "",
    }
    labels = {key.removeprefix("io.podbot."): value for key, value in container.labels.items()}
    assert (labels["workspace"], labels["repo"], labels["path"]) == ("github_clone", "octo/Shop.js", "/work/Shop.js")
    assert labels["keep"] == "when_unsaved"
    assert "https://github.com" in text_of(made, "/run/podbot/askpass")
    assert made.sandbox.notes[:2] == (
        "cloning https://github.com/octo/Shop.js.git, branch b/1, into /work/Shop.js",
        "the agent gets a GitHub token for octo/Shop.js (contents: write, metadata: read, pull_requests: write)",
    )


def test_without_a_branch_a_notice_says_so() -> None:
    assert "its default branch" in plan().sandbox.notes[0]
    assert "(metadata: read)" in plan({"github.permissions": {}}).sandbox.notes[1]


def test_host_clones_too() -> None:
    made = plan_session(
        config(APP | {"agent.mode": "acp"}), LaunchRequest(repo="octo/shop"), facts(workspace=None), "host"
    )
    assert made.agent.command.workdir == f"{BASE}/shop"


@pytest.mark.parametrize(
    ("value", "origin", "keep"),
    [
        (False, DEFAULT_ORIGIN, "when_unsaved"),
        (False, Origin("flag", "--rm"), "never"),
        (False, Origin("file", "/c"), "never"),
        (True, Origin("flag", "--keep"), "always"),
        (True, DEFAULT_ORIGIN, "always"),
    ],
)
def test_keep_set_anywhere_overrides_the_default(value: bool, origin: Origin, keep: str) -> None:
    made = plan({"session.keep": value}, origins={"session.keep": origin})
    assert made.sandbox.keep == keep
    assert made.sandbox.container.labels["io.podbot.keep"] == {"always": "true", "never": "false"}.get(keep, keep)


# --- what goes together ---------------------------------------------------------------------------------


def test_a_directory_that_only_the_file_names_is_overridden() -> None:
    assert plan({"workspace.host_path": "/home/ann/src/proj"}).sandbox.find(ClonePlan) is not None


def test_a_repository_and_a_typed_directory() -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan({"workspace.host_path": "/home/ann/src/proj"}, typed(repo="octo/shop"))
    assert "repository = octo/shop (LaunchRequest.repo)" in str(caught.value)
    assert "/home/ann/src/proj is named as the workspace, too" in str(caught.value)


def test_a_repository_where_a_directory_is_mounted() -> None:
    with pytest.raises(IllegalCombination, match=r"workspace\.source = host_mount .* a repository \(octo/shop\)"):
        plan({"workspace.source": "host_mount", "workspace.host_path": "/home/ann/src/proj"})


@pytest.mark.parametrize("origin", [DEFAULT_ORIGIN, Origin("file", "/c")])
def test_no_workspace_at_all(origin: Origin) -> None:
    with pytest.raises(MissingRequired) as caught:
        plan(request=LaunchRequest(), origins={"workspace.source": origin})
    assert "Set workspace.host_path and workspace.source = host_mount, or name a repository to clone." in str(
        caught.value
    )


def test_a_host_path_without_effect_is_reported() -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan({"workspace.host_path": "/home/ann/src/proj"}, LaunchRequest())
    assert 'workspace.source = "host_mount"' in caught.value.hint


@pytest.mark.parametrize(
    ("request_", "origins", "flag"),
    [
        (typed(branch="main", flags={"branch": "--branch"}), {}, "--branch"),
        (typed(branch="main"), {}, "LaunchRequest.branch"),
        (typed(), {"workspace.depth": Origin("flag", "--depth")}, "--depth"),
        (typed(), {"workspace.submodules": Origin("flag", "--submodules")}, "--submodules"),
    ],
)
def test_a_flag_for_clones_without_a_repository(request_: LaunchRequest, origins: dict[str, Origin], flag: str) -> None:
    with pytest.raises(
        InvalidValue, match=r"it is only for a clone, and no repository is named\. Leave it out"
    ) as raised:
        plan_session(config(origins=origins), request_, facts())
    assert raised.value.origin in (flag, f"flag {flag}")


def test_the_files_keys_for_clones_do_not_affect_a_mount() -> None:
    assert plan_session(config({"workspace.depth": 3}), typed(), facts()).sandbox.find(ClonePlan) is None


# --- mounts beside a clone ------------------------------------------------------------------------------


def mounted(target: str, **changes: Any) -> LaunchPlan:
    values = {"sandbox.extra_mounts": (f"/data/ref:{target}:ro",)}
    return plan(values, allowed_roots=(directory("/data"),), extra_mounts=(directory("/data/ref"),), **changes)


def test_more_mounts() -> None:
    assert mounted("/reference").sandbox.container.mounts == (Mount("/data/ref", "/reference", True),)
    assert mounted("/work").sandbox.container.mounts[0].target == "/work"


@pytest.mark.parametrize("target", [f"{BASE}/shop", f"{BASE}/shop/sub"])
def test_no_mount_at_the_clones_path(target: str) -> None:
    with pytest.raises(MountRefused, match=f"the repository is cloned into {BASE}/shop"):
        mounted(target)


@pytest.mark.parametrize("key", ["/data/ref/app.pem", "/data/ref/keys/app.pem"])
def test_no_mount_contains_the_private_key(key: str) -> None:
    with pytest.raises(MountRefused, match="the GitHub App's private key"):
        mounted("/reference", private_key=(key,))
    mounted("/reference", private_key=("/data/app.pem",))


# --- where it goes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "where"), [("/src", "/src/shop"), ("//a//b/", "/a/b/shop"), ("/root/x", "/root/x/shop")]
)
def test_base_dir(base: str, where: str) -> None:
    made = plan({"workspace.base_dir": base})
    assert resource(made, ClonePlan).directory == where


@pytest.mark.parametrize(
    "base", ["/", "/root", "/etc", "/run/x", "/usr", "work", "/a/../etc", "/./a", "/a\nb", "/root/.ssh", "", "/proc"]
)
def test_a_base_dir_that_the_sandbox_itself_needs(base: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        plan({"workspace.base_dir": base})
    assert caught.value.field == "workspace.base_dir"


# --- names ----------------------------------------------------------------------------------------------

OWNERS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}", fullmatch=True)
NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,100}", fullmatch=True).filter(
    lambda name: name not in (".", "..") and not name.lower().endswith(".git")
)


def refused(check: Callable[[str, str], str], text: str) -> InvalidValue | None:
    try:
        assert check(text, "the caller") == text
    except InvalidValue as error:
        return error
    return None


def on_github(text: str, origin: str) -> str:
    return checked_repo(text, origin, "https://github.com")


@given(OWNERS, NAMES)
def test_a_repository_s_name(owner: str, name: str) -> None:
    assert on_github(f"{owner}/{name}", "the caller") == f"{owner}/{name}"
    made = plan(request=LaunchRequest(repo=f"{owner}/{name}"))
    assert resource(made, ClonePlan).directory == f"/work/{name}"


@pytest.mark.parametrize(
    "text",
    [
        "", "shop", "/shop", "octo/", "octo/shop/x", "octo//shop", "-o/shop", "o o/shop", "octo/.", "octo/..",
        "octo/sh op", "octo/shop\n", "octo\n/shop", "octo/shöp", "öcto/shop", f"{'o' * 40}/shop", f"octo/{'s' * 101}",
        "octo/shop.git", "octo/.git", "octo/shop.GIT", "../shop", "octo/shop;x", "octo/$(x)", "octo/\x1b[m",
    ],
)  # fmt: skip
def test_invalid_repository_names(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        on_github(text, "the caller")
    assert caught.value.origin == "the caller"
    assert "Write octo/" in caught.value.hint or "owner/name" in caught.value.hint


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_an_error(text: str) -> None:
    refusal = refused(on_github, text)
    if refusal is None:
        assert set(text) <= {*string.ascii_letters, *string.digits, *"._-/"}
    else:
        assert refusal.message.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/octo/shop", "https://github.com/octo/shop.git", "https://www.github.com/octo/shop/",
        "HTTPS://GitHub.com:443/octo/shop", "user@github.com:octo/shop",
        "https://github.com/octo/shop/issues/1?x#y", "git@github.com:octo/shop.git", "ssh://git@github.com/octo/shop",
        "octo/shop.git", "https://user:pw@github.com/octo/shop", "octo/shop/tree",
    ],
)  # fmt: skip
def test_a_pasted_address_gets_a_hint(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        on_github(text, "the caller")
    assert caught.value.hint == "Write octo/shop."
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "branch"),
    [
        ("https://github.com/octo/shop/tree/main?x#y", "main"),
        ("octo/shop/tree/main", "main"),
        ("https://github.com/octo/shop/tree/a/b/", "a/b"),
    ],
)
def test_a_pasted_address_of_a_branch_is_taken_apart(text: str, branch: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        on_github(text, "the caller")
    assert caught.value.hint == f"Write octo/shop, and name the branch {branch} by itself."


CLONE_IT = "Clone it yourself, and name its directory in place of the repository."


@pytest.mark.parametrize(
    ("text", "host", "hint"),
    [
        ("https://gitlab.com/a/b", "gitlab.com", CLONE_IT.replace("it", "https://gitlab.com/a/b", 1)),
        ("https://u:hunter2@gitlab.com/a/b.git", "gitlab.com", CLONE_IT.replace("it", "https://gitlab.com/a/b.git", 1)),
        ("https://github.com@gitlab.com/a/b", "gitlab.com", CLONE_IT.replace("it", "https://gitlab.com/a/b", 1)),
        (
            "https://github.com.example/a/b",
            "github.com.example",
            CLONE_IT.replace("it", "https://github.com.example/a/b", 1),
        ),
        ("https://github.com:8443/a/b", "github.com:8443", CLONE_IT.replace("it", "https://github.com:8443/a/b", 1)),
        (
            "https://gitlab.com/a/b?private_token=hunter2",
            "gitlab.com",
            CLONE_IT.replace("it", "https://gitlab.com/a/b", 1),
        ),
        ("https://gitlab.com/a/b;$(id)", "gitlab.com", CLONE_IT),
        ("git@gitlab.com:a/b.git", "gitlab.com", CLONE_IT),
        ("ssh://git@gitlab.com/a/b", "gitlab.com", CLONE_IT),
        ("me@gitlab.com:a/b", "gitlab.com", CLONE_IT),
        ("git://example.com/a/b", "example.com", CLONE_IT),
    ],
)
def test_no_repository_is_proposed_for_an_address_on_another_server(text: str, host: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        on_github(text, "the caller")
    assert caught.value.hint == hint
    assert caught.value.reason.endswith(f" is on {host}, and podbot clones only from github.com (github.server_url)")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["https://[::1/a/b", "https:///a/b", "https://github.com:x/a/b", "file:///a/b"])
def test_an_address_without_a_server_gets_the_form(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        on_github(text, "the caller")
    assert caught.value.hint == "Write it as owner/name, such as octo/hello."


def test_the_server_is_the_configured_one() -> None:
    for server in ("https://ghe.example", "https://ghe.example:443/", "https://ghe.example/"):
        for text in ("https://ghe.example/octo/shop", "git@ghe.example:octo/shop.git"):
            with pytest.raises(InvalidValue, match=r"Write octo/shop\."):
                checked_repo(text, "the caller", server)
    with pytest.raises(InvalidValue, match=r"Write octo/shop\."):
        checked_repo("https://ghe.example/git/octo/shop", "the caller", "https://ghe.example/git")
    with pytest.raises(InvalidValue, match=r"is on github\.com, and podbot clones only from ghe\.example"):
        checked_repo("https://github.com/octo/shop", "the caller", "https://ghe.example")


def git_takes(name: str) -> bool:
    words = ["git", "check-ref-format", "--branch", name]
    done = subprocess.run(words, capture_output=True, check=False, cwd="/", env={"GIT_DIR": "/"})
    return done.returncode == 0 and done.stdout == f"{name}\n".encode()


PIECES = st.sampled_from(
    ["a", "b1", "/", ".", "..", "-", "@", "{", "@{", "~", "^", ":", "?", "*", "[", "\\", " ", ".lock", "\x7f", "\x01",
     "HEAD", "ü", "_", "]", "}", "refs/heads/", "lock", "\t", "'", '"', ";", "$"]
)  # fmt: skip


@settings(max_examples=examples(150))
@given(st.lists(PIECES, min_size=1, max_size=5).map("".join))
@example("@{-1}")
@example("a.lock/b")
@example("a/.b")
@example("a.")
def test_branch_names_follow_gits_rules(name: str) -> None:
    refusal = refused(checked_branch, name)
    meant_otherwise = name == "@" or name.startswith("refs/")
    assert (refusal is None) == (git_takes(name) and not meant_otherwise)
    assert refusal is None or refusal.message.isprintable()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("refs/heads/main", "Write main."),
        ("refs/heads/a/b", "Write a/b."),
        ("refs/heads/refs/heads/main", "such as main"),
        ("refs/tags/v1", "such as main"),
        ("refs/heads/", "such as main"),
        ("@", "such as main"),
    ],
)
def test_a_ref_is_refused_before_a_token_is_issued(name: str, remedy: str) -> None:
    """Issue 10.3: git looked for refs/heads/refs/heads/main, after a token had been issued."""
    with pytest.raises(InvalidValue) as caught:
        plan(request=LaunchRequest(repo="octo/shop", branch=name))
    assert remedy in caught.value.hint


@pytest.mark.parametrize("name", ["", "a\x00b", "a\ud800", "a" * 245, "HEAD"])
def test_invalid_branch_names(name: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be the name of a branch"):
        plan(request=LaunchRequest(repo="octo/shop", branch=name))


@pytest.mark.parametrize(
    ("url", "origin", "base"),
    [
        ("https://github.com", "https://github.com", "https://github.com"),
        ("https://GitHub.com:443/", "https://github.com", "https://github.com"),
        ("HTTPS://ghe.example:8443//", "https://ghe.example:8443", "https://ghe.example:8443"),
        ("http://127.0.0.1:80/git/", "http://127.0.0.1", "http://127.0.0.1/git"),
        ("http://[::1]:8080", "http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_one_spelling_of_a_server(url: str, origin: str, base: str) -> None:
    assert server_of(url) == Server(origin, base)


def test_the_operators_variables_cannot_send_the_token_elsewhere() -> None:
    env = {"GIT_ASKPASS": "/tmp/x", "GIT_CONFIG_COUNT": "0", "GIT_TERMINAL_PROMPT": "1", "TZ": "UTC"}
    made = plan({"sandbox.env": env}).sandbox.container.env
    assert made["TZ"] == "UTC"
    assert (made["GIT_ASKPASS"], made["GIT_TERMINAL_PROMPT"]) == ("/run/podbot/askpass", "0")
    assert made["GIT_CONFIG_COUNT"] != "0"
