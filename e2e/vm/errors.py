"""What ends a run of the virtual machine."""

from __future__ import annotations


class VmError(Exception):
    """Its text is the whole message: what failed, the last words of what failed, and what to do about it."""
