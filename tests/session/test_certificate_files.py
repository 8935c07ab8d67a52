"""Reading the operator's additional certificate authorities, and this host's own list."""

from __future__ import annotations

import base64
import datetime as dt
import os
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podbot.config.models import AppConfig, Origin, SandboxConfig
from podbot.errors import InvalidValue
from podbot.launch.pem_certificates import pem_block
from podbot.launch.types import Certificates
from podbot.session.certificate_files import KEY, LARGEST, read_certificates
from tests.faults import ordinary_user

ORIGIN = Origin("file", "/home/ann/.config/podbot/config.toml")
SIGNER = ec.generate_private_key(ec.SECP256R1())


def authority(name: str) -> str:
    """A certificate authority, in PEM."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(SIGNER.public_key())
    builder = builder.serial_number(1).not_valid_before(begin).not_valid_after(begin + dt.timedelta(days=9999))
    return builder.sign(SIGNER, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


PUBLIC, COMPANY, OTHER = authority("public"), authority("company"), authority("other")
KEY_BYTES = SIGNER.private_bytes(
    serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


class Host:
    """A host with a list of authorities, and a file of the operator's."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.file, self.list = root / "company.pem", root / "list.crt"
        self.file.write_text(COMPANY)
        self.list.write_text(PUBLIC)

    def read(self, given: str | None = None) -> Certificates | None:
        named = str(self.file) if given is None else given
        sandbox = replace(SandboxConfig(), ca_certificates=named)
        config = AppConfig(sandbox=sandbox, origins={KEY: ORIGIN})
        return read_certificates(config, str(self.home), (str(self.home / "nowhere.crt"), str(self.list)))

    def refused(self, given: str | None = None) -> InvalidValue:
        with pytest.raises(InvalidValue) as caught:
            self.read(given)
        assert (caught.value.field, caught.value.origin) == (KEY, str(ORIGIN))
        assert caught.value.remedy
        return caught.value


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_operators_and_the_hosts_authorities_are_read(host: Host) -> None:
    host.file.write_text(f"my company\n{COMPANY}{OTHER}")
    assert host.read() == Certificates(str(host.file), (COMPANY, OTHER), str(host.list), (PUBLIC,))


def test_a_path_may_begin_with_the_home(host: Host) -> None:
    found = host.read("~/company.pem")
    assert found is not None
    assert found.path == str(host.file)


@pytest.mark.parametrize("given", ["", " "])
def test_without_the_key_nothing_is_read(host: Host, given: str) -> None:
    assert host.read(given) is None


def test_a_link_may_lead_to_the_file(host: Host) -> None:
    link = host.home / "link.pem"
    link.symlink_to(host.file)
    found = host.read(str(link))
    assert found is not None
    assert found.additional == (COMPANY,)


def test_a_private_key_is_refused_and_not_shown(host: Host) -> None:
    key = base64.b64encode(KEY_BYTES).decode()
    host.file.write_text(f"{COMPANY}-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n")
    found = host.refused()
    assert "handed to the agent" in found.reason
    assert key not in str(found)


def test_a_private_key_that_is_named_a_certificate_is_refused(host: Host) -> None:
    host.file.write_text(COMPANY + pem_block(KEY_BYTES))
    assert "block 2 is named a certificate and is something else" in host.refused().reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [("", "empty"), ("hello", "no certificate"), (COMPANY[:-9], "cut off"), (" " * (LARGEST + 1), "larger than 1 MiB")],
    ids=["empty", "text", "cut off", "large"],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_path(host: Host, content: str, reason: str) -> None:
    host.file.write_text(content)
    found = host.refused()
    assert found.reason.startswith(f"{host.file}: ")
    assert reason in found.reason


def test_what_is_not_a_file_is_refused_without_opening_it(host: Host) -> None:
    fifo = host.home / "fifo"
    os.mkfifo(fifo)
    assert "not a regular file" in host.refused(str(fifo)).reason
    assert "not a regular file" in host.refused("/dev/zero").reason
    assert "it is a directory" in host.refused(str(host.home)).reason
    assert "No such file" in host.refused("/nowhere/ca.pem").reason
    assert "it cannot be the path of a file" in host.refused("/nowhere\0/ca.pem").reason


def test_a_path_from_the_working_directory_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(host.home)
    assert "not an absolute path" in host.refused("company.pem").reason


def test_a_file_that_this_user_may_not_read_is_refused(host: Host) -> None:
    host.file.chmod(0)
    with ordinary_user():
        assert "Permission denied" in host.refused().reason


def test_a_host_without_a_list_is_refused_because_public_servers_could_not_be_verified(host: Host) -> None:
    host.list.unlink()
    found = host.refused()
    assert str(host.list) in found.reason
    assert "ca-certificates" in found.remedy


def test_a_damaged_list_of_the_host_is_named(host: Host) -> None:
    host.list.write_text(PUBLIC[:-9])
    assert host.refused().reason.startswith(f"{host.list}: ")
