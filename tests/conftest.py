"""For every fast test.

In CI each property tries the same examples every time: the verdict on a commit must not be a matter of luck. Everywhere
else the examples are new ones each time.

No deadline for a property's example: the machine may be busy, and a hang is the test's own to bound.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("podbot", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("podbot")

# podbot leaves signals ignored that it was started to ignore (nohup, a shell's `&`): a suite started so tests them.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)
