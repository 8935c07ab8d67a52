"""The library's front door: typed calls that never print, never exit and install no signal handler."""
