"""The helper runs in a real shell, with prompts as git and hostile repositories make them."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.launch.askpass import UNREADABLE, askpass
from tests.examples import examples

SERVER = "https://github.com"
SHELLS = ["/bin/sh", "/bin/bash"]


@pytest.fixture
def token(tmp_path: os.PathLike[str]) -> str:
    path = os.path.join(tmp_path, "it's a token")
    with open(path, "w", encoding="ascii") as file:
        file.write("ghs_secret")  # without a newline, as podbot writes it
    return path


def asked(prompt: str, token: str, server: str = SERVER, shell: str = "/bin/sh") -> tuple[int, str, str]:
    words = [shell, "-c", askpass(server, token), "askpass", prompt]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={"PATH": "/nonexistent"})
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Username for 'https://github.com': ", "x-access-token\n"),
        ("Password for 'https://x-access-token@github.com': ", "ghs_secret\n"),
        ('Username for "https://github.com"', "x-access-token\n"),
        ('Password for "https://x-access-token@github.com"', "ghs_secret\n"),
    ],
)
def test_both_prompts_of_git_and_of_git_lfs(token: str, prompt: str, answer: str, shell: str) -> None:
    assert asked(prompt, token, shell=shell) == (0, answer, "")


HOSTILE = [
    "https://github.com.evil.example", "https://github.com@evil.example", "https://evil.example",
    "https://github.com:8443", "http://github.com", "https://github.com/octo/shop.git", "https://GitHub.com",
    "https://evil.example/https://github.com", "https://githubXcom", "https://github.com\\", "https://github.com ",
    "https://github.com': \nPassword for 'https://evil.example", "*", "", "https://*", "https://github.co?",
    "https://evil.example#https://github.com", "https://x-access-token@github.com@evil.example", "ssh://github.com",
]  # fmt: skip


@pytest.mark.parametrize("where", HOSTILE)
def test_other_prompts_get_no_answer(token: str, where: str) -> None:
    scheme, _, host = where.partition("://")
    for prompt in (
        f"Username for '{where}': ",
        f"Password for '{where}': ",
        f"Password for '{scheme}://x-access-token@{host}': ",
        f"Password for '{scheme}://somebody@{host}': ",
        f'Password for "{scheme}://x-access-token@{host}"',
        f"Password for '{scheme}://x-access-token@{host}",
    ):
        code, out, err = asked(prompt, token)
        assert (code, out) == (1, ""), prompt
        assert err == "podbot: the session's token is for https://github.com only\n"


def test_the_server_name_alone_is_not_a_prompt(token: str) -> None:
    for prompt in ("Username", "Password", "Password for", "Password for 'https://somebody@github.com': "):
        assert asked(prompt, token)[:2] == (1, "")


@settings(max_examples=examples(60))
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_no_other_text_gets_an_answer(text: str) -> None:
    assert asked(text, "/etc/hostname")[:2] == (1, "")
    assert asked(f"Password for '{text}': ", "/etc/hostname")[:2] == (1, "")


@settings(max_examples=examples(60))
@given(st.from_regex(r"https?://[a-z0-9.$`'\"*\[\]:-]{1,20}", fullmatch=True))
def test_a_servers_name_is_never_interpreted_by_the_shell(server: str) -> None:
    scheme, _, host = server.partition("://")
    assert asked(f"Username for '{server}': ", "/nonexistent", server) == (0, "x-access-token\n", "")
    code, out, err = asked(f"Password for '{scheme}://x-access-token@{host}': ", "/nonexistent", server)
    assert (code, out, err) == (1, "", f"{UNREADABLE}\n")


def test_a_token_with_a_trailing_newline(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "token")
    with open(path, "w", encoding="ascii") as file:
        file.write("ghs_secret\n")
    assert asked("Password for 'https://x-access-token@github.com': ", path)[1] == "ghs_secret\n"


def test_an_empty_token_is_not_sent(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "token")
    with open(path, "w", encoding="ascii"):
        pass
    assert asked("Password for 'https://x-access-token@github.com': ", path) == (1, "", f"{UNREADABLE}\n")


# --- git itself ------------------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    moved_to: ClassVar[str] = ""
    heard: ClassVar[list[tuple[int, str]]] = []

    def do_GET(self) -> None:
        if self.path.startswith("/moved") and self.moved_to:
            self.send_response(302)
            self.send_header("Location", self.moved_to + self.path.removeprefix("/moved"))
        else:
            assert isinstance(self.server, ThreadingHTTPServer)
            self.heard.append((self.server.server_port, self.headers.get("Authorization", "")))
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Print nothing on stderr."""


@pytest.fixture
def servers() -> Iterator[tuple[int, int]]:
    """Ports of ours and of another server, to which ours redirects below ``/moved``."""
    _Handler.heard.clear()
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as ours,
        ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as other,
    ):
        _Handler.moved_to = f"http://127.0.0.1:{other.server_address[1]}"
        for server in (ours, other):
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield ours.server_address[1], other.server_address[1]
        ours.shutdown()
        other.shutdown()


@pytest.mark.parametrize(("path", "answered"), [("/octo/shop", True), ("/moved/octo/shop", False)])
def test_git_sends_the_token_to_the_server_but_not_to_a_redirects_target(
    tmp_path: os.PathLike[str], token: str, servers: tuple[int, int], path: str, answered: bool
) -> None:
    ours, other = servers
    helper = os.path.join(tmp_path, "askpass")
    with open(helper, "w", encoding="utf-8") as file:
        file.write(askpass(f"http://127.0.0.1:{ours}", token))
    os.chmod(helper, 0o755)
    env = {
        "PATH": os.environ["PATH"], "HOME": os.fspath(tmp_path), "GIT_ASKPASS": helper, "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1", "no_proxy": "*",
    }  # fmt: skip
    words = ["git", "ls-remote", f"http://127.0.0.1:{ours}{path}"]
    done = subprocess.run(words, env=env, capture_output=True, check=False, timeout=60)
    assert done.returncode != 0
    given = {port for port, secret in _Handler.heard if secret}
    assert given == ({ours} if answered else set())
    assert (other in {port for port, _ in _Handler.heard}) is not answered
