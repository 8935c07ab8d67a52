"""The names of podbot's images that were last listed or built, for the shell's completion, which asks no engine."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping

from podbot.atomic import replace_file
from podbot.errors import PodbotError
from podbot.places import cache_dir, private_dir
from podbot.visible_text import is_printable

FILE = "image-names"
_MOST, _LARGEST = 200, 1 << 16  # names, bytes


def image_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Those that were remembered; none if there is no such file of this user's."""
    try:
        descriptor = os.open(_path(environ), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ()
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
        text = file.read(_LARGEST).decode("utf-8", "replace") if ours else ""
    return tuple(name for name in text.split("\n")[:_MOST] if name and is_printable(name))


def remember_images(environ: Mapping[str, str], names: Iterable[str], *, all_of_them: bool) -> None:
    """Remember names, as the only ones or besides those that are remembered. A failure is ignored."""
    kept = () if all_of_them else image_names(environ)
    _write(environ, list(dict.fromkeys([*names, *kept]))[:_MOST])


def forget_image(environ: Mapping[str, str], name: str) -> None:
    """Do not remember this name any more. A failure is ignored."""
    _write(environ, [other for other in image_names(environ) if other != name])


def _write(environ: Mapping[str, str], found: list[str]) -> None:
    if found == list(image_names(environ)):
        return
    path = _path(environ)
    with contextlib.suppress(PodbotError):
        private_dir(os.path.dirname(path))
        replace_file(path, "".join(f"{name}\n" for name in found).encode(), operation="remember the images")


def _path(environ: Mapping[str, str]) -> str:
    return os.path.join(cache_dir(environ), FILE)
