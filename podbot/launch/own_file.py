"""Files that podbot writes on the host and mounts read-only: named by their content, so that sessions share them."""

from __future__ import annotations

import hashlib
import os

from podbot.launch.types import Mount


def own_file_mount(text: str, state_dir: str, kind: str, target: str) -> Mount:
    """Where ``text`` lies and where it goes; a kept session finds it again, whatever later sessions need."""
    name = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return Mount(os.path.join(state_dir, kind, name), target, read_only=True)
