"""Joins modules of podbot to the text of one program, for an interpreter inside a sandbox, which has no podbot.

The modules use only the standard library of Python 3.8 and later, and import each other by their full names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_PODBOT = os.path.dirname(os.path.dirname(__file__))
_LINE_OF_COMMENT = re.compile(r"^ *#.*\n", re.MULTILINE)
# Defines `_modules`, which the lines of `modules` call. `sys` must be imported. The interpreter keeps the memory that
# its compiler once needed, which is many times that of the text. So the longest text is compiled first, when little
# else is in memory (0.2 MB less), and without docstrings (0.06 MB less).
PRELUDE = """def _modules(texts):
    codes = {}
    for name, text in sorted(texts, key=lambda part: -len(part[1])):
        codes[name] = compile(text, name, "exec", optimize=2)
    for name, _ in texts:
        module = sys.modules[name] = type(sys)(name)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)
        exec(codes.pop(name), module.__dict__)
"""


def modules(names: Iterable[str], packages: Iterable[str] = ()) -> str:
    """A line that creates modules, such as ``podbot.guest.frames``, in this order, without their lines of comment.

    ``packages``: empty ones that it creates before, the outer ones first.
    """
    return f"_modules({[*((name, '') for name in packages), *((name, _text(name)) for name in names)]!r})\n"


def _text(name: str) -> str:
    path = os.path.join(_PODBOT, *name.split(".")[1:]) + ".py"
    with open(path, encoding="utf-8") as file:
        return _LINE_OF_COMMENT.sub("", file.read())
