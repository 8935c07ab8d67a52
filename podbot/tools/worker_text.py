"""The files worker's text, and the command that starts it: the text comes over stdin, so no file has to be mounted."""

from __future__ import annotations

import functools

from podbot.guest.program_text import PRELUDE, packages, part

_PACKAGES = ("podbot", "podbot.tools", "podbot.tools.inside")
_PARTS = (
    "podbot.tools.worker_frames",
    "podbot.tools.inside.refusals",
    "podbot.tools.inside.beneath",
    "podbot.tools.inside.reading",
    "podbot.tools.inside.glob_pattern",
    "podbot.tools.inside.walking",
    "podbot.tools.inside.finding",
    "podbot.tools.inside.required_text",
    "podbot.tools.inside.line_search",
    "podbot.tools.inside.grep",
    "podbot.tools.inside.edits",
    "podbot.tools.inside.writing",
    "podbot.tools.inside.removal",
    "podbot.tools.inside.worker",
)
TOO_OLD = 38  # exit status for a Python before 3.8
_LOADER = f"""import os,sys
if sys.version_info<(3,8):sys.exit({TOO_OLD})
def r(n):
 t=b""
 while len(t)<n:
  d=os.read(0,n-len(t))
  if not d:sys.exit(1)
  t+=d
 return t
exec(compile(r(int(r(8))),"podbot-files","exec"))"""
# Regular expressions of an agent may draw warnings; names of files are UTF-8 whatever the locale.
_FLAGS = ("-I", "-S", "-W", "ignore", "-X", "utf8", "-c")


@functools.cache
def worker_text() -> str:
    """The worker as one Python program, which needs only the standard library of Python 3.8 or later."""
    head = "import sys\n" + PRELUDE + packages(_PACKAGES) + "".join(part(name) for name in _PARTS)
    return head + 'sys.exit(sys.modules["podbot.tools.inside.worker"].main(sys.argv[1]))\n'


def loaded_text() -> bytes:
    """What the worker's command reads first from its stdin."""
    text = worker_text().encode("utf-8")
    return b"%08d" % len(text) + text


def worker_words(python: str, root: str) -> tuple[str, ...]:
    """The worker's command. ``root``: an absolute path."""
    return (python, *_FLAGS, _LOADER, root)
