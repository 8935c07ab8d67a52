"""Joins modules of podbot to the text of one program, for an interpreter inside a sandbox, which has no podbot.

The modules use only the standard library of Python 3.8 and later, and import each other by their full names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_PODBOT = os.path.dirname(os.path.dirname(__file__))
_LINE_OF_COMMENT = re.compile(r"^ *#.*\n", re.MULTILINE)
# Defines `_module`, which the text of each part calls. `sys` must be imported.
PRELUDE = """def _module(name, text=""):
    module = sys.modules[name] = type(sys)(name)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    exec(compile(text, name, "exec"), module.__dict__)
"""


def packages(names: Iterable[str]) -> str:
    """Lines that create empty packages, the outer ones first."""
    listed = ", ".join(f'"{name}"' for name in names)
    return f"for _name in ({listed}):\n    _module(_name)\n"


def part(name: str) -> str:
    """A line that creates the module ``name``, such as ``podbot.guest.frames``, without its lines of comment."""
    path = os.path.join(_PODBOT, *name.split(".")[1:]) + ".py"
    with open(path, encoding="utf-8") as file:
        text = _LINE_OF_COMMENT.sub("", file.read())
    return f"_module({name!r}, {text!r})\n"
