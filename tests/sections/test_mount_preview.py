from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.sections.host_mounts import HostMountPreview
from podbot.sections.mount_preview import rendered_mounts, with_mounts


def preview(*entries: str, more: int = 0, **changes: object) -> HostMountPreview:
    given: dict[str, object] = {
        "host_path": "src/", "resolved_host": "/srv/src", "mount_path": "src", "is_directory": True,
        "entries": entries, "more": more, "files": 2, "bytes_copied": 1234,
    }  # fmt: skip
    return HostMountPreview(**{**given, **changes})  # type: ignore[arg-type]


def test_the_form_of_a_preview() -> None:
    assert rendered_mounts([preview("a.py", "docs/", more=1234, notes=("l: a link",))]) == (
        "Files of the host that were copied into it:\n\n"
        "- /workspace/src/, from src/ (2 files, 1,234 bytes)\n"
        "  - a.py\n  - docs/\n  - … (+1,234 more)\n  - skipped: l: a link"
    )
    empty = preview(files=0, bytes_copied=0, mount_path="")
    assert rendered_mounts([empty]).splitlines()[2:] == ["- /workspace/, from src/ (0 files, 0 bytes)", "  - <empty>"]
    single = preview("a", is_directory=False, files=1, mount_path="a", host_path="a")
    assert rendered_mounts([single]).splitlines()[2:] == ["- /workspace/a, from a (1 file, 1,234 bytes)"]


def test_mounts_come_behind_the_text() -> None:
    assert with_mounts("text\n", []) == "text\n"
    assert with_mounts("text $x\n", [preview("$HOME")]).startswith("text $x\n\nFiles of the host")


@given(st.lists(st.text(min_size=1, max_size=300), max_size=20))
def test_any_name_renders_on_one_line(names: list[str]) -> None:
    text = with_mounts("text", [preview(*names)])
    lines = text.splitlines()
    assert len(lines) == 5 + max(1, len(names))
    assert all(len(line) < 130 for line in lines)
