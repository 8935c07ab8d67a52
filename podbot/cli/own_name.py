"""How the operator types podbot: by its name where that starts this podbot, otherwise by its path."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping


def own_name(started_as: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """``podbot``, or what works in any directory where the PATH has no podbot or another one, as after `make run`.

    ``started_as``: this process's own first word, unless given.
    """
    path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    started_as = sys.argv[0] if started_as is None else started_as
    if os.path.basename(started_as) != "podbot":  # `python -m podbot`, or a program that uses podbot
        return "podbot"
    found = shutil.which("podbot", path=path)
    here = os.path.abspath(started_as)
    if not os.path.exists(here) or (found is not None and os.path.realpath(found) == os.path.realpath(here)):
        return "podbot"
    return shlex.quote(here)
