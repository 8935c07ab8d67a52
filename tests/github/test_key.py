"""The App's key: one kind is accepted, each other is refused with its own message, and none is ever shown."""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa, x25519
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.errors import GitHubError, PrivateKeyLoadFailed, PrivateKeyMissing
from podbot.github.key import LARGEST, load_private_key, parse_private_key
from podbot.testing.github_shapes import pem_of, rsa_key
from tests.examples import examples
from tests.faults import ordinary_user

CLEAR = form.NoEncryption()
LOCKED = form.BestAvailableEncryption(b"pass")
PKCS1, PKCS8, SSH = (
    form.PrivateFormat.TraditionalOpenSSL,
    form.PrivateFormat.PKCS8,
    form.PrivateFormat.OpenSSH,
)


def pem(key: Any, kind: form.PrivateFormat = PKCS8, lock: form.KeySerializationEncryption = CLEAR) -> bytes:
    data: bytes = key.private_bytes(form.Encoding.PEM, kind, lock)
    return data


def public(key: Any, kind: form.PublicFormat = form.PublicFormat.SubjectPublicKeyInfo) -> bytes:
    data: bytes = key.public_key().public_bytes(form.Encoding.PEM, kind)
    return data


def certificate() -> bytes:
    from datetime import datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    built = built.public_key(rsa_key().public_key()).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return built.sign(rsa_key(), hashes.SHA256()).public_bytes(form.Encoding.PEM)


RSA = rsa_key()


def unsound(key: rsa.RSAPrivateKey) -> bytes:
    """A key of correct form whose numbers do not match: its signatures could not be verified."""
    n = key.private_numbers()
    made = rsa.RSAPrivateNumbers(n.p, n.q, n.d + 2, n.dmp1, n.dmq1, n.iqmp, n.public_numbers)
    return pem(made.private_key(unsafe_skip_rsa_key_validation=True), PKCS1)


DSA = dsa.generate_private_key(1024)
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
GOOD = pem_of(RSA).encode()


def block(label: str) -> bytes:
    return f"-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n".encode()


def put(tmp_path: Path, data: bytes, mode: int = 0o600) -> str:
    path = tmp_path / "app.pem"
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


def refusal(path: str) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        load_private_key(path)
    return caught.value


# --- what is taken ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PKCS1, PKCS8], ids=["pkcs1", "pkcs8"])
@pytest.mark.parametrize(
    "dress",
    [
        lambda data: data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: b"Bag Attributes\n  name: x\n" + data + b"\n\n",
        lambda data: certificate() + data + public(RSA),
        lambda data: data.rstrip(b"\n"),
    ],
    ids=["plain", "crlf", "bom", "words around it", "a certificate with it", "no line end"],
)
def test_an_rsa_key_is_accepted(tmp_path: Path, kind: form.PrivateFormat, dress: Callable[[bytes], bytes]) -> None:
    key = load_private_key(put(tmp_path, dress(pem(RSA, kind))))
    assert key.rsa.private_numbers() == RSA.private_numbers()
    assert key.warnings == ()
    assert "BEGIN CERTIFICATE" not in key.pem


def test_a_link_to_the_key_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.pem"
    link.symlink_to(put(tmp_path, GOOD))
    assert load_private_key(str(link)).path == str(link)


def test_the_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, GOOD)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_private_key("~/app.pem").path == str(tmp_path / "app.pem")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0o600, None),
        (0o400, None),
        (0o700, None),
        (0o640, "may read "),
        (0o604, "may read "),
        (0o622, "read or replace"),
    ],
)
def test_a_key_that_others_may_read_is_reported(tmp_path: Path, mode: int, words: str | None) -> None:
    path = put(tmp_path, GOOD, mode)
    warnings = load_private_key(path).warnings
    if words is None:
        assert warnings == ()
    else:
        (warning,) = warnings
        assert words in warning
        assert f"`chmod 600 {path}`" in warning
        assert f"mode {mode:04o}" in warning


def test_the_second_reading_does_not_check_the_numbers_again(tmp_path: Path) -> None:
    path = put(tmp_path, GOOD)
    sound: set[bytes] = set()
    load_private_key(path, sound)
    assert len(sound) == 1
    assert load_private_key(path, sound).rsa.private_numbers() == RSA.private_numbers()
    put(tmp_path, pem_of(rsa_key(1)).encode())
    assert load_private_key(path, sound).rsa.private_numbers() == rsa_key(1).private_numbers()
    assert len(sound) == 2


