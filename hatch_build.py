"""What the package says of itself on an index: its addresses, and a README whose links work there.

The address of the repository is one line of pyproject.toml: ``repository`` below
``[tool.hatch.metadata.hooks.custom]``. The README's links are relative, so that they lead to the same version on a code
host and in a clone. In the package they are absolute and lead to the files of its tag. Without an address they stay as
they are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\[\]]*\]\([^()]*\))*\])\((?![a-z]+:)([^()\s#][^()\s]*)\)")


class PackageMetadata(MetadataHookInterface):
    """hatchling finds it by its base."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        text = (root / "README.md").read_text(encoding="utf-8")
        repository = str(self.config.get("repository", "")).rstrip("/")
        version = (root / "podbot" / "_version.py").read_text(encoding="utf-8").rpartition(" = ")[2].strip().strip('"')
        metadata["urls"] = addresses(repository, version) if repository else {}
        if repository:
            text = absolute(text, repository, f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def addresses(repository: str, version: str) -> dict[str, str]:
    """``[project.urls]``."""
    files = f"{repository}/blob/v{version}"
    return {
        "Repository": repository,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Security": f"{files}/SECURITY.md",
    }


def absolute(text: str, repository: str, tag: str) -> str:
    """Markdown with its relative links, and its images, at the tag in the repository."""

    def linked(match: re.Match[str]) -> str:
        image, label, target = match.groups()
        label = _LINK.sub(linked, label)  # an image may be a link's label
        return f"{image}{label}({repository}/{'raw' if image else 'blob'}/{tag}/{target})"

    return _LINK.sub(linked, text)
