"""Messages between podbot and a files worker: a length of 4 bytes, big-endian, and a JSON object of that many bytes.

podbot sends ``{"id", "op", "args", "seconds"}``. The worker answers with ``{"id", "ok"}`` or ``{"id", "error"}``, one
request at a time. Its first message, with id 0, says that it has started.

This module is also part of the worker's text, so it uses only the standard library of Python 3.8.
"""

from __future__ import annotations

import struct

VERSION = 1
HEADER = struct.Struct("!I")
REQUEST_BYTES = 2 << 20  # of a request's JSON
ANSWER_BYTES = 8 << 20  # of an answer's JSON: TEXT_BYTES can become six times as many, "\u0001" for one byte
TEXT_BYTES = 1 << 20  # of all texts in one answer, in UTF-8: the content, or the paths and lines
PIECE_BYTES = 1 << 20  # of a file in one request or answer, which base64 makes a third longer
ENTRIES = 2000  # of a listing, and matches of one search; also lines of a file
SEGMENTS = 64  # of a path in a request
NAME_BYTES = 255  # of a segment
PATTERN_CHARS = 4096  # of a pattern in a request
READ_BYTES = 64 << 20  # of a file that is read by lines
EDIT_BYTES = 16 << 20  # of a file that is edited, before and after
GREP_BYTES = 16 << 20  # of a file that is searched; larger ones are skipped
NAMES_HELD = 300_000  # names of directories that a walk holds at once
DEPTH = 200  # directories into which a walk descends below its start
