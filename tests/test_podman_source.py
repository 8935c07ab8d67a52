"""e2e/integrations/podman_source.py: a machine's archives as archives of sources."""

from __future__ import annotations

from e2e.integrations.podman_source import as_sources, as_stanzas

LINES = """# deb http://archive.example/debian bookworm main
deb [ signed-by=/keys/debian.gpg trusted=true allow-insecure=yes ] http://archive.example/debian bookworm main contrib
deb	http://archive.example/debian-security bookworm-security main
deb [trusted=yes] http://archive.example/debian bookworm/updates main
deb-src http://archive.example/debian bookworm main
deb http://other.example cloud-sdk-bookworm main
deb http://other.example trixie main
"""
STANZAS = """# of this Debian
Types: deb deb-src
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Trusted: yes
Allow-Insecure: yes
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://other.example
Suites: nodistro
Components: main

Types: deb-src
URIs: http://archive.example/debian
Suites: bookworm
Components: main
"""


def test_of_lines_those_of_this_debian_whose_signature_is_verified() -> None:
    assert as_sources(LINES).splitlines() == [
        "deb-src [signed-by=/keys/debian.gpg] http://archive.example/debian bookworm main contrib",
        "deb-src	http://archive.example/debian-security bookworm-security main",
        "deb-src http://archive.example/debian bookworm/updates main",
    ]


def test_of_stanzas_those_of_this_debian_whose_signature_is_verified() -> None:
    assert as_stanzas(STANZAS).splitlines() == [
        "# of this Debian",
        "Types: deb-src",
        "URIs: http://archive.example/debian",
        "Suites: bookworm bookworm-updates",
        "Components: main",
        "Signed-By: /keys/debian.gpg",
        "",
        "Types: deb-src",
        "URIs: http://archive.example/debian",
        "Suites: bookworm",
        "Components: main",
    ]
