"""The library's front door: typed calls that never print, never exit and install no signal handler.

One file for each group of calls; :mod:`podbot` exports them. The only room that picks an engine. Each call opens its
own connection; imports happen inside, so that a caller pays for what it uses.
"""
