"""A certificate authority and a server's certificate, made for a test."""

from __future__ import annotations

import datetime as dt
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

AUTHORITY, SERVER = "authority.pem", "server.pem"


# Since 3.13 Python accepts no authority that does not say what its key is for, and which key that is.
SIGNS = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip
own_key, issuers_key = x509.SubjectKeyIdentifier.from_public_key, x509.AuthorityKeyIdentifier.from_issuer_public_key


def certificates(place: str, *names: str) -> None:
    """An authority in ``authority.pem``; the certificate of a server of these names and its key in ``server.pem``."""
    now = dt.datetime.now(dt.UTC)

    def made(name: str, issuer: str, public: ec.EllipticCurvePublicKey, signer: ec.EllipticCurvePrivateKey) -> bytes:
        ca = name == issuer
        alternatives = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(alternatives, critical=False)
        )
        for extension in (SIGNS, own_key(public)) if ca else (issuers_key(signer.public_key()),):
            builder = builder.add_extension(extension, critical=extension is SIGNS)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    private = server.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with open(os.path.join(place, AUTHORITY), "wb") as file:
        file.write(made("authority", "authority", authority.public_key(), authority))
    with open(os.path.join(place, SERVER), "wb") as file:
        file.write(made(names[0], "authority", server.public_key(), authority) + private)
