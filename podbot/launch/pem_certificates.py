"""Reads the certificates of a PEM file, and nothing else of it. Pure.

What is found is written anew from its bytes: text around the blocks, and blocks of another kind, are not passed on.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

# Wherever it is in the file: also in a line that is not exactly a BEGIN line, and of every kind of key.
_PRIVATE_KEY = re.compile(rb"BEGIN[^\n]{0,80}PRIVATE KEY|PuTTY-User-Key-File", re.IGNORECASE)
_BEGIN = re.compile(rb"-----BEGIN ([A-Z0-9][A-Z0-9 ]{0,40})-----")
_END = re.compile(rb"-----END ([A-Z0-9][A-Z0-9 ]{0,40})-----")
_CERTIFICATE, _TRUSTED = b"CERTIFICATE", b"TRUSTED CERTIFICATE"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDTH = 64  # characters of a line
_AGAIN = "Write the file again; every certificate is whole, from its BEGIN line to its END line."


class NotCertificates(ValueError):
    """A file is not one of certificates only; ``hint`` says what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def certificates_in(data: bytes) -> tuple[str, ...]:
    """Each certificate in ``data``, in order and once, as a PEM block that ends in a line break.

    Raises NotCertificates if there is none, if there is a private key, or if a block is cut off or damaged.
    """
    if _PRIVATE_KEY.search(data):
        reason = "it contains a private key, which would be handed to the agent"
        raise NotCertificates(reason, "Name a file that has the certificates only.")
    found = []
    for kind, begin, content in _blocks(data.removeprefix(_BYTE_ORDER_MARK)):
        if kind == _TRUSTED:
            hint = "Convert it: `openssl x509 -in FILE -out CERTIFICATE.pem`."
            raise NotCertificates(f"line {begin} begins a certificate in OpenSSL's own form", hint)
        if kind == _CERTIFICATE:
            found.append(pem_block(_decoded(content, begin)))
    if not found:
        raise _none(data)
    return tuple(dict.fromkeys(found))


def _blocks(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """The kind of each block, the number of its first line, and its base64. Raises NotCertificates for half a block."""
    kind, begin, content = b"", 0, b""
    for number, line in enumerate(data.splitlines(), 1):
        text = line.strip()
        opened, closed = _BEGIN.fullmatch(text), _END.fullmatch(text)
        if opened and not kind:
            kind, begin, content = opened[1], number, b""
        elif closed and closed[1] == kind:
            yield kind, begin, content
            kind = b""
        elif opened or closed or (kind and b"-----" in text):  # the last: two files joined without a line break
            raise _cut_off(begin if kind else number)
        elif kind:
            content += text
    if kind:
        raise _cut_off(begin)


def pem_block(certificate: bytes) -> str:
    """The bytes of a certificate as PEM."""
    text = base64.b64encode(certificate).decode("ascii")
    lines = [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""))


def _decoded(text: bytes, begin: int) -> bytes:
    try:
        certificate = base64.b64decode(text, validate=True)
    except binascii.Error:
        certificate = b""
    if not _is_one_sequence(certificate):
        raise NotCertificates(f"the certificate that begins in line {begin} is damaged", _AGAIN)
    return certificate


def _is_one_sequence(data: bytes) -> bool:
    """Whether ``data`` is one DER sequence from its first byte to its last, as each certificate is."""
    if len(data) < 2 or data[0] != 0x30:
        return False
    if data[1] < 0x80:
        return len(data) == 2 + data[1]
    end = 2 + (data[1] & 0x7F)
    return 2 < end <= len(data) and len(data) == end + int.from_bytes(data[2:end], "big")


def _cut_off(line: int) -> NotCertificates:
    reason = f"a block is cut off: the BEGIN or the END line that belongs to line {line} is missing, or not alone"
    return NotCertificates(f"{reason} in its line", _AGAIN)


def _none(data: bytes) -> NotCertificates:
    if not data.strip():
        return NotCertificates("it is empty", "Name a PEM file with certificates.")
    if data[:2] == b"\x30\x82":
        hint = "Convert it: `openssl x509 -inform DER -in FILE -out CERTIFICATE.pem`."
        return NotCertificates("it is DER, not PEM", hint)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return NotCertificates("it is UTF-16 text", "Save it as plain ASCII.")
    return NotCertificates("it contains no certificate", "Name a PEM file with certificates.")
