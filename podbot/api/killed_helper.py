"""A helper process, started by its path, that removes what is left of one session whose podbot was killed.

Its argument is the session's directory; see ``session.killed``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

LIMIT = (
    90  # seconds to wait for the session's release, and again for the rest; the next podbot command finishes the work
)


def main(path: str) -> None:
    """The helper's main function."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # podbot's own parent may have had it ignored
    signal.alarm(LIMIT)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from podbot.session.flags import await_release
    from podbot.session.killed import until_done

    await_release(path, LIMIT)
    signal.alarm(LIMIT)  # again: it may have waited for another helper process for as long
    until_done(lambda: clean_up(path))


def clean_up(path: str) -> None:
    """Remove what is left of the session in directory ``path``. Raises PodbotError subclasses."""
    from podbot.api.engines import reopen
    from podbot.engine.endpoint import EngineRef
    from podbot.session.directory import left_session
    from podbot.session.killed import remove_left
    from podbot.session.record import read_record

    if not os.path.isdir(path):
        return
    record = read_record(path)
    if record is None:  # podbot was killed before it wrote one
        with left_session(path):
            return
    with contextlib.closing(reopen(EngineRef(record.endpoint, record.engine), os.environ)) as engine:
        remove_left(engine, os.environ, path, record)


if __name__ == "__main__":
    main(sys.argv[1])
