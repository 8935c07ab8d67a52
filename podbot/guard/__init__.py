"""Finds files that an agent left in a workspace and that run, or are trusted, on the host.

``catalogue`` and ``gitkeys`` list what to look for, as data. ``walk`` and ``gitdirs`` read the disk and make a
:class:`~podbot.guard.marks.Snapshot`; ``compare`` and ``render`` are pure. ``scan`` is a separate process, which
imports only the standard library and this room, so that it starts fast.
"""
