"""The forge that the clone tests use: real git against it, and the rules for tokens that it enforces."""

from __future__ import annotations

import base64
import gzip
import http.client
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.forge import Forge, forge, git
from e2e.harness import wait_for
from podbot.github.app_client import AppClient
from podbot.github.key import load_private_key

PERMISSIONS = {"contents": "write", "metadata": "read"}
NO_PROXY = {"no_proxy": "*"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Forge]:
    with forge(str(tmp_path / "forge")) as made:
        yield made


def token(served: Forge, repo: str = "octo/shop", permissions: dict[str, str] | None = None) -> str:
    path = served.api.write_key(os.path.join(served.root, "app.pem"))
    app = AppClient(served.api.app_id, load_private_key(path), served.api.url)
    return app.mint(served.api.installation_id, repo, permissions or PERMISSIONS).token


def as_user(tmp_path: Path, secret: str, user: str = "x-access-token") -> dict[str, str]:
    """An environment whose askpass gives these answers."""
    (tmp_path / "secret").write_text(secret)
    script = tmp_path / "askpass"
    script.write_text(f'#!/bin/sh\ncase "$1" in User*) echo {user};; *) cat {tmp_path}/secret;; esac\n')
    script.chmod(0o700)
    return {"GIT_ASKPASS": str(script), **NO_PROXY}


def run(tmp_path: Path, *words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **env},
    )


def test_clone_commit_push_fetch(served: Forge, tmp_path: Path) -> None:
    url = served.repo(branches=("main", "work/one"), tags=("v1",), commits=3)
    env = as_user(tmp_path, token(served))
    git("clone", "-q", "-b", "work/one", url, "shop", cwd=str(tmp_path), env=env)
    shop = str(tmp_path / "shop")
    assert git("tag", cwd=shop) == "v1"
    assert git("rev-list", "--count", "origin/main", cwd=shop) == "3"
    (tmp_path / "shop" / "new.txt").write_text("x" * 3_000_000)  # above http.postBuffer: a chunked request
    git("add", "-A", cwd=shop)
    git("commit", "-q", "-m", "big", cwd=shop)
    git("-c", "core.compression=0", "push", "-q", "origin", "work/one", cwd=shop, env=env)
    assert served.tip("octo/shop", "work/one") == git("rev-parse", "HEAD", cwd=shop)
    git("fetch", "-q", cwd=shop, env=env)
    assert served.failed == []
    assert {op.protocol for op in served.operations if op.service == "git-upload-pack"} == {"version=2"}


def test_a_gzipped_request(served: Forge, tmp_path: Path) -> None:
    """git compresses bodies above a kilobyte; here it is done by hand, so that it happens in every run."""
    served.repo()
    body = gzip.compress(b"0014command=ls-refs\n00010009peel\n0000")
    basic = base64.b64encode(f"x-access-token:{token(served)}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Git-Protocol": "version=2", "Content-Encoding": "gzip"}
    headers["Content-Type"] = "application/x-git-upload-pack-request"
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("POST", "/octo/shop.git/git-upload-pack", body, headers)
    answer = connection.getresponse()
    assert answer.status == 200
    assert f"{served.tip('octo/shop')} refs/heads/main".encode() in answer.read()
    connection.close()
    assert served.failed == []


def test_shallow_submodule_and_empty(served: Forge, tmp_path: Path) -> None:
    lib = served.repo("octo/lib")
    url = served.repo("octo/app", submodules={"lib": "octo/lib"}, commits=5)
    empty = served.repo("octo/empty", empty=True)
    env = as_user(tmp_path, token(served, "octo/app"))
    git("clone", "-q", "--depth", "1", url, "app", cwd=str(tmp_path), env=env)
    app = str(tmp_path / "app")
    assert git("rev-list", "--count", "HEAD", cwd=app) == "1"
    assert git("config", "-f", ".gitmodules", "submodule.lib.url", cwd=app) == "../../octo/lib"
    refused = run(tmp_path / "app", "submodule", "update", "--init", env=env)
    assert refused.returncode != 0  # the token is for octo/app only
    lib_env = as_user(tmp_path, token(served, "octo/lib"))
    git("submodule", "update", "-q", "--init", cwd=app, env=lib_env)
    assert git("rev-parse", "HEAD", cwd=os.path.join(app, "lib")) == served.tip("octo/lib")
    assert git("config", "remote.origin.url", cwd=os.path.join(app, "lib")) == lib
    done = run(tmp_path, "clone", empty, "empty", env=as_user(tmp_path, token(served, "octo/empty")))
    assert done.returncode == 0
    assert "empty repository" in done.stderr


