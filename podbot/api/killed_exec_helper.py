"""A helper process, started by its path, that ends a command of the engine whose ``podbot exec`` was killed.

Its arguments are the kind of engine, its address, the container, and the engine's id of the command.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

LIMIT = 60  # seconds in all


def main(kind: str, endpoint: str, container: str, exec_id: str) -> None:
    """The helper's main function."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # podbot's own parent may have had it ignored
    signal.alarm(LIMIT)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from podbot.api.engines import reopen
    from podbot.engine.endpoint import EngineRef
    from podbot.execution.engine_command import end_left_command
    from podbot.session.killed import until_done

    def end() -> None:
        with contextlib.closing(reopen(EngineRef(endpoint, kind), os.environ)) as engine:
            end_left_command(engine, container, exec_id)

    until_done(end)


if __name__ == "__main__":
    main(*sys.argv[1:])
