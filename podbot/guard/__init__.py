"""What an agent left in a workspace that runs, or is trusted, on the host.

``catalogue`` and ``gitkeys`` say what is looked for, as data. ``walk`` and ``gitdirs`` read the disk and make a
:class:`~podbot.guard.marks.Snapshot`; ``compare`` and ``render`` are pure. ``scan`` is a process of its own.
All that ``scan`` imports is the standard library and this room, so that it starts fast.
"""