def test_an_older_token_is_refused(served: Forge, tmp_path: Path) -> None:
    url = served.repo()
    first = token(served)
    second = token(served)
    assert run(tmp_path, "ls-remote", url, env=as_user(tmp_path, first)).returncode == 0  # within the two seconds
    token(served)
    stale = run(tmp_path, "ls-remote", url, env=as_user(tmp_path, first))
    assert stale.returncode != 0
    assert "Authentication failed" in stale.stderr
    served.api.grace = 0.0
    assert run(tmp_path, "ls-remote", url, env=as_user(tmp_path, second)).returncode != 0
    assert [op.status for op in served.failed] == [401, 401]


def test_requests_that_are_refused(served: Forge, tmp_path: Path) -> None:
    url = served.repo()
    served.repo("octo/other")
    good = token(served)
    assert run(tmp_path, "ls-remote", url, env=as_user(tmp_path, "ghs_nothing")).returncode != 0
    assert run(tmp_path, "ls-remote", url, env=as_user(tmp_path, good, user="somebody")).returncode != 0
    assert run(tmp_path, "ls-remote", url, env=NO_PROXY).returncode != 0
    other = run(tmp_path, "ls-remote", url.replace("shop", "other"), env=as_user(tmp_path, good))
    assert other.returncode != 0
    missing = run(tmp_path, "ls-remote", url.replace("shop", "gone"), env=as_user(tmp_path, good))
    assert missing.returncode != 0
    served.api.lifetime = -10
    path = served.api.write_key(os.path.join(served.root, "app.pem"))
    with pytest.raises(Exception, match="does not fit the clock"):
        AppClient(served.api.app_id, load_private_key(path), served.api.url).mint(
            served.api.installation_id, "octo/shop", PERMISSIONS
        )
    assert served.failed


def test_a_read_only_token_cannot_push(served: Forge, tmp_path: Path) -> None:
    url = served.repo()
    env = as_user(tmp_path, token(served, permissions={"contents": "read", "metadata": "read"}))
    git("clone", "-q", url, "shop", cwd=str(tmp_path), env=env)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=str(tmp_path / "shop"))
    before = served.tip("octo/shop")
    assert run(tmp_path / "shop", "push", env=env).returncode != 0
    assert served.tip("octo/shop") == before


def test_many_at_once(served: Forge, tmp_path: Path) -> None:
    url = served.repo()
    env = as_user(tmp_path, token(served))
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(run(tmp_path, "ls-remote", url, env=env).returncode))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert codes == [0] * 8
    assert served.failed == []


def test_a_killed_git_is_no_failure_and_leaves_no_backend(served: Forge, tmp_path: Path) -> None:
    noise = {f"{number}.bin": os.urandom(1_000_000).hex() for number in range(8)}
    url = served.repo(files=noise)
    basic = base64.b64encode(f"x-access-token:{token(served)}".encode()).decode()
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    tip = served.tip("octo/shop").encode()
    lines = (b"command=fetch", None, b"ofs-delta", b"want " + tip, b"done")
    body = b"".join(b"0001" if line is None else b"%04x%s" % (len(line) + 4, line) for line in lines) + b"0000"
    headers = {"Authorization": f"Basic {basic}", "Git-Protocol": "version=2"}
    headers["Content-Type"] = "application/x-git-upload-pack-request"
    connection.request("POST", "/octo/shop.git/git-upload-pack", body, headers)
    assert connection.getresponse().read(1000), served.operations
    connection.close()
    wait_for(lambda: any(op.aborted for op in served.operations), what="the end of the transfer")
    assert [op.aborted for op in served.operations] == [True]
    assert served.failed == []
    assert url
