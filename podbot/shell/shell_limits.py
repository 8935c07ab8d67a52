"""The limits of a shell and their defaults."""

from __future__ import annotations

from dataclasses import dataclass

JOB_OUTPUT = 1 << 20  # bytes of each stream that are kept of a background job
BYTES_OUTPUT = 1 << 20  # bytes of each stream that ``execute_bytes`` keeps


@dataclass(frozen=True, slots=True)
class ShellLimits:
    """Limits of one command. ``command_chars``: characters of all its words together, plus one between two words.

    ``default_timeout``: seconds, for a call that gives no time limit; a background job and a terminal then have none.
    ``output_bytes``: bytes of stdout and stderr together. ``script_bytes`` and ``stdin_bytes``: bytes in UTF-8.
    """

    default_timeout: float = 30.0
    min_timeout: float = 0.1
    max_timeout: float = 600.0
    output_bytes: int = 32 * 1024
    command_chars: int = 4096
    script_bytes: int = 256 * 1024
    stdin_bytes: int = 64 * 1024
    env_variables: int = 256
    env_bytes: int = 128 * 1024
    job_output_bytes: int = JOB_OUTPUT
    bytes_output: int = BYTES_OUTPUT
