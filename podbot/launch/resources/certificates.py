"""The operator's additional certificate authorities, for every program in the sandbox and in containers in it. Pure.

Most variables below replace a program's own list, so the file that they name has the host's authorities too (ADR 0047).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from podbot.launch.resources.part import Context, Part
from podbot.launch.types import Certificates, OwnFile, ResourcePlan

ALL = "/run/podbot/ca-bundle.pem"
ADDITIONAL = "/run/podbot/ca-additional.pem"
# For Podman inside. Drop-in files are read after the image's own containers.conf; lines of mounts.conf add to its
# volumes, also in builds and over the API, and each container gets a copy of the file (measured with Podman 4.3.1).
INNER_SETTINGS = "/etc/containers/containers.conf.d/podbot-certificates.conf"
INNER_MOUNTS = "/etc/containers/mounts.conf"

VARIABLES = {
    "SSL_CERT_FILE": ALL,  # OpenSSL, which Python, Ruby, PHP and curl use; Go; uv; Codex
    "NODE_EXTRA_CA_CERTS": ADDITIONAL,  # adds to Node's own list
    "REQUESTS_CA_BUNDLE": ALL,  # Python's requests
    "PIP_CERT": ALL,
    "GIT_SSL_CAINFO": ALL,
    "CURL_CA_BUNDLE": ALL,
    "CARGO_HTTP_CAINFO": ALL,
    "AWS_CA_BUNDLE": ALL,  # AWS's command line and SDKs
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": ALL,
    "DENO_CERT": ADDITIONAL,  # adds to Deno's own list
}


class CertificatesPlan(ResourcePlan):
    """``path``: the file of sandbox.ca_certificates, with ``additional`` certificates; ``system``: the host's list."""

    path: str
    additional: int
    system: str

    def described(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"path": self.path, "additional": self.additional, "system": self.system}


def plan(context: Context) -> Part | None:
    """The files and the variables; None if the operator has no additional authorities."""
    found = context.facts.certificates
    if found is None:
        return None
    return Part(
        CertificatesPlan(found.path, len(found.additional), found.system_path),
        files=(
            OwnFile(ALL, _together(found)),
            OwnFile(ADDITIONAL, "".join(found.additional)),
            OwnFile(INNER_SETTINGS, _settings(f"{name}={path}" for name, path in VARIABLES.items())),
            OwnFile(INNER_MOUNTS, "".join(f"{path}:{path}\n" for path in (ALL, ADDITIONAL))),
        ),
        env=VARIABLES,
    )


def _together(found: Certificates) -> str:
    return "".join(dict.fromkeys((*found.system, *found.additional)))


def _settings(env: Iterable[str]) -> str:
    """A containers.conf; a list of strings is written in TOML as in JSON."""
    return f"[containers]\nenv = {json.dumps(list(env), indent=2)}\n"
