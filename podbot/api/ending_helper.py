"""Runs as a process of its own, by its path: ends what a hosted session left behind. See ``ending`` for what it does.

Its stdin is the job, as JSON. It holds the session's locks by descriptors that it was given.
"""

from __future__ import annotations

import os
import signal
import sys

LIMIT = 90  # seconds for all of it; then the kernel frees the locks, and the next podbot command looks after the rest


def main() -> None:
    """Ends with the process."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # whatever podbot's own parent left
    signal.alarm(LIMIT)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from podbot.api.engines import reopen
    from podbot.hosting.ending import run

    run(sys.stdin.buffer.read(), reopen)


if __name__ == "__main__":
    main()
