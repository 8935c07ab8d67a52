"""``podbot run --repo``: a clone inside the sandbox, and its token."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import uuid

import pytest

from e2e.clones import CLONE, COMMIT, TOKEN, Site, Thief, fresh, live, site, thief, whole_site
from e2e.forge import git
from e2e.harness import close_world, new_world, processes, wait_for
from e2e.host.pipe import Pipe

__all__ = ["site", "thief", "whole_site"]  # fixtures


# --- other sources of the token ---


def fake_gh(site: Site, token: str) -> dict[str, str]:
    """Variables with which podbot finds a program gh whose login has ``token``; an empty one: it has none."""
    directory = os.path.join(site.world.root, "gh")
    os.makedirs(directory, exist_ok=True)
    said = f"echo {token}" if token else "echo 'no oauth token found for 127.0.0.1' >&2; exit 1"
    script = f'#!/bin/sh\n[ "$*" = "auth token --hostname 127.0.0.1" ] || exit 9\n{said}\n'
    path = os.path.join(directory, "gh")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    os.chmod(path, 0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}"}


def test_a_public_repository_is_cloned_without_a_token(site: Site) -> None:
    fresh(site)
    site.forge.public = {"octo/shop"}
    script = "git log -1 --format=%s; git fetch -q; git push origin HEAD 2>&1 || echo refused; ls /run/secrets 2>&1"
    done = site.script(script, flags=("--github-auth", "none"))
    assert done.returncode != 0, "there is no /run/secrets"
    assert done.stdout.splitlines()[0] == "commit 1", done.stderr
    assert "terminal prompts disabled" in done.stdout, "git does not wait for a password"
    assert done.stdout.splitlines()[-2:] == ["refused", "ls: cannot access '/run/secrets': No such file or directory"]
    assert "octo/shop is cloned without a token, which works if it is public; to push, set github.auth" in done.stderr
    assert not [op for op in site.forge.operations[-4:] if op.known]
    site.forge.public = set()


def test_a_private_repository_without_a_token_is_one_error(site: Site) -> None:
    fresh(site)
    done = site.script("true", flags=("--github-auth", "none"))
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert "octo/shop cannot be read on http://127.0.0.1:" in error
    assert all(way in error for way in ("it is private, or does not exist", '"gh"', '"env:NAME"', "a GitHub App"))
    assert site.state() == "gone"


@pytest.mark.parametrize("auth", ["gh", "env:MINE"])
def test_a_token_of_one_s_own_takes_the_way_of_an_app_s(site: Site, auth: str) -> None:
    fresh(site)
    token = f"ghp_{uuid.uuid4().hex}"
    site.forge.personal = {token}
    env = {**fake_gh(site, token), "MINE": token}
    flags = ("--github-auth", auth)
    script = (
        f"{COMMIT}; git push -q origin HEAD; cat {TOKEN}; echo; stat -c %a {TOKEN};"
        f' ! grep -r "$(cat {TOKEN})" .git; ! env | grep "$(cat {TOKEN})"'
    )
    done = site.script(script, flags=(*flags, "--keep"), env=env)
    assert (done.returncode, done.stdout) == (0, f"{token}\n600\n"), done.stderr
    assert git("log", "-1", "--format=%s", "main", cwd=site.forge.path("octo/shop")) == "more"
    assert token not in done.stderr
    assert token not in site.world.podman("inspect", site.name).stdout
    assert "in all repositories" in done.stderr
    secrets = os.path.join(site.world.env["XDG_RUNTIME_DIR"], "podbot", site.name, "secrets")
    assert not os.path.exists(secrets) or os.listdir(secrets) == []
    again = site.world.podbot("start", site.name, env=env)
    assert again.returncode == 0, again.stderr
    pushed = site.world.podbot("exec", site.name, "sh", "-c", "git commit -q --allow-empty -m x && git push -q")
    assert pushed.returncode == 0, pushed.stderr
    site.forge.personal = set()


def test_a_gh_without_a_login_is_one_error_before_anything_is_made(site: Site) -> None:
    fresh(site)
    done = site.script("true", flags=("--github-auth", "gh"), env=fake_gh(site, ""))
    assert done.returncode == 1
    assert "cannot take a GitHub token from your `gh` login for 127.0.0.1: no oauth token found" in done.stderr
    assert site.state() == "gone"


# --- the clone, and git inside it --------------------------------------------------------------------


def test_a_branch_is_cloned_and_can_be_pushed_from_nested_shells(site: Site) -> None:
    fresh(site, branches=("main", "work/one"))
    push = f"{COMMIT}; bash -c 'sh -c \"git push -q origin HEAD\"'"
    done = site.script(f"pwd; git symbolic-ref HEAD; {push}; git fetch -q", flags=("--branch", "work/one"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [CLONE, "refs/heads/work/one"]
    assert git("log", "-1", "--format=%s", "work/one", cwd=site.forge.path("octo/shop")) == "more"
    assert site.forge.failed == []
    assert site.state() == "gone", "everything was pushed"
    assert "the agent gets a GitHub token for octo/shop" in done.stderr


def test_without_a_branch_the_default_one_is_cloned_and_named(site: Site) -> None:
    fresh(site, branches=("trunk", "main"))
    done = site.script("git symbolic-ref --short HEAD")
    assert (done.returncode, done.stdout) == (0, "trunk\n"), done.stderr
    assert f"cloned octo/shop, branch trunk, into {CLONE}" in done.stderr


def test_a_new_branch_can_be_pushed_from_a_shallow_clone(site: Site) -> None:
    fresh(site, commits=5)
    script = f"git rev-list --count HEAD; git switch -qc topic; {COMMIT}; git push -q origin topic"
    done = site.script(script, flags=("--depth", "1"))
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert site.state() == "gone", f"the server has it, though no remote-tracking branch shows it: {done.stderr}"


def test_exec_works_in_the_clone_with_the_token(site: Site) -> None:
    fresh(site)
    with live(site):
        done = site.world.podbot(
            "exec", site.name, "--", "sh", "-c", "pwd; git fetch && git push origin HEAD:refs/heads/x"
        )
        assert (done.returncode, done.stdout) == (0, f"{CLONE}\n"), done.stderr
        (row,) = json.loads(site.world.podbot("ps", "--json").stdout)
        assert (row["workspace"], row["path"], row["state"]) == ("github_clone", "octo/shop", "running")


def test_the_token_is_only_in_its_file(site: Site) -> None:
    fresh(site)
    with live(site, before="git fetch -q"):
        path = os.path.join(site.world.runtime, site.name, "secrets", "ghapp_token")
        with open(path, encoding="ascii") as file:
            token = file.read().strip()
        assert token.startswith("ghs_")
        assert token not in site.world.podman("inspect", site.name).stdout
        assert token not in " ".join(command for _, command in processes())
        search = "grep -rlsF -f /run/secrets/ghapp_token /root /work /tmp /etc /home /var /run /opt | sort"
        found = site.world.podbot("exec", site.name, "--", "sh", "-c", f"{search}; env; git config --list")
        assert found.stdout.splitlines()[0] == TOKEN
        assert found.stdout.count(TOKEN) == 1
        assert token not in found.stdout
        left = [os.path.join(d, f) for d, _, files in os.walk(site.world.runtime) for f in files]
        texts = [name for name in left if name != path and not name.endswith(".sock")]
        for name in texts:
            with open(name, "rb") as file:
                assert token.encode() not in file.read(), name


@pytest.mark.parametrize("place", ["/etc/gitconfig", "~/.gitconfig", ".git/config"])
def test_a_credential_helper_does_not_keep_the_token(site: Site, place: str) -> None:
    fresh(site)
    helper = f"printf '[credential]\\n\\thelper = store\\n' >> {place}"
    script = f"{helper}; git config credential.helper; git fetch; test ! -e ~/.git-credentials"
    done = site.script(f"{script}; env -u GIT_CONFIG_COUNT git fetch; test -e ~/.git-credentials")  # it would otherwise
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("store\n")


def test_another_server_gets_no_token(site: Site, thief: str) -> None:
    modules = f'[submodule "a"]\n\tpath = a\n\turl = http://{thief}/a/b\n'
    fresh(site, files={".gitmodules": modules, "README.md": "x"})
    ours = site.forge.server_url.removeprefix("http://")
    addresses = (f"http://{thief}/x/y", f"http://x-access-token@{thief}/x/y", f"http://{ours}@{thief}/x/y")
    script = "; ".join(f"git ls-remote {address} && exit 9" for address in addresses)
    done = site.script(f"{script}; git -c credential.useHttpPath=true ls-remote http://{thief}/x && exit 9; exit 0")
    assert done.returncode == 0, done.stderr
    assert f"podbot: the session's token is for {site.forge.server_url} only" in done.stderr
    secrets = [base64.b64decode(text.removeprefix("Basic ")).decode() for text in Thief.heard if text]
    assert len(Thief.heard) >= 4
    assert all("ghs_" not in secret for secret in secrets), secrets


def test_a_submodule_of_another_repository_needs_its_own_access(site: Site) -> None:
    fresh(site, "octo/lib")
    fresh(site, submodules={"lib": "octo/lib"})
    done = site.script("true", flags=("--submodules",))
    assert done.returncode == 1
    assert "could not clone octo/shop: a submodule failed" in done.stderr
    assert "token is for octo/shop alone" in done.stderr
    assert site.state() == "gone"
    assert site.script("ls -d lib").returncode == 0, "without --submodules the rest is cloned"


# --- what cannot be cloned ------------------------------------------------------------------------------


BAD = {
    "a branch that is missing": (("--branch", "mian"), "octo/shop has no branch mian. Did you mean main?"),
    "a tag": (("--branch", "v1"), "octo/shop has no branch v1, only a tag of that name"),
    "no access": (("--repo", "octo/none"), "access to octo/none"),
    "an empty repository": (("--repo", "octo/empty"), "octo/empty is empty: it has no commit"),
    "an empty repository's branch": (("--repo", "octo/empty", "--branch", "main"), "octo/empty is empty"),
    "another server": (("--repo", "https://github.com/octo/shop.git"), "is on github.com, and podbot clones only from"),
    "a directory as well": (("--workspace", "."), "is named as the workspace, too"),
    "a destination that is taken": (("--repo", "octo/taken"), "already exists and is not an empty directory"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_failed_clone_is_reported_and_leaves_nothing(site: Site, case: str) -> None:
    fresh(site, tags=("v1",))
    fresh(site, "octo/empty", empty=True)
    fresh(site, "octo/taken")
    flags, words = BAD[case]
    options = {"PODBOT_WORKSPACE_BASE_DIR": "/opt"} if case == "a destination that is taken" else {}
    if options:
        flags = ("--image", image_with(site, "mkdir -p /opt/taken/x"), *flags)
    done = site.run("true", flags=flags, env=options)
    assert done.returncode in (1, 2), done.stderr
    assert words in done.stderr
    assert site.state() == "gone"
    assert site.world.sessions() == []


def image_with(site: Site, script: str, *change: str) -> str:
    """The sandbox image after ``script`` ran in it."""
    tag = f"localhost/clone-{uuid.uuid4().hex[:8]}"
    with site.world.session() as name:
        assert site.world.podbot("exec", name, "--", "sh", "-c", script).returncode == 0
        done = site.world.podman("commit", "-q", *change, name, tag, timeout=300)
        assert done.returncode == 0, done.stderr
    return tag


def test_an_image_without_git(site: Site) -> None:
    fresh(site)
    done = site.run("true", flags=("--image", image_with(site, "rm $(command -v git)")))
    assert done.returncode == 1
    assert "has no git, so nothing can be cloned in it" in done.stderr
    assert site.state() == "gone"


def test_a_clone_in_an_image_with_a_user_of_its_own(site: Site) -> None:
    """Issue 29.23: that user could not read the token; the agent is root inside, whatever the image says."""
    fresh(site)
    image = image_with(site, "chmod 777 /opt", "--change", "USER 1000")
    script = f"id -u; test -s {TOKEN} && git fetch && echo fetched"
    done = site.run("sh", "-c", script, flags=("--image", image), env={"PODBOT_CREDS_COPY_CLAUDE": "false"})
    assert done.stdout.split() == ["0", "fetched"], done.stderr
    assert site.state() == "gone"


def test_all_missing_keys_are_named_at_once(image: str) -> None:
    world = new_world(image)
    try:
        done = world.podbot("run", "--repo", "octo/shop", "--github-auth", "app")
        assert done.returncode == 2
        assert "github.app_id, github.installation_id and github.private_key_path are required" in done.stderr
    finally:
        close_world(world)


def test_a_key_that_others_may_read_is_a_warning_and_a_missing_key_an_error(site: Site) -> None:
    fresh(site)
    open_key = site.forge.api.write_key(os.path.join(site.world.root, "open.pem"))
    os.chmod(open_key, 0o644)
    done = site.run("true", env={"PODBOT_GITHUB_PRIVATE_KEY_PATH": open_key})
    assert done.returncode == 0, done.stderr
    assert f"others on this machine may read the private key {open_key}" in done.stderr
    done = site.run("true", env={"PODBOT_GITHUB_PRIVATE_KEY_PATH": f"{site.world.root}/none.pem"})
    assert done.returncode == 1
    assert "there is no private key" in done.stderr
    assert site.world.sessions() == []


def test_waiting_for_a_server_that_never_answers_can_be_interrupted(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        name = f"clone-{uuid.uuid4().hex[:8]}"
        site.names.append(name)
        fresh(site)
        env = {"PODBOT_GITHUB_SERVER_URL": f"http://127.0.0.1:{port}"}
        child = site.world.start(
            "run", "--repo", "octo/shop", "--agent", "custom", "--name", name, "--", "true", env=env
        )
        silent.settimeout(60)
        held, _ = silent.accept()
        with held:
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=30)
    assert child.returncode == 130, err
    assert site.state() == "gone"
    assert site.world.sessions() == []


def test_a_server_that_does_not_exist(site: Site) -> None:
    fresh(site)
    done = site.run("true", env={"PODBOT_GITHUB_SERVER_URL": "http://127.0.0.1:9"})
    assert done.returncode == 1
    assert "the sandbox cannot reach http://127.0.0.1:9 to clone octo/shop" in done.stderr
    assert site.state() == "gone"


def test_a_refused_transfer_is_not_reported_as_a_missing_permission(site: Site) -> None:
    """Issue 10.8: git's last message is then "expected 'packfile'", whatever the status."""
    fresh(site)
    site.forge.operations.clear()
    site.forge.refuse_fetch = 403
    try:
        done = site.run("true")
    finally:
        site.forge.refuse_fetch = 0
    assert done.returncode == 1
    assert f"the transfer of octo/shop from {site.forge.server_url} failed: RPC failed; HTTP 403" in done.stderr
    assert "installation" not in done.stderr
    assert site.state() == "gone"
    site.forge.operations.clear()


