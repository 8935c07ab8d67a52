"""A git server on loopback: ``git http-backend`` over HTTP, which accepts FakeGitHub's current token.

Repositories in ``public`` can be read without one; tokens in ``personal``, like a person's own, open every repository.

``with forge(root) as f: f.repo("octo/shop") … f.server_url … f.api``. Sessions reach it with ``sandbox.network =
"host"``, which shares the host's loopback.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any, ClassVar, NamedTuple
from urllib.parse import parse_qs

from podbot.testing import FakeGitHub

_ROUTE = re.compile(r"/([\w.-]+/[\w.-]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)")
_CHUNK = 64 * 1024
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def git(*words: str, cwd: str, env: Mapping[str, str] | None = None, check: bool = True) -> str:
    """Run git on the host without any user's configuration; returns its stdout, stripped."""
    done = subprocess.run(
        ["git", *words],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": cwd, **_GIT, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert not check or done.returncode == 0, f"git {words}: {done.stderr}"
    return done.stdout.strip()


class Operation(NamedTuple):
    """One HTTP request of git.

    ``known``: it had valid credentials; ``detail``: the backend's error message; ``aborted``: git disconnected in the
    middle (it was killed).
    """

    repo: str
    service: str
    step: str
    status: int
    known: bool
    protocol: str
    detail: str = ""
    aborted: bool = False


class Forge:
    """The server's repositories and the requests for them."""

    def __init__(self, root: str, api: FakeGitHub) -> None:
        self.root = root
        self.api = api
        self.operations: list[Operation] = []
        self.port = 0
        self.public: set[str] = set()
        self.personal: set[str] = set()
        self.refuse_fetch = 0  # a status with which packs are refused, although branches are listed

    @property
    def server_url(self) -> str:
        """The value for ``github.server_url``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def failed(self) -> list[Operation]:
        """Failed requests with credentials. (git first sends none, and is asked for them.)"""
        return [op for op in list(self.operations) if op.known and not op.aborted and (op.status >= 400 or op.detail)]

    def config(self, key_path: str) -> dict[str, Any]:
        """The configuration keys that make podbot use this forge; the App's key is written to ``key_path``."""
        return {
            "github.app_id": self.api.app_id,
            "github.installation_id": self.api.installation_id,
            "github.private_key_path": self.api.write_key(key_path),
            "github.server_url": self.server_url,
            "github.api_url": self.api.url,
        }

    def path(self, name: str) -> str:
        """The bare repository's directory."""
        return os.path.join(self.root, f"{name}.git")

    def tip(self, name: str, ref: str = "main") -> str:
        """The commit that a branch or tag on the server points to; empty when there is none."""
        return git("rev-parse", "-q", "--verify", f"{ref}^{{commit}}", cwd=self.path(name), check=False)

    def repo(
        self,
        name: str = "octo/shop",
        *,
        branches: Sequence[str] = ("main",),
        files: Mapping[str, str] | None = None,
        commits: int = 2,
        tags: Sequence[str] = (),
        submodules: Mapping[str, str] | None = None,
        empty: bool = False,
    ) -> str:
        """Make a repository that the App can access; the first branch is HEAD. Returns its URL.

        ``submodules``: directory -> full name of an existing repository; its URL is relative.
        """
        bare = self.path(name)
        os.makedirs(os.path.dirname(bare), exist_ok=True)
        git("init", "-q", "--bare", "-b", branches[0], bare, cwd=self.root)
        git("config", "uploadpack.allowFilter", "true", cwd=bare)
        if not empty:
            with tempfile.TemporaryDirectory(dir=self.root) as work:
                self._start(work, branches[0], files or {"README.md": f"# {name}\n"}, submodules or {})
                _grow(work, branches, commits, tags)
                git("push", "-q", "--all", bare, cwd=work)
                git("push", "-q", "--tags", bare, cwd=work)
        self.api.repositories = (*self.api.repositories, name)
        return f"{self.server_url}/{name}"

    def _start(self, work: str, branch: str, files: Mapping[str, str], submodules: Mapping[str, str]) -> None:
        """The first commit."""
        git("init", "-q", "-b", branch, work, cwd=work)
        for path, text in files.items():
            _write(os.path.join(work, path), text)
        for directory, target in submodules.items():
            entry = f'[submodule "{directory}"]\n\tpath = {directory}\n\turl = ../../{target}\n'
            _write(os.path.join(work, ".gitmodules"), entry)
        git("add", "-A", ".", cwd=work)
        for directory, target in submodules.items():
            git("update-index", "--add", "--cacheinfo", f"160000,{self.tip(target)},{directory}", cwd=work)
        git("commit", "-q", "-m", "first", cwd=work)


def _grow(work: str, branches: Sequence[str], commits: int, tags: Sequence[str]) -> None:
    """More commits, the tags on the last of them, and the other branches."""
    for number in range(1, commits):
        git("commit", "-q", "--allow-empty", "-m", f"commit {number}", cwd=work)
    for tag in tags:
        git("tag", "-a", "-m", tag, tag, cwd=work)
    for branch in branches[1:]:
        git("checkout", "-q", "-f", "-b", branch, branches[0], cwd=work)
        name = f"{branch.replace('/', '-')}.txt"
        _write(os.path.join(work, name), branch)
        git("add", name, cwd=work)
        git("commit", "-q", "-m", branch, cwd=work)


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


@contextlib.contextmanager
def forge(root: str, *, lifetime: float = 3600.0) -> Iterator[Forge]:
    """A forge whose repositories are below ``root``, and its API."""
    assert shutil.which("git"), "git is missing"
    os.makedirs(root, exist_ok=True)
    with FakeGitHub(lifetime=lifetime) as api:
        api.repositories = ()
        made = Forge(os.path.realpath(root), api)

        class Handler(_Handler):
            served = made

        server = _Server(("127.0.0.1", 0), Handler)
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="forge", daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A killed git is not reported as an error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    served: ClassVar[Forge]
    _gone = False

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Print nothing on stderr."""

    def _serve(self) -> None:
        self.close_connection = True
        path, _, query = self.path.partition("?")
        route = _ROUTE.fullmatch(path)
        if not route:
            self._refuse(404, Operation("", "", path, 404, known=False, protocol=""))
            return
        step = route[2]
        service = parse_qs(query).get("service", [""])[0] if step == "info/refs" else step
        known = "Authorization" in self.headers
        made = Operation(route[1], service, step, 200, known, self.headers.get("Git-Protocol", ""))
        level = "write" if service == "git-receive-pack" else "read"
        if not self._may(route[1], level):
            self._refuse(401, made._replace(status=401))
        elif not os.path.isdir(self.served.path(route[1])):
            self._refuse(404, made._replace(status=404))
        elif step == "git-upload-pack" and self.served.refuse_fetch and self._has_listed(route[1]):
            self._refuse(self.served.refuse_fetch, made._replace(status=self.served.refuse_fetch))
        else:
            self._backend(made, query)

    do_GET = do_POST = _serve  # noqa: N815 - the base class's names

    def _may(self, repo: str, level: str) -> bool:
        token = self._token()
        open_to_all = level == "read" and repo in self.served.public and "Authorization" not in self.headers
        return open_to_all or token in self.served.personal or self.served.api.accepts(token, repo, "contents", level)

    def _has_listed(self, repo: str) -> bool:
        """With version 2 of its protocol git lists the branches in a first POST."""
        return any(op.repo == repo and op.step == "git-upload-pack" and op.known for op in self.served.operations)

    def _token(self) -> str:
        """The password of Basic credentials whose user is ``x-access-token``; blank otherwise."""
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        try:
            user, _, token = base64.b64decode(value).decode().partition(":")
        except (binascii.Error, ValueError):
            return ""
        return token if scheme.lower() == "basic" and user == "x-access-token" else ""

    def _refuse(self, status: int, made: Operation) -> None:
        for _ in self._body():  # unread bytes would reset the connection before the client has read the answer
            pass
        self.served.operations.append(made)
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="GitHub"')
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def _backend(self, made: Operation, query: str) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": self.served.root,
            **_GIT,
            "GIT_PROJECT_ROOT": self.served.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": f"/{made.repo}.git/{made.step}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_USER": "x-access-token",  # without it the backend accepts no push
            "REMOTE_ADDR": "127.0.0.1",
        }
        if "Content-Length" in self.headers:
            env["CONTENT_LENGTH"] = self.headers["Content-Length"]
        words = ["git", "http-backend"]
        with (
            tempfile.TemporaryFile() as complaints,
            subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints) as child,
        ):
            assert child.stdin
            assert isinstance(child.stdout, io.BufferedReader)
            feeder = threading.Thread(target=self._feed, args=(child.stdin,), daemon=True)
            feeder.start()
            status = self._relay(child.stdout)
            child.stdout.close()  # a backend whose reader was killed would write for ever
            code = child.wait()
            feeder.join(10)
            complaints.seek(0)
            detail = complaints.read(2000).decode("utf-8", "replace") if code else ""
        # Recorded before the answer's last bytes, so that the list contains the request when git has ended.
        self.served.operations.append(made._replace(status=status, detail=detail, aborted=self._gone))
        with contextlib.suppress(OSError):
            self.wfile.write(b"0\r\n\r\n")

    def _feed(self, stdin: IO[bytes]) -> None:
        with contextlib.suppress(OSError), stdin:
            for part in self._body():
                stdin.write(part)

    def _body(self) -> Iterator[bytes]:
        """The request's body as it was sent: with a length, or in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline(100).partition(b";")[0] or b"0", 16):
                yield from self._exactly(size)
                self.rfile.readline(10)
            self.rfile.readline(10)
        else:
            yield from self._exactly(int(self.headers.get("Content-Length") or 0))

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size > 0 and (part := self.rfile.read(min(size, _CHUNK))):
            size -= len(part)
            yield part
        self._gone = self._gone or size > 0

    def _relay(self, stdout: io.BufferedReader) -> int:
        """Send the backend's answer to git in chunks, except the end; returns the HTTP status."""
        status, headers = 200, []
        while line := stdout.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            if name.lower() == "status":
                status = int(value.split()[0])
            elif name.lower() != "content-length":
                headers.append((name, value.strip()))
        try:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
            while part := stdout.read1(_CHUNK):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        except OSError:
            self._gone = True
        return status
