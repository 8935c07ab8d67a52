"""How much memory a child process takes while its output is read late."""

from __future__ import annotations

import subprocess
import threading
import time


class Peak:
    """Samples a process's own peak memory. Not ru_maxrss: after a fork that holds the parent's peak, too."""

    def __init__(self, pid: int) -> None:
        self.kib = 0
        self._path = f"/proc/{pid}/status"
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while True:
            try:
                with open(self._path, encoding="ascii") as file:
                    found = [int(line.split()[1]) for line in file if line.startswith("VmHWM")]
            except OSError:
                return
            if not found:
                return  # a zombie
            self.kib = max(self.kib, *found)
            time.sleep(0.02)


def drained(child: subprocess.Popen[bytes], *, after: float = 0) -> tuple[bytes, int, int]:
    """Read a child to its end, beginning after a pause: (what it printed, its exit code, its peak memory in KiB)."""
    peak = Peak(child.pid)
    time.sleep(after)
    out, _ = child.communicate()
    return out, child.returncode, peak.kib
