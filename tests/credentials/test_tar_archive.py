"""An archive ends right after its two zero blocks; otherwise the engine aborts the upload (issue 10.5)."""

from __future__ import annotations

import io
import tarfile

from hypothesis import example, given
from hypothesis import strategies as st

from podbot.credentials.login_files import Entry
from podbot.credentials.tar_archive import build
from podbot.engine.port import ARCHIVE_BLOCK


def end_of_members(archive: bytes) -> int:
    """The offset of the first byte after the last member."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        last = tar.getmembers()[-1]
    return last.offset_data + -(-last.size // ARCHIVE_BLOCK) * ARCHIVE_BLOCK


NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=120)


@given(st.lists(st.tuples(NAMES, st.binary(max_size=3 * ARCHIVE_BLOCK)), min_size=1, max_size=12))
@example([("a", b"x" * ARCHIVE_BLOCK)])
@example([("a", b"x" * (18 * ARCHIVE_BLOCK))])  # with its header and the end 21 blocks: one more than tarfile pads to
def test_nothing_follows_the_two_zero_blocks(files: list[tuple[str, bytes]]) -> None:
    archive = build(Entry(f"{number}{name}", "file", 0o600, data) for number, (name, data) in enumerate(files))
    assert archive[end_of_members(archive) :] == bytes(2 * ARCHIVE_BLOCK)
