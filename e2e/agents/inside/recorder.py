"""Runs INSIDE the sandbox: starts a model provider and acts as a proxy for it, recording every request. Stdlib
only.

usage: recorder.py PORT LOG READY -- COMMAND...

COMMAND serves on the loopback port that $PORT names. LOG gets one JSON object for each request; READY is made once
requests are served. Because the recording is here and not in the provider, "the request was seen" means the same for
any provider. With $E2E_CERTIFICATE, the certificate of the providers' own names, it serves HTTPS on port 443 too.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOGINS = ("authorization", "x-api-key", "x-goog-api-key")
# What Codex asks about an access token before it uses one, and its screen about the account (0.169).
ABOUT = {
    "/v1/user-auth-credential/whoami": {
        "email": "ann@example.org", "chatgpt_user_id": "user-1", "chatgpt_account_id": "account-1",
        "chatgpt_plan_type": "pro", "chatgpt_account_is_fedramp": False,
    },
    "/wham/accounts/check": {
        "accounts": [
            {
                "id": "account-1", "structure": "personal", "plan_type": "pro", "name": None,
                "can_access_with_session": True, "is_deactivated": False, "is_fedramp_compliant_workspace": False,
                "workspace_backend_origin": "https://chatgpt.com", "account_routing_override": "NO_CONSTRAINT",
                "profile_picture_url": None, "sso_connection_name": None,
            }
        ],
        "account_ordering": ["account-1"], "default_account_id": "account-1",
    },
}  # fmt: skip
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "expect"}


class Recorder(BaseHTTPRequestHandler):
    """Forwards one request; the answer is streamed and the connection closes at its end."""

    protocol_version = "HTTP/1.1"
    upstream = 0
    log = ""
    lock = threading.Lock()

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = self._chunks()
        self.close_connection = True
        for path, about in ABOUT.items():
            if self.path.endswith(path):
                self._record(body, 200)
                self._answer(json.dumps(about).encode())
                return
        peer = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in HOP_BY_HOP}
        try:
            peer.request(self.command, self.path, body=body, headers=headers)
            answer = peer.getresponse()
            self._record(body, answer.status)
            self.send_response(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in HOP_BY_HOP:
                    self.send_header(key, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while chunk := answer.read1(65536):
                self.wfile.write(chunk)
                self.wfile.flush()
        except OSError as exc:  # one side closed the connection
            self._record(body, 0, str(exc))
        finally:
            peer.close()

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _login(self) -> str:
        """A digest of the login in the request's headers; empty if there is none. The log has no key."""
        value = next((self.headers[name] for name in LOGINS if name in self.headers), "")
        return hashlib.sha256(value.removeprefix("Bearer ").encode()).hexdigest() if value else ""

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = forward  # noqa: N815 - http.server's names

    def _chunks(self) -> bytes:
        found = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(found)

    def _record(self, body: bytes, status: int, error: str = "") -> None:
        try:
            content = json.loads(body) if body else None
        except ValueError:
            content = body.decode("utf-8", "replace")
        model = content.get("model") if isinstance(content, dict) else None
        entry = {
            "time": time.time(),
            "method": self.command,
            "path": self.path,
            "model": model,
            "status": status,
            "error": error,
            "login": self._login(),
            "body": content,
        }
        with self.lock, open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Print nothing on the agent's stderr."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_served(port: int, provider: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if provider.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the provider does not serve: {provider.args!r} ({provider.returncode})")
        time.sleep(0.02)


def own_names(certificate: str) -> ThreadingHTTPServer:
    """Serves HTTPS, as the providers that an agent knows by name do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = ThreadingHTTPServer(("127.0.0.1", 443), Recorder)
    # Each connection's thread shakes hands, so that a client that waits with it does not hold up the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


def main() -> None:
    port, log, ready, dashes, *command = sys.argv[1:]
    assert dashes == "--"
    Recorder.upstream, Recorder.log = free_port(), log
    provider = subprocess.Popen(command, env={**os.environ, "PORT": str(Recorder.upstream)}, stdin=subprocess.DEVNULL)
    try:
        wait_until_served(Recorder.upstream, provider)
        server = ThreadingHTTPServer(("127.0.0.1", int(port)), Recorder)
        if certificate := os.environ.get("E2E_CERTIFICATE"):
            threading.Thread(target=own_names(certificate).serve_forever, daemon=True).start()
        with open(ready, "w", encoding="utf-8"):
            pass
        server.serve_forever()
    finally:
        provider.terminate()


if __name__ == "__main__":
    main()
