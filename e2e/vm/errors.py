"""Errors that end a run of the virtual machine."""

from __future__ import annotations


class VmError(Exception):
    """Its text is the whole message: what failed, its last output, and the remedy."""
