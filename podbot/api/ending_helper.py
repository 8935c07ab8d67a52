"""A helper process, started by its path, that ends a hosted session; see ``hosting.ending``.

Its stdin is the job as JSON. It holds the session's locks through inherited descriptors.
"""

from __future__ import annotations

import os
import signal
import sys

LIMIT = 90  # seconds in all; then the kernel releases the locks, and the next podbot command finishes the work


def main() -> None:
    """The helper's main function."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # podbot's own parent may have had it ignored
    signal.alarm(LIMIT)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from podbot.api.engines import reopen
    from podbot.hosting.ending import run

    run(sys.stdin.buffer.read(), lambda engine: reopen(engine, os.environ), environ=os.environ)


if __name__ == "__main__":
    main()
