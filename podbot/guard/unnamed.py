"""Files at the top of a workspace that look like a tool's settings, although no rule names them.

Tools are too many for a list of all that they read. These findings are shown last, in one line.
"""

from __future__ import annotations

import os
import stat

from podbot.guard import files, repositories
from podbot.guard.scope import ORDINARY
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.guard.walk import Scan

RULE = "settings"
_MOST = 2000  # files
_SUFFIXES = (
    "rc", ".toml", ".json", ".jsonc", ".json5", ".yml", ".yaml", ".cfg", ".ini", ".conf", ".properties", ".lock",
    ".lockb", ".resolved",
)  # fmt: skip
# Documents, and what only lists other files.
_PLAIN = frozenset((
    "AUTHORS", "CHANGELOG", "CHANGES", "CODEOWNERS", "CONTRIBUTORS", "COPYING", "INSTALL", "LICENCE", "LICENSE", "NEWS",
    "NOTICE", "README", "TODO", "VERSION", ".DS_Store", ".dockerignore", ".editorconfig", ".eslintcache",
    ".eslintignore", ".gitignore", ".gitkeep", ".mailmap", ".npmignore", ".prettierignore", ".stylelintignore",
    ".coverage", ".rspec_status", ".testmondata", "tags", "TAGS",
))  # fmt: skip
# What tools leave: counts of tests, caches, an editor's open files.
_LEFT = (".cache", ".swp", ".swo", "~")
_PROGRAMS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")


def is_settings(name: str) -> bool:
    """Whether a file of that name may be a tool's settings: a dotfile, `x.toml`, or a word.

    Of words, :func:`look` leaves out what has neither a capital letter, as `Procfile`, nor the mode of a program.
    """
    if name in _PLAIN or name.startswith((".coverage.", "LICENSE-")) or name.endswith(_LEFT):
        return False
    return name.startswith(".") or name.endswith(_SUFFIXES) or _is_word(name)


def _is_word(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _is_script_or_file(handle: int, name: str, found: os.stat_result) -> bool:
    """Whether a word is the name of a `Procfile` and its like, or of a script; builds make the other programs."""
    if not name[0].isupper() and not found.st_mode & stat.S_IXUSR:
        return False
    read = files.read(handle, name, 4)
    return read is None or not read.data.startswith(_PROGRAMS)


def look(scan: Scan, top: str) -> None:
    """Record such files in the directory ``top``. Raises ``Over``."""
    try:
        handle = files.open_directory(top)
    except OSError:
        return  # the walk has recorded a gap
    try:
        if repositories.is_repository(handle, "", ORDINARY):
            return  # git's own files
        scan.root = top
        with os.scandir(handle) as entries:
            names = sorted(entry.name for entry in entries if is_settings(entry.name))
        names = [name for name in names if not ORDINARY.rule_of(name) and name not in ORDINARY.below]
        if len(names) > _MOST:
            scan.once(f"more than {_MOST} files at the top that look like settings")
        for name in names[:_MOST]:
            _look(scan, handle, name)
    except OSError:
        scan.gap("directories that cannot be read")
    finally:
        os.close(handle)


def _look(scan: Scan, handle: int, name: str) -> None:
    found = files.look(handle, name)
    if found is None:
        return
    if stat.S_ISREG(found.st_mode):
        if not found.st_size or (_is_word(name) and not _is_script_or_file(handle, name, found)):
            return
        scan.reading.record(scan, handle, name, RULE, found)
    elif stat.S_ISLNK(found.st_mode) and not _is_word(name):  # words are links to programs and directories as a rule
        leads = files.link(handle, name)
        if leads is not None:
            scan.links.look(scan, name, leads, RULE, ORDINARY)
