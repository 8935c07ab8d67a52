"""Coverage-guided fuzzing of the channel to a guest with atheris; see ``scripts/fuzz``.

An input is one byte that says where the stream is cut, and the stream, as a hostile guest may send it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # in the extra "fuzz" only

with atheris.instrument_imports(include=["podbot.guest"]):
    from tests.guest.properties import LIST, OUTPUT, RUNNING, check_polled, check_stream
from podbot.guest import frames
from tests.guest.liar import ENDED, FACTS

JOB = {"job": 1, "argv": ["x"], "started": 1.0, "ended": ENDED, "totals": [3, 0]}
SAID = [
    (frames.STARTED, RUNNING, {"pid": 7, "job": 0}),
    (frames.REFUSED, RUNNING, {"field": "cwd", "value": "/", "reason": "no"}),
    (frames.STDOUT, RUNNING, b"text"),
    (frames.STDERR, RUNNING, b"\xff"),
    (frames.STDIN_CREDIT, RUNNING, frames.NUMBER.pack(1)),
    (frames.ENDED, RUNNING, ENDED),
    (frames.ENDED, RUNNING, {**ENDED, "code": 137, "signal": 9}),
    (frames.ENDED, RUNNING, {**ENDED, "left_job": 4294967296000}),
    (frames.JOB_ANSWER, LIST, {"jobs": [JOB], "more": False}),
    (frames.JOB_ANSWER, LIST, JOB),
    (frames.JOB_DATA, OUTPUT, frames.DATA.pack(0, 4) + b"text"),
    (frames.PONG, 0, b""),
]
# What a guest says to a polled command: its greeting, then the command, whose id is 2.
POLLED = [
    (frames.WELCOME, 1, FACTS),
    (frames.STARTED, 2, {"pid": 7, "job": 0}),
    (frames.STDOUT, 2, b"text"),
    (frames.ENDED, 2, ENDED),
]


def one_input(data: bytes) -> None:
    """Raises when a property does not hold."""
    if not data:
        return
    cut, stream = data[0], data[1:]
    for check in (check_stream, check_polled):
        try:
            check(stream, range(cut, len(stream), cut) if cut else ())
        except BaseException:
            sys.stdout.write(f"\nthis input breaks a property:\n{check.__name__}({stream!r})  # cut {cut}\n\n")
            sys.stdout.flush()
            raise


def write_seeds(place: Path) -> None:
    """What a guest says, one by one and in a row, and the words of it."""
    seeds = place / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    said, polled = (
        [
            frames.frame(kind, ident, words if isinstance(words, bytes) else json.dumps(words).encode())
            for kind, ident, words in frames_said
        ]
        for frames_said in (SAID, POLLED)
    )
    polls = [b"".join(polled[:count]) for count in range(1, len(polled) + 1)]
    streams = [*said, *(said[0] + one for one in said), b"".join(said), *polls, frames.HEADER.pack(2**32 - 1, 36, 1)]
    for number, stream in enumerate(streams):
        (seeds / f"{number:03}").write_bytes(bytes([number % 5 * 7]) + stream)
    words = [
        *(f'"{name}":' for name in (*ENDED, *JOB, "jobs", "more", "field", "value", "reason", "pid")),
        "null",
        "true",
        "[{",
    ]
    lines = ["".join(f"\\x{byte:02x}" for byte in word.encode()) for word in words]
    (place / "words").write_text("".join(f'"{line}"\n' for line in lines))


if __name__ == "__main__":
    if sys.argv[1] == "--write-seeds":
        write_seeds(Path(sys.argv[2]))
    else:
        atheris.Setup(sys.argv, one_input)
        atheris.Fuzz()
