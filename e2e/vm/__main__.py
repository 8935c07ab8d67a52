"""``scripts/vm``: run commands, or the parts of "Tested on", in a Debian 13 machine."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

from e2e.vm.errors import VmError
from e2e.vm.image import STATE, Image, image
from e2e.vm.machine import Machine, running
from e2e.vm.page import VERSIONS, keep, needed
from e2e.vm.parts import run_part
from e2e.vm.steps import alone, need_room, say, step
from e2e.vm.suite import PARTS, USER
from e2e.vm.tree import TREE, bring_back, copy_in


def main() -> int:
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGHUP, _interrupted)
    try:
        os.makedirs(STATE, exist_ok=True)
        with alone(os.path.join(STATE, "lock")):
            return int(options.do(options))
    except VmError as exc:
        print(f"vm: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _interrupted(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/vm", description=__doc__)
    parser.add_argument(
        "--accel", choices=["auto", "kvm", "tcg"], default=os.environ.get("PODBOT_VM_ACCEL", "auto"),
        help="how the processor is made; tcg is emulation, which works everywhere (default: kvm where it can)",
    )  # fmt: skip
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    build = verbs.add_parser("build", help="make the machine's disk, where it is missing")
    build.set_defaults(do=_build)
    run = verbs.add_parser("run", help="boot, copy this working tree in, run a command there, shut down")
    run.add_argument("--root", action="store_true", help=f"as root; otherwise as {USER}, who may use sudo")
    run.add_argument("--keep", metavar="NAME", help="what is written stays, for the next run with this NAME")
    run.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="for the command (3600)")
    run.add_argument("command", nargs="+", metavar="COMMAND", help="words; one word is a line of shell")
    run.set_defaults(do=_run)
    test = verbs.add_parser("test", help='run the parts of "Tested on", and write that page')
    test.add_argument("--keep", metavar="NAME", help="as for run: go on with what an earlier run installed")
    test.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {' '.join(PARTS)} (all)")
    test.set_defaults(do=_test)
    return parser


def _build(_options: argparse.Namespace) -> int:
    image()
    return 0


def _run(options: argparse.Namespace) -> int:
    words = options.command
    command = words[0] if len(words) == 1 else shlex.join(words)
    user = "root" if options.root else USER
    with prepared(options) as machine:
        copy_in(machine, user)
        terminal = sys.stdin.isatty() and sys.stdout.isatty()
        stdin = sys.stdin.buffer if terminal else subprocess.DEVNULL
        try:
            return machine.run(
                f"cd ~/{TREE} && {command}", user=user, limit=options.limit, stdin=stdin, terminal=terminal
            )
        finally:
            with contextlib.suppress(VmError):
                bring_back(machine, user)


def _test(options: argparse.Namespace) -> int:
    if unknown := [name for name in options.parts if name not in PARTS]:
        raise VmError(f"no such part: {' '.join(unknown)}; there are {' '.join(PARTS)}")
    kept = options.keep and os.path.exists(_kept_path(image(), options.keep))
    parts = {name: PARTS[name] for name in options.parts} if kept else needed(options.parts)
    failed: set[str] = set()
    with prepared(options) as machine:
        for name, part in parts.items():
            if part.after in failed:
                say(f"{name}: left out, because {part.after} failed")
                continue
            result = run_part(machine, name, part)
            keep(name, result, {what: machine.output(words).strip() for what, words in VERSIONS.items()})
            if result.status:
                failed.add(name)
    return 1 if failed else 0


@contextlib.contextmanager
def prepared(options: argparse.Namespace) -> Iterator[Machine]:
    """A machine that answers, according to the options."""
    made = image()
    with running(made, _kept_disk(made, options.keep) if options.keep else None, accel=options.accel) as machine:
        yield machine


def _kept_disk(made: Image, name: str) -> str:
    disk = _kept_path(made, name)
    if not os.path.exists(disk):
        need_room(STATE, 8, "another disk")
        part = f"{disk}.part"
        log = os.path.join(STATE, "logs", "copy.log")
        step(f"copying the disk for {name}", ["cp", "--sparse=always", made.disk, part], limit=300, log=log)
        shutil.move(part, disk)
    else:
        say(f"going on with the disk of {name}")
    return disk


def _kept_path(made: Image, name: str) -> str:
    if os.path.basename(name) != name:
        raise VmError(f"--keep takes a name, not a path: {name}")
    return os.path.join(os.path.dirname(made.disk), f"kept-{name}.ext4")


if __name__ == "__main__":
    raise SystemExit(main())
