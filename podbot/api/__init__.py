"""The library's public calls: they are typed, never print, never exit and install no signal handlers.

There is one file for each group of calls; :mod:`podbot` exports them. This is the only room that selects an engine.
Each call opens its own connection, and imports what it needs only when it is called.
"""
