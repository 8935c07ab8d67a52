"""What the server tells agents about itself."""

from __future__ import annotations

_ABOUT = """\
podbot gives you {what}. Every tool works on the files below /workspace of one sandbox. Calls without the parameter \
`sandbox` use your default sandbox, which the first call starts; that suffices for most work. Call sandbox_create for \
another one, to keep experiments apart, and pass its handle as `sandbox`. Calls in different sandboxes run at once."""

_WRITING = """\
The files are copies: changing them changes nothing on the host. When your work is done, patch_export returns it as \
a patch, and says how it is applied. read_file, glob and grep are faster than a shell. write_file only creates; \
edit_file changes. shell_execute runs a command for at most 120 seconds; job_start runs one in the background, and \
job_output reads what it prints. Output that is too long for a result is linked as a resource."""

_READING = """\
This server only reads: there are no tools that change files or run commands. Sandboxes can be made and closed."""
_SANDBOXED = "sandboxes without a network, isolated from the host"
_LOCAL = "workspaces on the host itself. Commands run without isolation, as the user's own"


def instructions(*, sandboxed: bool, read_only: bool) -> str:
    """The text."""
    what = _SANDBOXED if sandboxed else _LOCAL
    return f"{_ABOUT.format(what=what)}\n\n{_READING if read_only else _WRITING}"
