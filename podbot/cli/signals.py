"""Signal handlers of commands."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

from podbot.streams.wake import Interrupted, Resize, Wake

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def end_on_signals() -> None:
    """Let TERM and HUP cancel and clean up what was begun, as Ctrl-C does, and show the cursor again.

    Signals that podbot was started to ignore stay ignored.
    """

    def interrupt(number: int, frame: object) -> None:  # noqa: ARG001
        raise Interrupted(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


@contextlib.contextmanager
def handled(*, tty: bool) -> Iterator[Wake]:
    """A Wake to which INT, TERM and HUP are delivered, and WINCH if there is a terminal.

    Signals that podbot was started to ignore (HUP under nohup, INT after a shell's ``&``) stay ignored.
    """
    wake = Wake()

    def deliver(number: int, frame: object) -> None:  # noqa: ARG001
        wake.deliver(number)

    def resize(number: int, frame: object) -> None:  # noqa: ARG001
        wake.post(Resize())

    ours = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, deliver) for number in ours}
    if tty:
        before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, resize)
    try:
        yield wake
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        wake.close()
