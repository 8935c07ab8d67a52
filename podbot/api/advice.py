"""What podbot tells an operator once a week at most, after a session: that the sandbox image is old."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.errors import PodbotError
from podbot.events import Emit, Event
from podbot.places import state_dir

if TYPE_CHECKING:
    from podbot.engine.port import Engine

STAMP = "told-outdated"  # its time is when podbot last looked
WEEK = 7 * 86400.0


def tell_outdated(engine: Engine, image: str, kind: str, environ: Mapping[str, str], emit: Emit) -> None:
    """Report what is old in ``image``, unless podbot looked within the last week.

    It costs one ``stat``, and once a week a question to the engine. Failures are not reported: it is only advice.
    """
    stamp = os.path.join(state_dir(environ), STAMP)
    now = time.time()
    with contextlib.suppress(OSError):
        if 0 <= now - os.stat(stamp).st_mtime < WEEK:
            return
    from podbot.images.outdated import outdated
    from podbot.places import private_dir

    with contextlib.suppress(OSError, PodbotError):
        found = engine.image(image)
        text = outdated(found.labels, now - found.created, kind) if found is not None else ""
        private_dir(state_dir(environ))
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(stamp, follow_symlinks=False)
        if text:
            emit(Event("notice", "image.outdated", text, {"image": image, "agent": kind}))
