"""Runs INSIDE the sandbox: an agent that misbehaves on command. Stdlib only.

usage: agent.py CASE [ARGUMENT...]; every line of input is kept, unchanged, in ./seen.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

# Members that the puppet obeys, and that no real agent knows.
SAY, LEAVE, SHELL = "_e2e/say", "_e2e/leave", "_e2e/shell"

ACP_HEAD = b'{"jsonrpc":"2.0","method":"session/update",'
CODEX_HEAD = b'{"method":"item/agentMessage/delta",'


def say(data: bytes) -> None:
    """Write all of it to stdout, whatever it is."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def answer(frame: dict[str, object], result: object) -> None:
    """A frame in reply."""
    say(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode() + b"\n")


def lines() -> Iterator[bytes]:
    """Whole lines of stdin, each written to ./seen before it is yielded; the last may have no newline."""
    with open("seen", "ab", buffering=0) as seen:
        for line in sys.stdin.buffer:
            seen.write(line)
            yield line


def puppet() -> None:
    """Prints ``params.data`` (base64) and runs ``params.line``; exits when ordered to, or at the end of its input."""
    for line in lines():
        try:
            frame = json.loads(line)
        except ValueError:
            continue
        if not isinstance(frame, dict) or "id" not in frame:
            continue
        if frame.get("method") == SAY:
            say(base64.b64decode(frame["params"]["data"]))
            answer(frame, "said")
        elif frame.get("method") == LEAVE:
            say(base64.b64decode(frame["params"]["data"]))
            raise SystemExit(frame["params"]["status"])
        elif frame.get("method") == SHELL:
            done = subprocess.run(["sh", "-c", frame["params"]["line"]], capture_output=True, text=True, check=False)
            answer(frame, [done.returncode, done.stdout + done.stderr])
        elif frame.get("method") == "initialize":
            answer(frame, {"protocolVersion": 1, "agentCapabilities": {}})
        elif "method" in frame:
            answer(frame, {"method": frame["method"]})
    with open("left", "w", encoding="ascii") as file:
        file.write("at the end of input")


def bench(protocol: str = "acp") -> None:
    """For measurements: echoes each line. ``params.order`` "pour/N" is answered with N MiB of frames. "drain/N" is
    followed by N MiB, which get one line once they have all arrived; "through/N" by N MiB, which are sent back
    at once.
    """
    held = b""
    while True:
        while b"\n" not in held:
            data = os.read(0, 1 << 16)
            if not data:
                return
            held += data
        line, _, held = held.partition(b"\n")
        frame = json.loads(line)
        word, _, size = frame["params"].get("order", "").partition("/")
        if word == "pour":
            _pour(int(size), protocol)
        elif word in ("drain", "through"):
            _take((int(size) << 20) - len(held), held, back=word == "through")
            held = b""
        if frame["method"] == "initialize":
            answer(frame, {})
        else:
            say(line + b"\n")


def _pour(megabytes: int, protocol: str) -> None:
    head = CODEX_HEAD if protocol == "codex_app_server" else ACP_HEAD
    blocks = [b"".join(_frame(number + step, head) for step in range(16)) for number in range(0, 256, 16)]
    for _ in range(megabytes):
        for block in blocks:
            say(block)


def _take(left: int, held: bytes, *, back: bool) -> None:
    say(held if back else b"")
    while left:
        data = os.read(0, min(left, 1 << 16))
        left -= len(data)
        if back:
            say(data)


def cat() -> None:
    """The same for any bytes, without lines."""
    while data := os.read(0, 1 << 16):
        say(data)


def leave(status: str, words: str = "") -> None:
    """Exits at once, without reading its input."""
    sys.stderr.write(words)
    raise SystemExit(int(status))


def stay(seconds: str = "46077") -> None:
    """Ignores the end of its input, and TERM; so does a child of its own, ``sleep``, by which a test knows it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", seconds], stdin=subprocess.DEVNULL)
    say(b'{"jsonrpc":"2.0","method":"session/update","params":"up"}\n')
    for _ in lines():
        pass
    with open("left", "w", encoding="ascii") as file:
        file.write("not at all")
    while True:
        time.sleep(1)


def flood(megabytes: str) -> None:
    """Endless frames of 4 KiB, whether or not they are read; the last one has the digest of the others."""
    digest = hashlib.sha256()
    count = int(megabytes) << 8
    for number in range(0, count, 16):
        block = b"".join(_frame(number + step) for step in range(16))
        digest.update(block)
        say(block)
    say(
        json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"digest": digest.hexdigest()}}).encode()
        + b"\n"
    )


def _frame(number: int, start: bytes = ACP_HEAD) -> bytes:
    head = start + b'"params":{"number":%d,"text":"' % number
    return head + b"x" * (4096 - len(head) - 4) + b'"}}\n'


def long(too_long: str, fine: str) -> None:
    """A line over the limit, one long line, and one more."""
    say(b'{"jsonrpc":"2.0","method":"session/update","params":"')
    for _ in range(int(too_long) >> 20):
        say(b"z" * (1 << 20))
    say(b'"}\n')
    params = {"x": "y" * int(fine)}
    say(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n")
    say(b'{"jsonrpc":"2.0","method":"session/update","params":"end"}\n')
    for _ in lines():
        pass


def sleep(seconds: str) -> None:
    """Reads nothing for a while, then everything; prints the size and the digest."""
    say(b'{"jsonrpc":"2.0","method":"session/update","params":"up"}\n')
    time.sleep(float(seconds))
    digest, size = hashlib.sha256(), 0
    while data := os.read(0, 1 << 20):
        digest.update(data)
        size += len(data)
    params = {"digest": digest.hexdigest(), "size": size}
    say(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n")


def stream() -> None:
    """A frame every few milliseconds, for ever."""
    number = 0
    while True:
        say(_frame(number))
        number += 1
        time.sleep(0.005)


def environment() -> None:
    """Answers initialize with its directory and with the names and values of its variables."""
    for line in lines():
        answer(json.loads(line), {"cwd": os.getcwd(), "env": dict(os.environ), "uid": os.getuid()})


if __name__ == "__main__":
    CASES = (puppet, bench, cat, leave, stay, flood, long, sleep, stream, environment)
    {case.__name__: case for case in CASES}[sys.argv[1]](*sys.argv[2:])