def test_a_dry_run_shows_no_secret_and_requests_none(site: Site) -> None:
    asked = len(site.forge.api.requests)
    done = site.run("true", flags=("--branch", "main", "--dry-run", "--json"))
    shown = json.loads(done.stdout)
    assert shown["clone"]["url"] == f"{site.forge.server_url}/octo/shop.git"
    assert shown["token"]["repo"] == "octo/shop"
    assert shown["keep"] == "when_unsaved"
    assert "PRIVATE KEY" not in done.stdout
    assert "ghs_" not in done.stdout
    assert len(site.forge.api.requests) == asked


# --- hosted, and the doctor's look ---------------------------------------------------------------------


def test_an_editor_works_on_a_clone_and_nothing_is_lost(site: Site) -> None:
    fresh(site)
    site.names.append(f"clone-{uuid.uuid4().hex[:8]}")
    script = "test -s /run/secrets/ghapp_token; git fetch -q; sed -u s#session/new#session/update#; touch new"
    words = ("host", "--repo", "octo/shop", "--agent", "custom", "--name", site.name, "--", "sh", "-ec", script)
    places = {1: CLONE, 2: "/home/ada/shop"}
    ask = {n: {"jsonrpc": "2.0", "id": n, "method": "session/new", "params": {"cwd": at}} for n, at in places.items()}
    client = Pipe(site.world.start(*words), "", site.name)
    try:
        for frame in ask.values():
            client.send(frame)
        # The frames that the agent got, sent back as one of its own. Without a client it would soon be ended.
        sent_back = client.wait(lambda frame: frame.get("id") == 1)
        refused = client.wait(lambda frame: frame.get("id") == 2)
        code = client.finish()
    finally:
        client.close()
    assert (code, sent_back) == (0, ask[1] | {"method": "session/update"}), client.log
    assert refused["error"]["data"]["workspace"] == CLONE
    # A helper process checks for unsaved work, and keeps the result until somebody reads it.
    wait_for(lambda: site.state() == "exited", what="the helper process to stop the sandbox", seconds=60)
    wait_for(
        lambda: "untracked file (new)" in site.world.podbot("report", site.name).stdout,
        what="the report of what is unsaved",
    )


def test_doctor_checks_the_app(site: Site) -> None:
    def rows(**env: str) -> dict[str, str]:
        found = json.loads(site.world.podbot("doctor", "--json", env=env).stdout)
        return {row["name"]: row["status"] for row in found if row["name"].startswith("github-")}

    good = rows()
    assert len(good) > 4
    assert set(good.values()) == {"ok"}
    assert rows(PODBOT_GITHUB_PERMISSIONS="contents=admin")["github-permissions"] == "fail"
