"""The App's private key: an RSA key in PEM, read for each use, never shown.

GitHub accepts only RS256 from Apps, so every other kind of key is refused here with a specific message instead of an
unexplained 401 later.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podbot.errors import GitHubError, PrivateKeyLoadFailed, PrivateKeyMissing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

LARGEST = 64 * 1024  # a 16,384-bit key has 13 KB of PEM
SMALLEST_BITS = 2048
LARGEST_BITS = 16384
_GET_ONE = "Download a new key: the App's settings, Private keys, Generate a private key."
_BEGIN = re.compile(rb"-----BEGIN ([A-Z0-9][A-Z0-9 ]{0,40})-----")
SOUND: set[bytes] = set()  # digests of keys whose numbers were found sound by this process
_USABLE = (b"RSA PRIVATE KEY", b"PRIVATE KEY")

# Names of other kinds of PEM blocks, by label.
_OTHER = {
    b"ENCRYPTED PRIVATE KEY": "encrypted",
    b"EC PRIVATE KEY": "an EC key",
    b"DSA PRIVATE KEY": "a DSA key",
    b"OPENSSH PRIVATE KEY": "an OpenSSH key",
    b"SSH2 ENCRYPTED PRIVATE KEY": "an SSH key",
    b"PUBLIC KEY": "a public key",
    b"RSA PUBLIC KEY": "a public key",
    b"SSH2 PUBLIC KEY": "a public key",
    b"CERTIFICATE": "a certificate",
    b"X509 CERTIFICATE": "a certificate",
    b"TRUSTED CERTIFICATE": "a certificate",
    b"CERTIFICATE REQUEST": "a certificate request",
    b"NEW CERTIFICATE REQUEST": "a certificate request",
    b"PGP PRIVATE KEY BLOCK": "an OpenPGP key",
    b"PGP PUBLIC KEY BLOCK": "an OpenPGP key",
    b"EC PARAMETERS": "parameters of an EC key, without the key",
    b"DH PARAMETERS": "Diffie-Hellman parameters",
}


@dataclass(frozen=True, eq=False)
class PrivateKey:
    """A usable key. ``pem`` and ``rsa`` are secret and omitted from the repr; ``warnings`` are sentences to show."""

    path: str
    pem: str = field(repr=False)
    rsa: RSAPrivateKey = field(repr=False)
    warnings: tuple[str, ...] = ()


def load_private_key(path: str, sound: set[bytes] = SOUND) -> PrivateKey:
    """Read the RSA private key (PKCS#1 or PKCS#8 PEM) at ``path``; ``~/`` is the home directory.

    ``sound``: digests of keys that need no further check; this one's is added.

    :raises PrivateKeyMissing: no such file or directory, or an empty file.
    :raises PrivateKeyLoadFailed: unreadable, not a file, or not an RSA key of at least 2048 bits.
    """
    place = os.path.expanduser(path)
    data, mode = _read(place)
    return parse_private_key(data, place, _warnings(place, mode), sound)


def parse_private_key(data: bytes, path: str, warnings: tuple[str, ...] = (), sound: set[bytes] = SOUND) -> PrivateKey:
    """The key in ``data``; ``path`` is for messages. Raises as :func:`load_private_key` does, and nothing else."""
    block = _block(data, path)
    rsa = _parsed(block, path, sound)
    if not SMALLEST_BITS <= rsa.key_size <= LARGEST_BITS:
        raise _wrong(path, f"an RSA key of {rsa.key_size} bits", f"GitHub's keys have {SMALLEST_BITS} bits. {_GET_ONE}")
    return PrivateKey(path, block.decode("ascii"), rsa, warnings)


# --- the file --------------------------------------------------------------------------------


def _read(path: str) -> tuple[bytes, int]:
    """The file's bytes and mode. Never blocks: a FIFO or a device is refused without opening it."""
    try:
        failure: GitHubError | None = _not_a_file(path, os.stat(path).st_mode)
        if failure is None:
            # O_NONBLOCK, because the file may have been replaced by a FIFO since the stat.
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            with open(fd, "rb", buffering=0) as file:
                mode = os.fstat(fd).st_mode
                failure = _not_a_file(path, mode)
                if failure is None:
                    data = _bounded(file.fileno())
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        failure = _unreadable(path, exc)
    if failure is not None:
        raise failure
    if len(data) > LARGEST:
        raise PrivateKeyLoadFailed(path=path, reason=f"it is larger than {LARGEST // 1024} KiB", hint=_GET_ONE)
    return data, mode


def _bounded(fd: int) -> bytes:
    parts = []
    left = LARGEST + 1
    while left > 0 and (part := os.read(fd, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _not_a_file(path: str, mode: int) -> GitHubError | None:
    if stat.S_ISREG(mode):
        return None
    kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
    return PrivateKeyLoadFailed(
        path=path, reason=f"it is {kind}", hint="Name the .pem file itself in github.private_key_path."
    )


def _unreadable(path: str, exc: OSError | ValueError) -> GitHubError:
    if isinstance(exc, FileNotFoundError):
        parent = os.path.dirname(path) or "."
        reason = "there is no such file" if os.path.isdir(parent) else f"there is no directory {parent}"
        if os.path.islink(path):
            reason = "it is a dangling link"
        return PrivateKeyMissing(path=path, reason=reason, hint="Set github.private_key_path to the App's .pem file.")
    if isinstance(exc, PermissionError):
        hint = "Set github.private_key_path to a copy that belongs to this user, and that nobody else may read."
        return PrivateKeyLoadFailed(path=path, reason="this user may not read it", hint=hint)
    reason = (exc.strerror or type(exc).__name__) if isinstance(exc, OSError) else "the path contains a NUL character"
    return PrivateKeyLoadFailed(path=path, reason=reason, hint="Set github.private_key_path to the App's .pem file.")


def _warnings(path: str, mode: int) -> tuple[str, ...]:
    """Warnings about the file's mode."""
    bits = stat.S_IMODE(mode)
    if not bits & 0o077:
        return ()
    done = "read or replace" if bits & 0o022 else "read" if bits & 0o044 else "run"
    return (
        f"others on this machine may {done} the private key {path} (mode {bits:04o}): `chmod 600 {shlex.quote(path)}`",
    )


# --- its content -----------------------------------------------------------------------------


def _block(data: bytes, path: str) -> bytes:
    """The one PEM block with the private key."""
    if not data.strip():
        raise PrivateKeyMissing(path=path, reason="the file is empty", hint=_GET_ONE)
    labels = _BEGIN.findall(data)
    usable = [label for label in labels if label in _USABLE]
    if len(usable) > 1:
        raise _wrong(path, "several private keys in one file", "Leave only the App's key in it.")
    if not usable:
        raise _no_key(data, labels, path)
    label = usable[0]
    start = data.index(b"-----BEGIN " + label + b"-----")
    end = b"-----END " + label + b"-----"
    stop = data.find(end, start)
    if stop < 0:
        raise PrivateKeyLoadFailed(path=path, reason="it is cut off: the END line is missing", hint=_GET_ONE)
    block = data[start : stop + len(end)] + b"\n"
    if b"Proc-Type:" in block and b"ENCRYPTED" in block:
        raise _encrypted(path)
    if not block.isascii():
        raise _garbled(path)
    return block


def _no_key(data: bytes, labels: list[bytes], path: str) -> GitHubError:
    """The error for a file without a usable block."""
    private = [label for label in labels if label.endswith(b"PRIVATE KEY")]
    for label in (*private, *labels):
        kind = _OTHER.get(label, f"a PEM block {label.decode('ascii')!r}")
        if kind == "encrypted":
            return _encrypted(path)
        hint = "Convert it: `ssh-keygen -p -m PEM -f COPY`, if it is RSA. " if kind == "an OpenSSH key" else ""
        return _wrong(path, kind, f"{hint}GitHub Apps use RSA keys only. {_GET_ONE}")
    return _not_pem(data, path)


def _not_pem(data: bytes, path: str) -> GitHubError:
    if data[:2] == b"\x30\x82":
        hint = "Convert it: `openssl rsa -inform DER -in FILE -out KEY.pem`."
        return PrivateKeyLoadFailed(path=path, reason="it is DER, not PEM", hint=hint)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return PrivateKeyLoadFailed(path=path, reason="it is UTF-16 text", hint="Save it as plain ASCII.")
    if data.startswith(b"PuTTY-User-Key-File"):
        return _wrong(path, "a PuTTY key", f"GitHub Apps use RSA keys in PEM. {_GET_ONE}")
    if data.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        return _wrong(path, "an SSH public key", f"The App's private key is needed. {_GET_ONE}")
    return PrivateKeyLoadFailed(path=path, reason="it is not PEM: there is no BEGIN line", hint=_GET_ONE)


def _parsed(block: bytes, path: str, sound: set[bytes]) -> RSAPrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    digest = hashlib.sha256(block).digest()
    try:
        # The check of an RSA key's numbers takes 50 ms, and a daemon reads the same key a hundred times an hour.
        key = load_pem_private_key(block, password=None, unsafe_skip_rsa_key_validation=digest in sound)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None  # raised below, so that the library's error, which may contain data, is not chained
    if key is None:
        raise _garbled(path)
    if not isinstance(key, RSAPrivateKey):
        raise _wrong(path, _kind(key), f"GitHub Apps use RSA keys only. {_GET_ONE}")
    if len(sound) >= 64:
        sound.clear()
    sound.add(digest)
    return key


def _kind(key: object) -> str:
    """A name such as ``an EC key`` for a key object that is not RSA."""
    name = type(key).__name__.removesuffix("PrivateKey").removeprefix("_")
    names = {"EllipticCurve": "an EC key", "ECPrivateKey": "an EC key", "DSA": "a DSA key", "DH": "a DH key"}
    return names.get(name, f"an {name} key")


def _garbled(path: str) -> GitHubError:
    return PrivateKeyLoadFailed(path=path, reason="it is damaged: the PEM block contains no private key", hint=_GET_ONE)


def _encrypted(path: str) -> GitHubError:
    hint = (
        "podbot cannot ask for a passphrase while it renews tokens; make a copy without one:"
        " `openssl rsa -in FILE -out KEY.pem`."
    )
    return PrivateKeyLoadFailed(path=path, reason="it is encrypted", hint=hint)


def _wrong(path: str, kind: str, hint: str) -> GitHubError:
    return PrivateKeyLoadFailed(path=path, reason=f"it contains {kind}", hint=hint)
