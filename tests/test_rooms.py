"""Module names, one basename for one subject, and the sizes of modules and rooms."""

from __future__ import annotations

import collections
import os

import podbot

ROOT = os.path.dirname(podbot.__file__)
PLANNED, OPENED = "launch/resources", "session/resources"

# Basename -> the one subject, and every room that has a module about it. A name that is not here belongs to one room.
SHARED: dict[str, tuple[str, set[str]]] = {
    "clone": ("a clone: its plan, its making, its errors", {PLANNED, OPENED, "errors"}),
    "config": ("the configuration: its commands, its errors", {"cli", "errors"}),
    "container": ("the container of a session: its life, its errors", {"session", "errors"}),
    "copying": ("podbot cp: the library's call, what it does", {"api", "transfer"}),
    "credentials": ("the copied logins", {PLANNED, OPENED}),
    "doctor": ("podbot doctor: its command, what it does", {"cli", "diagnosis"}),
    "driver": ("the driver of an engine: its interface, Podman's", {"engine", "engine/podman"}),
    "every": ("the list of all resources", {PLANNED, OPENED}),
    "files": ("files of a workspace: those that act on the host, those that the tools use", {"guard", "tools"}),
    "gateway": ("the gateway of a filtered sandbox", {PLANNED, OPENED}),
    "guard": ("the guard of a workspace", {PLANNED, OPENED}),
    "guest": ("the guest: its plan, its socket, its program, its errors", {PLANNED, OPENED, "guest/inside", "errors"}),
    "history": ("kept conversations: their store, their command, their errors", {PLANNED, OPENED, "cli", "errors"}),
    "host": ("podbot host: its command, what it does", {"cli", "hosting"}),
    "login": ("a login that podbot keeps: its plan, its copy, its command", {PLANNED, OPENED, "cli"}),
    "login_flow": ("an agent's login flow: its plan, its sandbox", {"launch", "session"}),
    "jobs": ("background jobs: kept inside, asked for, shown", {"guest/inside", "guest", "shell"}),
    "logs": ("podbot logs: its command, what it reads", {"cli", "management"}),
    "repository": ("the repository around a workspace: found, planned", {"session", "launch"}),
    "run": ("podbot run: its command, what it does", {"cli", "session"}),
    "setup": ("podbot setup: its command, what it does", {"cli", "provisioning"}),
    "shells": ("shells: the library's call, those of a session", {"api", "session"}),
    "token": ("the token of a session", {PLANNED, OPENED}),
    "token_daemon": ("the token-daemon: its command, what it does", {"cli", "tokens"}),
    "types": ("the values that cross the room's door", {"launch", "shell"}),
}


def modules() -> dict[str, set[str]]:
    """Basename -> the rooms that have a module of that name. A package's own module has no name."""
    found = collections.defaultdict(set)
    for path in sources():
        room, name = os.path.split(os.path.relpath(path, ROOT))
        found[name.removesuffix(".py")].add(room or ".")
    del found["__init__"]
    return found


def sources() -> list[str]:
    """Every module of the package."""
    return [os.path.join(at, name) for at, _, names in os.walk(ROOT) for name in names if name.endswith(".py")]


def lines(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        return sum(1 for _ in file)


def test_modules_of_one_basename_have_one_subject() -> None:
    found = {name: rooms for name, rooms in modules().items() if len(rooms) > 1}
    assert found == {name: rooms for name, (_, rooms) in SHARED.items()}


def test_no_module_is_longer_than_400_lines() -> None:
    assert {path: lines(path) for path in sources() if lines(path) > 400} == {}


def test_no_room_has_more_than_a_seventh_of_the_lines() -> None:
    rooms: collections.Counter[str] = collections.Counter()
    for path in sources():
        rooms[os.path.relpath(path, ROOT).partition(os.sep)[0]] += lines(path)
    assert {room: count for room, count in rooms.items() if count * 7 > rooms.total()} == {}