# --- what is refused -------------------------------------------------------------------------

KINDS: dict[str, tuple[bytes, str]] = {
    "ec, sec1": (pem(ELLIPTIC, PKCS1), "it contains an EC key"),
    "ec, pkcs8": (pem(ELLIPTIC), "it contains an EC key"),
    "ec with parameters": (block("EC PARAMETERS") + pem(ELLIPTIC, PKCS1), "it contains an EC key"),
    "ec parameters": (block("EC PARAMETERS"), "it contains parameters of an EC key, without the key"),
    "ed25519": (pem(ed25519.Ed25519PrivateKey.generate()), "it contains an Ed25519 key"),
    "ed448": (pem(ed448.Ed448PrivateKey.generate()), "it contains an Ed448 key"),
    "x25519": (pem(x25519.X25519PrivateKey.generate()), "it contains an X25519 key"),
    "dsa": (pem(DSA, PKCS1), "it contains a DSA key"),
    "dsa, pkcs8": (pem(DSA), "it contains a DSA key"),
    "openssh": (pem(RSA, SSH), "it contains an OpenSSH key"),
    "openssh public": (b"ssh-rsa AAAAB3NzaC1yc2E you@host\n", "it contains an SSH public key"),
    "putty": (b"PuTTY-User-Key-File-3: ssh-rsa\n", "it contains a PuTTY key"),
    "public": (public(RSA), "it contains a public key"),
    "public, pkcs1": (public(RSA, form.PublicFormat.PKCS1), "it contains a public key"),
    "certificate": (certificate(), "it contains a certificate"),
    "request": (block("CERTIFICATE REQUEST"), "it contains a certificate request"),
    "pgp": (block("PGP PRIVATE KEY BLOCK"), "it contains an OpenPGP key"),
    "another block": (block("X9 THING"), "it contains a PEM block 'X9 THING'"),
    "encrypted, pkcs8": (pem(RSA, PKCS8, LOCKED), "it is encrypted"),
    "encrypted, pkcs1": (pem(RSA, PKCS1, LOCKED), "it is encrypted"),
    "encrypted, ec": (pem(ELLIPTIC, PKCS1, LOCKED), "it contains an EC key"),
    "small": (pem(rsa.generate_private_key(65537, 1024), PKCS1), "it contains an RSA key of 1024 bits"),
    "two keys": (GOOD + GOOD, "it contains several private keys in one file"),
    "der": (RSA.private_bytes(form.Encoding.DER, PKCS8, CLEAR), "it is DER, not PEM"),
    "utf-16": (GOOD.decode().encode("utf-16"), "it is UTF-16 text"),
    "words": (b"my key is under the mat\n", "it is not PEM: there is no BEGIN line"),
    "cut off": (GOOD[: len(GOOD) // 2], "it is cut off: the END line is missing"),
    "a hole": (GOOD[:200] + GOOD[400:], "it is damaged: the PEM block contains no private key"),
    "unsound": (unsound(RSA), "it is damaged: the PEM block contains no private key"),
    "not base64": (block("RSA PRIVATE KEY"), "it is damaged: the PEM block contains no private key"),
    "not ascii": (GOOD[:100] + "ü".encode() + GOOD[100:], "it is damaged: the PEM block contains no private key"),
    "huge": (GOOD + b" " * LARGEST, f"it is larger than {LARGEST // 1024} KiB"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_wrong_kind_has_its_own_message(tmp_path: Path, kind: str) -> None:
    data, words = KINDS[kind]
    error = refusal(put(tmp_path, data))
    assert isinstance(error, PrivateKeyLoadFailed)
    assert error.reason == words
    assert error.remedy
    assert not error.transient


@pytest.mark.parametrize("data", [b"", b"\n", b" \n\t "])
def test_an_empty_file_may_be_one_that_is_being_replaced(tmp_path: Path, data: bytes) -> None:
    error = refusal(put(tmp_path, data))
    assert isinstance(error, PrivateKeyMissing)
    assert error.reason == "the file is empty"
    assert error.transient


def test_a_missing_file_a_missing_directory_and_a_dead_link(tmp_path: Path) -> None:
    assert "there is no such file" in str(refusal(str(tmp_path / "no.pem")))
    assert f"there is no directory {tmp_path}/no" in str(refusal(str(tmp_path / "no" / "app.pem")))
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert "it is a dangling link" in str(refusal(str(tmp_path / "link")))
    assert refusal(str(tmp_path / "no.pem")).transient


def test_a_path_that_is_not_a_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "it is a directory" in str(refusal(str(tmp_path)))
    assert "it is not a regular file" in str(refusal(str(tmp_path / "fifo")))  # opening it would wait for a writer
    assert "it is not a regular file" in str(refusal("/dev/zero"))
    assert "it is not a regular file" in str(refusal("/dev/tty"))


def test_a_file_that_becomes_a_fifo_between_the_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, GOOD)
    there = os.stat(path)
    os.unlink(path)
    os.mkfifo(path)
    real = os.stat

    def stat(at: Any, **options: Any) -> os.stat_result:
        return there if at == path else real(at, **options)

    monkeypatch.setattr(os, "stat", stat)  # nothing can come between two calls at a chosen moment
    done: list[GitHubError] = []
    thread = threading.Thread(target=lambda: done.append(refusal(path)), daemon=True)
    thread.start()
    thread.join(60)  # seconds; only a hang takes longer
    assert not thread.is_alive()
    assert "it is not a regular file" in str(done[0])


def test_unusual_paths(tmp_path: Path) -> None:
    assert "NUL" in str(refusal("/a\0b"))
    assert isinstance(refusal("/" + "x" * 5000), PrivateKeyLoadFailed)
    assert "directory" in str(refusal(put(tmp_path, GOOD) + "/x"))
    (tmp_path / "loop").symlink_to("loop")
    assert isinstance(refusal(str(tmp_path / "loop")), PrivateKeyLoadFailed)


def test_a_file_that_this_user_may_not_read(open_directory: str) -> None:
    path = put(Path(open_directory), GOOD, 0)
    with ordinary_user():
        error = refusal(path)
    assert "this user may not read it" in str(error)
    assert not error.transient


# --- secrets ---------------------------------------------------------------------------------


def middle(data: bytes) -> str:
    """A line of the key that nothing may show."""
    return data.decode("latin-1").splitlines()[5]


def test_the_key_is_not_in_its_repr(tmp_path: Path) -> None:
    key = load_private_key(put(tmp_path, GOOD))
    assert middle(GOOD) in key.pem
    assert middle(GOOD) not in f"{key!r} {key}"
    assert "rsa" not in repr(key).replace(key.path, "").lower()


@pytest.mark.parametrize("kind", [k for k, (data, _) in KINDS.items() if k != "der" and data.count(b"\n") > 8])
def test_no_error_and_no_chain_contains_the_keys_bytes(tmp_path: Path, kind: str) -> None:
    data, _ = KINDS[kind]
    error = refusal(put(tmp_path, data))
    assert error.__cause__ is None
    assert error.__context__ is None
    text = "".join(traceback.format_exception(error)) + repr(error.fields)
    assert middle(data) not in text


# --- anything at all -------------------------------------------------------------------------

label = st.sampled_from(["RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "CERTIFICATE"])
body = st.binary(max_size=300) | st.text("ABCabc019+/=\n", max_size=300).map(str.encode)
framed = st.builds(
    lambda begin, data, end: f"-----BEGIN {begin}-----\n".encode() + data + f"\n-----END {end}-----\n".encode(),
    label,
    body,
    label,
)
damaged = st.builds(
    lambda at, cut, junk: GOOD[:at] + junk + GOOD[at + cut :],
    st.integers(0, len(GOOD)),
    st.integers(0, 100),
    st.binary(max_size=20),
)


@settings(max_examples=examples(300))
@given(st.binary(max_size=400) | framed | damaged | st.lists(framed, max_size=3).map(b"".join))
def test_any_bytes_give_a_key_or_our_error(data: bytes) -> None:
    with contextlib.suppress(GitHubError):
        assert parse_private_key(data, "/k").rsa.key_size >= 2048
