"""The streams of a command beside the engine (ADR 0016): named pipes, the process at them, the shell that opens them.

The switch is the directory of pipes that ``run_exec`` is given: None, and all of it goes over the engine.
"""
