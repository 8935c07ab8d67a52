"""The sources of Debian packages of another release: this machine's own mirrors."""

from __future__ import annotations

import subprocess

_SECURITY = "Debian-Security"


def debian_sources(suite: str) -> list[str]:
    """One-line apt sources; empty where this machine has none of Debian's, and mmdebstrap uses its default mirror."""
    words = ["apt-get", "indextargets", "--format", "$(SITE) $(LABEL)", "Created-By: Packages", "Origin: Debian"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return lines(done.stdout, suite)


def lines(targets: str, suite: str) -> list[str]:
    """``targets``: lines of ``SITE LABEL``. Addresses with a password, or that are not http, are omitted."""
    sites: dict[str, str] = {}
    for line in targets.splitlines():
        site, _, label = line.partition(" ")
        if site.startswith(("http://", "https://")) and "@" not in site:
            sites.setdefault(label, site)
    main = next((site for label, site in sites.items() if label == "Debian"), "")
    if not main:
        return []
    found = [f"deb {main} {suite} main", f"deb {main} {suite}-updates main"]
    if security := sites.get(_SECURITY):
        found.append(f"deb {security} {suite}-security main")
    return found
