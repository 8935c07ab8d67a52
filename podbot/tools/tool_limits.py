"""The limits of the tools."""

from __future__ import annotations

from podbot.shell.shell_limits import ShellLimits

PATH_SEGMENTS = 16
SEGMENT_CHARS = 80
WORKSPACE = "/workspace"  # what the tools call the root of the workspace, on every backend

ENTRIES = 2000  # lines of one read_file
CONTENT_CHARS = 48_000  # of a file that is written, and of a command's stdin
PATTERN_CHARS = 4096

COMMAND_CHARS = 4096  # all words and one space between two of them
ENV_VARIABLES = 64
ENV_NAME_CHARS = 80
SHELL_SECONDS = (1.0, 120.0)
SHELL_DEFAULT_SECONDS = 30.0
TIMEOUT_EXIT_CODE = 124
CAPTURE_DISABLED = "capture disabled"

CONTAINER_SHELL_SECONDS = (1, 600)

PYTHON_SECONDS = 5.0
PYTHON_STREAM_CHARS = 4096
LOCAL_CODE_CHARS = 2000

# Code has no limit of its own but its five seconds, and reaches Python through its stdin. CPython 3.11
# compiles about 2 MB in a second, so nothing of this size could run.
SUITE_SHELL_LIMITS = ShellLimits(stdin_bytes=16 << 20, default_timeout=SHELL_DEFAULT_SECONDS)
