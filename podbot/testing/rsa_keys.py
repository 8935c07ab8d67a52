"""RSA keys for tests, made once a process."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey


@functools.cache
def rsa_key(number: int = 0, bits: int = 2048) -> RSAPrivateKey:
    """An RSA key, made once a process for each ``number``: making one takes 50-500 ms."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    del number  # it only tells the keys apart
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def pem_of(key: RSAPrivateKey) -> str:
    """The key as GitHub hands it out: PKCS#1 PEM."""
    from cryptography.hazmat.primitives import serialization as form

    kind = form.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(form.Encoding.PEM, kind, form.NoEncryption()).decode("ascii")
