"""Of a PEM file only whole certificates are passed on, and of a file with a private key nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.launch.pem_certificates import NotCertificates, certificates_in, pem_block


def sequence(content: bytes) -> bytes:
    """A DER sequence, as a certificate is on the outside."""
    if len(content) < 0x80:
        return bytes([0x30, len(content)]) + content
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([0x30, 0x80 | len(size)]) + size + content


def block(kind: str, content: bytes = b"0\0") -> str:
    return pem_block(content).replace("CERTIFICATE", kind)


SEQUENCES = st.binary(max_size=400).map(sequence)
BLOCKS = SEQUENCES.map(pem_block)
# Lines around blocks, as `openssl x509 -text` and browsers write them.
TEXT = st.text(st.characters(codec="utf-8"), max_size=30).map(
    lambda text: "".join(f"# {line}\n" for line in text.splitlines())
)
KINDS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY")
KEYS = st.builds(block, st.sampled_from(KINDS), SEQUENCES)


def refused(data: bytes | str) -> NotCertificates:
    with pytest.raises(NotCertificates) as caught:
        certificates_in(data if isinstance(data, bytes) else data.encode())
    assert caught.value.hint
    return caught.value


@given(st.lists(BLOCKS, min_size=1, max_size=4, unique=True))
def test_certificates_come_back_as_they_were_written(blocks: list[str]) -> None:
    assert certificates_in("".join(blocks).encode()) == tuple(blocks)


@given(st.lists(st.tuples(TEXT, BLOCKS), min_size=1, max_size=3), TEXT, st.sampled_from(["\n", "\r\n"]))
def test_text_around_them_is_dropped(parts: list[tuple[str, str]], after: str, end: str) -> None:
    text = "".join(before + found for before, found in parts) + after
    assert certificates_in(text.replace("\n", end).encode()) == tuple(dict.fromkeys(found for _, found in parts))


@given(BLOCKS, SEQUENCES)
def test_blocks_of_another_kind_are_dropped(certificate: str, content: bytes) -> None:
    other = block("X509 CRL", content) + block("DH PARAMETERS", content)
    assert certificates_in((other + certificate + other).encode()) == (certificate,)


@given(st.lists(BLOCKS, max_size=2), KEYS, st.lists(BLOCKS, max_size=2))
def test_a_private_key_anywhere_refuses_the_whole_file(before: list[str], key: str, after: list[str]) -> None:
    found = refused("".join([*before, key, *after]))
    assert "private key" in found.reason
    assert key.splitlines()[1] not in f"{found.reason} {found.hint}"


@pytest.mark.parametrize(
    "line",
    ["   -----BEGIN RSA PRIVATE KEY-----", "x -----BEGIN PRIVATE KEY-----", "-----BEGIN PGP PRIVATE KEY BLOCK-----",
     "-----begin private key-----", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----", "PuTTY-User-Key-File-3: ssh-ed25519"],
)  # fmt: skip
def test_a_private_key_is_found_in_each_form(line: str) -> None:
    assert "private key" in refused(f"{pem_block(sequence(b''))}{line}\n").reason


@given(st.lists(BLOCKS, min_size=1, max_size=3), st.data())
def test_a_file_that_is_cut_off_within_a_block_is_refused(blocks: list[str], data: st.DataObject) -> None:
    text = "".join(blocks)
    whole = len("".join(blocks[:-1]))
    # From after the whole BEGIN line to before the whole END line of the last block.
    first, last = whole + len("-----BEGIN CERTIFICATE-----"), len(text) - 2
    assert "cut off" in refused(text[: data.draw(st.integers(first, last))]).reason


@given(BLOCKS)
def test_a_file_whose_beginning_is_missing_is_refused(found: str) -> None:
    assert "cut off" in refused(found.partition("\n")[2]).reason


def test_a_block_that_begins_within_another_is_refused() -> None:
    whole = pem_block(sequence(b"x"))
    assert "line 1" in refused("-----BEGIN CERTIFICATE-----\n" + whole).reason
    # Two files that were joined without a line break between them.
    assert "cut off" in refused(whole.rstrip() + whole).reason


@pytest.mark.parametrize(
    "content",
    [b"", b"0", b"\x31\x00", b"0\x02x", b"0\x00x", b"0\x80", b"0\x82\x01", b"0\x81\x02x", b"0\xff" + b"x" * 9],
)
def test_a_block_that_is_no_whole_certificate_is_refused(content: bytes) -> None:
    assert "line 1 is damaged" in refused(pem_block(content)).reason


def test_a_block_that_is_not_base64_is_refused() -> None:
    assert "damaged" in refused("-----BEGIN CERTIFICATE-----\nno*\n-----END CERTIFICATE-----\n").reason


@given(st.binary(max_size=200))
def test_any_other_bytes_give_certificates_or_a_reason(data: bytes) -> None:
    assert refused(data).reason


@given(st.lists(st.sampled_from([*pem_block(b"0\0").splitlines(), "-----END DH PARAMETERS-----", "text"]), max_size=9))
def test_only_whole_certificates_pass_whatever_the_order_of_lines(lines: list[str]) -> None:
    try:
        found = certificates_in("\n".join(lines).encode())
    except NotCertificates:
        return
    assert found == (pem_block(b"0\0"),)


@pytest.mark.parametrize(
    ("data", "reason", "hint"),
    [
        (b" \n", "empty", "PEM file"),
        (b"\x30\x82\x01\x02abc", "DER", "-inform DER"),
        ("-----BEGIN".encode("utf-16"), "UTF-16", "ASCII"),
        (b"hello\n", "no certificate", "PEM file"),
        (block("TRUSTED CERTIFICATE").encode(), "line 1 begins a certificate in OpenSSL's own form", "openssl x509"),
    ],
)
def test_a_file_of_another_form_says_what_it_is(data: bytes, reason: str, hint: str) -> None:
    found = refused(data)
    assert reason in found.reason
    assert hint in found.hint


def test_a_byte_order_mark_does_not_hide_the_first_certificate() -> None:
    found = pem_block(sequence(b"x"))
    assert certificates_in(b"\xef\xbb\xbf" + found.encode()) == (found,)
