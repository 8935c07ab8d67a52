"""A helper process, started by its path, that makes a patch; see ``patch_export``.

A file system that does not answer blocks a process in the kernel, where no signal reaches it; a text can be costly to
compare. Then this process is killed or left behind, and podbot continues. stdin carries the job, stdout what is found,
one record after another, in ``marshal`` format. It imports only its own modules and the standard library.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys
from typing import Any

SPARE = 5.0  # seconds for what the time limit does not interrupt


def main() -> None:
    """The helper's main function."""
    here = os.path.dirname(os.path.abspath(__file__))
    for name, place in (("podbot", os.path.dirname(here)), ("podbot.suites", here)):
        package = type(sys)(name)  # bypasses the packages' own modules, which import more
        package.__path__ = [place]
        sys.modules[name] = package
    from podbot.suites.patch_job import job_of
    from podbot.suites.workspace_changes import Comparison

    job = job_of(marshal.load(sys.stdin.buffer))  # noqa: S302 - from the podbot that started this
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(job.limits.seconds + 2 * SPARE) + 1)  # in case podbot is killed

    def report(record: tuple[Any, ...]) -> None:
        marshal.dump(record, sys.stdout.buffer)
        sys.stdout.buffer.flush()  # the next file may block this process for ever

    try:
        comparison = Comparison(job, report)
    except OSError as error:
        report(("failed", str(error.strerror)))
    else:
        comparison.run()


if __name__ == "__main__":
    main()
