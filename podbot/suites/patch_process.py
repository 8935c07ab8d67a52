"""Starts the helper process that makes a patch, and ends it when its time is up."""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import tempfile
import time

from podbot.children import gone, interpreter, leave, sweep
from podbot.suites import patch_helper
from podbot.suites.patch_job import Job

_PASSED_ON = ("LD_LIBRARY_PATH",)  # some interpreters need it to find libpython
_SLACK = 4 << 20  # bytes of an answer besides the patch and the names: reasons, and what marshal adds


def run_helper(job: Job, seconds: float) -> bytes:
    """What the helper process says within that time, after which it has ended or, blocked in the kernel, is abandoned.

    Raises OSError when it cannot be started.
    """
    end = time.monotonic() + seconds
    sweep()
    program = interpreter(patch_helper.__file__)
    answer, theirs = os.pipe()
    try:
        with tempfile.TemporaryFile() as asked:  # not a pipe, which podbot would have to fill while it reads
            asked.write(marshal.dumps(job.to_plain()))
            asked.seek(0)
            actions = [
                (os.POSIX_SPAWN_DUP2, asked.fileno(), 0),
                (os.POSIX_SPAWN_DUP2, theirs, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ]
            env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            argv = [program, "-I", "-S", patch_helper.__file__]
            process = os.posix_spawn(program, argv, env, file_actions=actions, setpgroup=0)  # Ctrl-C is podbot's
        os.close(theirs)
        theirs = -1
        try:
            return _read(answer, 2 * job.limits.patch_bytes + job.limits.named_bytes + _SLACK, end)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            if not gone(process, 0.2):
                leave(process)
    finally:
        os.close(answer)
        if theirs >= 0:
            os.close(theirs)


def _read(fd: int, most: int, end: float) -> bytes:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    data = bytearray()
    while len(data) < most and (left := end - time.monotonic()) > 0 and poller.poll(left * 1000):
        more = os.read(fd, 1 << 16)
        if not more:
            break
        data += more
    return bytes(data)
