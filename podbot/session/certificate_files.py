"""Reads the certificate authorities that a sandbox gets: the operator's file, and this host's own list."""

from __future__ import annotations

import os
import ssl
import stat
from collections.abc import Sequence

from podbot.config.models import AppConfig
from podbot.errors import InvalidValue
from podbot.images.recipe import CA_BUNDLES
from podbot.launch.pem_certificates import NotCertificates, certificates_in
from podbot.launch.types import Certificates
from podbot.session.host_paths import expanded

KEY = "sandbox.ca_certificates"
LARGEST = 1 << 20  # bytes of a file; Debian's list has 0.2 MB. Both are in the session's record, which has a limit.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NAME_IT = "Name a PEM file with certificates, such as /etc/ssl/company.pem."


def read_certificates(config: AppConfig, home: str, bundles: Sequence[str] = CA_BUNDLES) -> Certificates | None:
    """The authorities for a sandbox, or None if ``sandbox.ca_certificates`` is not set.

    ``bundles``: where this host's own list may be. Raises InvalidValue with the reason if the file is not a regular
    one of at most 1 MiB, with nothing but certificates among what it would pass on, or if this host has no list.
    """
    given = (config.sandbox.ca_certificates or "").strip()
    if not given:
        return None
    path, origin = expanded(given, home), str(config.origin(KEY))
    if not os.path.isabs(path):
        reason, hint = f"{given!r} is not an absolute path", "Write a path that begins with / or ~/."
        raise InvalidValue(field=KEY, origin=origin, reason=reason, hint=hint)
    try:
        additional = _read(path)
        _check_each(path, additional)
        system_path = _system_path(bundles)
        system = _read(system_path)
    except NotCertificates as exc:
        raise InvalidValue(field=KEY, origin=origin, reason=exc.reason, hint=exc.hint) from None
    return Certificates(path, additional, system_path, system)


def _system_path(bundles: Sequence[str]) -> str:
    found = next((path for path in bundles if os.path.isfile(path)), None)
    if found is None:
        # With the additional ones alone, no program inside could verify a public server any more.
        reason = f"this host has no list of certificate authorities to add to; none of {', '.join(bundles)} is a file"
        raise NotCertificates(reason, "Install the package ca-certificates.")
    return found


def _read(path: str) -> tuple[str, ...]:
    """The certificates in the file. Raises NotCertificates, with the path in its reason."""
    try:
        return certificates_in(_content(path))
    except NotCertificates as exc:
        raise NotCertificates(f"{path}: {exc.reason}", exc.hint) from None
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else "it cannot be the path of a file"
        raise NotCertificates(f"{path}: {reason}", _NAME_IT) from None


def _content(path: str) -> bytes:
    """The file's bytes. Never blocks: a FIFO or a device is refused without opening it."""
    _check_regular(os.stat(path).st_mode)
    # O_NONBLOCK, because the file may have been replaced by a FIFO since.
    with open(os.open(path, _FLAGS), "rb") as file:
        _check_regular(os.fstat(file.fileno()).st_mode)
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise NotCertificates(f"it is larger than {LARGEST >> 20} MiB", "Leave only the certificates in it.")
    return data


def _check_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise NotCertificates("it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file", _NAME_IT)


def _check_each(path: str, certificates: Sequence[str]) -> None:
    """OpenSSL reads each: a program inside would refuse a whole file for one block that is something else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for number, text in enumerate(certificates, 1):
        try:
            context.load_verify_locations(cadata=text)
        except ssl.SSLError:
            reason = f"{path}: block {number} is named a certificate and is something else"
            raise NotCertificates(reason, "Leave only the certificates in it.") from None
