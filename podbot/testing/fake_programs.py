"""The few programs that every fake container has: what the engine contract and podbot itself run."""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Callable, Mapping, Sequence

from podbot.exec_spec import ExecSpec
from podbot.testing.peer import STDERR, STDOUT, Command, ExecPeer

Kill = Callable[[str, int], bool]  # (signal's name without SIG, process group inside) -> whether it was there


def builtin(spec: ExecSpec, files: Mapping[str, bytes], kill: Kill) -> Command:
    """The program that ``spec`` names; a missing one ends with 127, as the engine's does."""
    name, *words = spec.command
    programs: dict[str, Command] = {
        "true": lambda _peer: 0,
        "false": lambda _peer: 1,
        "cat": lambda peer: _cat(peer, words, files),
        "sleep": _sleep,
        "stty": _stty,
        "sh": lambda peer: _sh(peer, words[-1] if words else "", kill),
    }
    return programs.get(name, _missing)


def unpacked(directory: str, archive: bytes) -> dict[str, bytes]:
    """The regular files of a tar archive, by absolute path."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if (content := tar.extractfile(member)) is not None:
                files[f"{directory.rstrip('/')}/{member.name}"] = content.read()
    return files


def _cat(peer: ExecPeer, words: Sequence[str], files: Mapping[str, bytes]) -> int:
    if not words:
        while data := peer.read():
            peer.write(STDOUT, data)
        return 0
    for path in words:
        if path not in files:
            peer.write(STDERR, f"cat: {path}: No such file or directory\n".encode())
            return 1
        peer.write(STDOUT, files[path])
    return 0


def _sleep(peer: ExecPeer) -> int:
    """Until it is signalled or its container ends: no test waits for a clock."""
    peer.ended.wait()
    return 0


def _stty(peer: ExecPeer) -> int:
    if peer.size is None:
        return 1
    peer.write(STDOUT, f"{peer.size.rows} {peer.size.columns}\n".encode())
    return 0


def _missing(peer: ExecPeer) -> int:
    peer.write(STDERR, f"exec failed: {peer.spec.command[0]}: executable file not found in $PATH\n".encode())
    return 127


def _sh(peer: ExecPeer, script: str, kill: Kill) -> int:
    """``echo WORDS [>&2]``, ``exit N`` and ``kill -NAME -GROUP``, joined by semicolons; nothing else."""
    for line in script.split(";"):
        words = shlex.split(line)
        match words:
            case ["exit", code]:
                return int(code)
            case ["kill", name, group]:
                if not kill(name.removeprefix("-"), int(group.removeprefix("-"))):
                    return 1
            case ["echo", *text, ">&2"]:
                peer.write(STDERR, (" ".join(text) + "\n").encode())
            case ["echo", *text]:
                peer.write(STDOUT, (" ".join(text) + "\n").encode())
            case _:
                return _missing(peer)
    return 0
