"""Serves HTTPS on 127.0.0.1:443 in place of a provider, answers 404 to everything, and records what was asked.

Usage: https_recorder.py CERTIFICATE REQUESTS READY. Each line of REQUESTS is a method and a path without its query.
READY is made when it serves.
"""

import http.server
import ssl
import sys

CERTIFICATE, REQUESTS, READY = sys.argv[1:]


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with open(REQUESTS, "a", encoding="utf-8") as file:
            file.write(f"{self.command} {self.path.partition('?')[0]}\n")
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815 - the names that the library calls

    def log_message(self, *words: object) -> None:
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), Answer)
server.daemon_threads = True
# Each connection's thread shakes hands, so that a client that waits with it does not hold up the others.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
open(READY, "w").close()
server.serve_forever()
