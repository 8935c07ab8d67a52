"""The guest's text: the modules of ``inside`` and the frames that both sides share, joined to one file."""

from __future__ import annotations

import functools

from podbot.guest.program_text import PRELUDE, modules

_FIRST = "podbot.guest.inside.socket_handover"
_PARTS = (
    "podbot.guest.frames",
    "podbot.guest.inside.plain_json",
    "podbot.guest.inside.loop",
    "podbot.guest.inside.processes",
    "podbot.guest.inside.spawn",
    "podbot.guest.inside.users",
    "podbot.guest.inside.terminfo",
    "podbot.guest.inside.standard_streams",
    "podbot.guest.inside.guest_command",
    "podbot.guest.inside.jobs",
    "podbot.guest.inside.job_requests",
    "podbot.guest.inside.connection",
    "podbot.guest.inside.guest",
    "podbot.guest.inside.server",
    "podbot.guest.inside.main",
)
_HEAD = '''#!/usr/bin/env python3
"""podbot's guest: runs the commands of podbot's operator in this sandbox. Made from podbot/guest/inside."""
import os, sys
if sys.version_info < (3, 8):
    os.execvp("sleep", ["sleep", "infinity"])
'''
_HAND_OVER = """if sys.argv[1:2] in (["serve"], ["serve-or-end"]):
    _ends = sys.argv[1] == "serve-or-end"
    try:
        sys.modules["podbot.guest.inside.socket_handover"].take(sys.argv[2], wait_for_podbot=_ends)
    except OSError:
        if _ends:
            sys.exit(0)
        os.execvp("sleep", ["sleep", "infinity"])
"""
_TAIL = """sys.exit(sys.modules["podbot.guest.inside.main"].main(sys.argv[1:]))
"""
_PACKAGES = ("podbot", "podbot.guest", "podbot.guest.inside")


@functools.cache
def guest_text() -> str:
    """The guest as one Python program, which needs only the standard library of Python 3.8 or later."""
    return _HEAD + PRELUDE + modules([_FIRST], _PACKAGES) + _HAND_OVER + modules(_PARTS) + _TAIL
