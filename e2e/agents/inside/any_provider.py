"""Runs INSIDE the sandbox: a minimal OpenAI-compatible provider, with one answer to every prompt."""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

ANSWER = "any-provider-answer"
ITEM = {
    "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
}  # fmt: skip
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
EVENTS: list[dict[str, object]] = [
    {"type": "response.created", "response": {"id": "resp_1"}},
    {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    {"type": "response.completed", "response": {"id": "resp_1", "output": [ITEM], "usage": USAGE}},
]


class Provider(BaseHTTPRequestHandler):
    """POST /v1/responses, as a stream of events."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in EVENTS:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Provider).serve_forever()
