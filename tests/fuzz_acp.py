"""Coverage-guided fuzzing of both filters, ACP and Codex, with atheris; see ``scripts/fuzz``.

An input is two bytes that choose the protocol, the direction, the delegation and where the stream is cut, and the
stream. The questions are those of the property tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # in the extra "fuzz" only

with atheris.instrument_imports(include=["podbot.protocol"]):
    from tests.protocol.properties import DELEGATIONS, check_agent, check_client, check_codex_agent, check_codex_client
from tests.protocol.golden import (
    CODEX_DENIED,
    CODEX_FROM_AGENT,
    CODEX_FROM_CLIENT,
    CODEX_MASKED,
    CODEX_OPENED,
    CODEX_SLY,
    DENIED,
    FROM_AGENT,
    FROM_CLIENT,
    LOGINS,
    MASKED,
    NOISE,
    SLY_QUESTIONS,
)
from tests.protocol.strategies import NAMES, WORDS

CLIENT, AGENT, CODEX = 0, 1, 8  # bits of the first byte; the delegation bit is between them


def one_input(data: bytes, agent: Callable[..., None] = check_agent) -> None:
    """Raises when a property does not hold. ``agent``: what is checked of an ACP agent's bytes."""
    if len(data) < 2:
        return
    choice, cut, stream = data[0], data[1], data[2:]
    checks = (check_codex_client, check_codex_agent) if choice & CODEX else (check_client, agent)
    check = checks[choice & AGENT]
    try:
        check(stream, [] if not cut else range(cut, len(stream), cut), DELEGATIONS[choice >> 1 & 3])
    except BaseException:
        call = f"{check.__name__}({stream!r})  # choice {choice}, cut {cut}"
        sys.stdout.write(f"\nthis input breaks a property:\n{call}\n\n")
        sys.stdout.flush()
        raise


def write_seeds(place: Path) -> None:
    """The golden frames as a corpus, and their parts as a dictionary."""
    seeds = place / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    agent = [
        *SLY_QUESTIONS,
        *FROM_AGENT,
        *DENIED,
        *NOISE,
        LOGINS,
        b"[" + b",".join(frame.strip() for frame in FROM_AGENT[:2]) + b"]\n",
    ]
    agent += [
        b"Loading... " + LOGINS,
        b"\x1b[2K" + FROM_AGENT[2],
        b'mcp <- {"jsonrpc":"2.0","id":7,"result":{}}\n',
        b'{\n  "level": "info"\n}' + FROM_AGENT[1],
        b'{"level":"info"}\n',
        b"{\n" + FROM_AGENT[2],
    ]
    client = [*FROM_CLIENT, *(frame for frame, _ in MASKED), b"[" + MASKED[0][0].strip() + b"]\n"]
    codex_agent = [CODEX_OPENED, *CODEX_SLY, *CODEX_FROM_AGENT, *CODEX_DENIED]
    codex_client = [*CODEX_FROM_CLIENT, *(frame for frame, _ in CODEX_MASKED)]
    streams = [*((AGENT, frame) for frame in agent), *((CLIENT, frame) for frame in client)]
    streams += [(CODEX | AGENT, frame) for frame in codex_agent] + [(CODEX | CLIENT, frame) for frame in codex_client]
    for number, (choice, stream) in enumerate(streams):
        (seeds / f"{number:03}").write_bytes(bytes([choice, number % 5 * 7]) + stream)
    words = [f'"{word}"' for word in (*NAMES, *WORDS)]
    words += [
        '"kind":"allow_once"',
        '"name":"Allow"',
        '"path":"/etc"',
        '"url":"file:///x"',
        "\\u202e",
        "\\ud800",
        "\\r",
    ]
    words += [
        '{"method":"fs/x","id":1}',
        '"initialize","params":{"capabilities":{',
        "[{",
        "},{",
        "\\u0066",
        '> {"jsonrpc":"2.0","id":1,"result":',
        "{\n",
        '  "a": {',
        "\\u0000",
        "\r\n",
        "\n",
    ]
    lines = ["".join(f"\\x{byte:02x}" for byte in word.encode()) for word in words]
    (place / "words").write_text("".join(f'"{line}"\n' for line in lines))


if __name__ == "__main__":
    if sys.argv[1] == "--write-seeds":
        write_seeds(Path(sys.argv[2]))
    else:
        atheris.Setup(sys.argv, one_input)
        atheris.Fuzz()
