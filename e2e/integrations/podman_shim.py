"""Stands for ``podman`` in Podman's own tests: ``exec`` is podbot's, the rest Podman's.

With CHECK_SESSIONS=yes a container of ``run`` is a session of podbot's, so that its guest runs what ``exec`` is given.
CHECK_STATE: a directory for what is known of them, and for the file ``execs`` with the container of each ``exec``.
"""

from __future__ import annotations

import functools
import os
import pty
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import NoReturn

from e2e.harness import PODBOT, wait_for
from e2e.patience import be_patient

STATE, IMAGE = os.environ["CHECK_STATE"], os.environ["CHECK_IMAGE"]
SESSIONS = os.environ["CHECK_SESSIONS"] == "yes"
SHIM = [sys.executable, "-m", "e2e.integrations.podman_shim"]
KEEP = "keep-session"  # not a command of Podman's
FAILED = 125  # Podman's status for an error of its own


@dataclass
class Run:
    """A ``run`` of Podman. ``streams``: of its options those that ``exec`` has; ``files``: (on the host, inside)."""

    name: str
    command: list[str]
    detached: bool = False
    terminal: bool = False
    removed: bool = False
    streams: list[str] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)


def main(words: list[str]) -> int:
    command, rest = words[0], words[1:]
    if command == KEEP:
        return keep(*rest)
    if command == "exec":
        note_exec(next(word for word in rest if not word.startswith("-")))
        replaced_by([*PODBOT, *words])
    if SESSIONS and command == "run":
        try:
            return run(parsed(rest))
        except LookupError as exc:
            print(*exc.args, file=sys.stderr)
            return FAILED
    if rest and os.path.isdir(place_of(rest[-1])):
        return of_session(command, rest[:-1], rest[-1])
    if command == "run":
        words[1:1] = ["--network", "none"]
    if command == "rm" and "--all" in rest:
        remove_sessions()
    return podman(words)


def note_exec(container: str) -> None:
    with open(os.path.join(STATE, "execs"), "a", encoding="utf-8") as file:
        file.write(f"{container}\n")


def podman(words: list[str]) -> NoReturn:
    replaced_by(["podman", *words], CONTAINERS_CONF=os.environ["CHECK_CONTAINERS_CONF"])


def replaced_by(words: list[str], **env: str) -> NoReturn:
    os.execvpe(words[0], words, {**os.environ, **env})


def place_of(name: str, *path: str) -> str:
    """The directory of a session, or a file there: ``log``; ``status`` once it has ended; its workspace ``work``."""
    return os.path.join(STATE, name, *path)


def parsed(words: list[str]) -> Run:
    """The meaning of an option that podbot has in another form; one that it does not have is a LookupError."""
    place = words.index(IMAGE)
    made = Run(f"shim-{uuid.uuid4().hex[:8]}", words[place + 1 :])
    options = iter(words[:place])
    for option in options:
        if option == "--name":
            made.name = next(options)
        elif option == "-v":
            source, target, *_ = next(options).split(":")
            made.files.append((source, target))
        elif option == "--stop-timeout":
            next(options)  # podbot is told when it stops the session
        elif option in ("-d", "-td"):
            made.detached, made.terminal = True, option == "-td"
        elif option == "--rm":
            made.removed = True
        elif option in ("-it", "-i", "-i=false", "--tty", "--tty=false"):
            made.streams.append(option)
        else:
            raise LookupError(f"podbot's sessions have no {option.partition('=')[0]}")
    return made


def run(made: Run) -> int:
    """A session with this command as its agent. What is not detached is run by ``exec``, in a session of its own.

    Files are copied in when it has begun: podbot mounts directories only.
    """
    name, agent = made.name, made.command if made.detached else ["sleep", "infinity"]
    os.makedirs(place_of(name, "work"))
    # Until it has begun, the engine would run what `exec` is given.
    begun = ["sh", "-c", ': >begun; exec "$@"', "sh", *agent]
    words = [*SHIM, KEEP, name, "pty" if made.terminal else "", *begun]
    with open(place_of(name, "log"), "wb") as log:
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    began = place_of(name, "work", "begun")
    wait_for(lambda: ended(name) or os.path.exists(began), what=f"{name} to begin")
    if not os.path.exists(began):
        with open(place_of(name, "log"), encoding="utf-8") as said:
            raise LookupError(said.read())
    for source, target in made.files:
        podbot("cp", source, f"{name}:{target}").check_returncode()
    if made.detached:
        print(name)
        return 0
    note_exec(name)
    status = subprocess.call([*PODBOT, "exec", *made.streams, name, *made.command])
    if made.removed:
        podbot("stop", "--rm", "--time", "0", name).check_returncode()
    return status


def podbot(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*PODBOT, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def keep(name: str, terminal: str, *agent: str) -> int:
    """Run the session to its end, and write its status down."""
    flags = ["--workspace", place_of(name, "work"), "--agent", "custom", "--keep", "--logs", "--name", name]
    words = [*PODBOT, "run", *flags, "--", *agent]
    status = os.waitstatus_to_exitcode(pty.spawn(words)) if terminal else subprocess.call(words)
    with open(place_of(name, "fresh"), "w", encoding="utf-8") as file:
        file.write(f"{status}\n")
    os.rename(place_of(name, "fresh"), place_of(name, "status"))
    return 0


def ended(name: str) -> bool:
    """Whether the session's podbot has ended."""
    return os.path.exists(place_of(name, "status"))


def remove_sessions() -> None:
    for name in os.listdir(STATE):
        if os.path.isdir(place_of(name)):
            podbot("stop", "--rm", "--time", "0", name)
            wait_for(functools.partial(ended, name), what=f"the end of {name}")


def of_session(command: str, options: list[str], name: str) -> int:
    """Do what a command of Podman's does, with a session, by podbot's."""
    if command == "wait":
        wait_for(lambda: ended(name), what=f"the end of {name}")
        with open(place_of(name, "status"), encoding="utf-8") as file:
            print(file.read(), end="")
        return 0
    if command == "inspect":
        podman([command, *options, name])
    if command == "rm" and "-f" in options:
        command, options = "stop", ["--rm", "--time", "0"]
    replaced_by([*PODBOT, command, *options, name])


if __name__ == "__main__":
    be_patient()
    raise SystemExit(main(sys.argv[1:]))
