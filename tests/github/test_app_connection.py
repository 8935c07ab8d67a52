"""No answer of GitHub's, and TLS: whatever the connection does is an error of ours."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import GitHubUnreachable, InvalidValue
from podbot.github.app_client import AppClient
from podbot.testing.github_shapes import pem_of, rsa_key
from tests.engine.serving import Drip
from tests.github.still import StillGitHub, failure, mint, private_key
from tests.waiting import HANG


def test_a_server_that_does_not_listen(github: StillGitHub) -> None:
    github.down()
    error = failure(github)
    assert isinstance(error, GitHubUnreachable)
    assert (error.reason, error.transient, error.status) == ("nothing listens there (connection refused)", True, 0)
    github.up()
    assert mint(github).token


def test_an_answer_that_does_not_come() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # the system accepts the connection, and nobody answers
        app = AppClient(1, private_key(), f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.05)
        with pytest.raises(GitHubUnreachable, match=r"no whole answer within 0\.05 s"):
            app.check_app()


def test_an_answer_that_drips(github: StillGitHub) -> None:
    mint(github)
    github.drip(0.2)  # a minute for the whole answer
    assert "no whole answer within 0.1 s" in str(failure(github, timeout=0.1))


@pytest.mark.parametrize(
    ("address", "data"),
    [
        ("http://127.0.0.1:{port}", b"HTTP/1.1 200 OK\r\nX: "),  # headers without end
        ("https://127.0.0.1:{port}", b"\x16\x03\x03\x40\x00"),  # a TLS record without end
        ("https://api.example.test", b"HTTP/1.1 200 OK\r\nX: "),  # by a proxy, which answers CONNECT
    ],
)
def test_a_slow_answer_has_one_deadline(monkeypatch: pytest.MonkeyPatch, address: str, data: bytes) -> None:
    """Issue 10.6: requests' own timeout starts again with each byte."""
    drip = Drip(data)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        thread = drip.once(listener)
        app = AppClient(1, private_key(), address.format(port=port), timeout=0.5)
        with pytest.raises(GitHubUnreachable) as caught:
            app.check_app()
        # On a busy machine the deadline may have passed before the client connected: then this connection is the first.
        socket.create_connection(("127.0.0.1", port)).close()
        assert drip.left.wait(HANG)
        thread.join()
    assert caught.value.transient
    if "example" not in address:
        assert caught.value.reason == "no whole answer within 0.5 s"


@pytest.mark.parametrize("when", ["before", "middle"])
def test_a_dropped_connection(github: StillGitHub, when: str) -> None:
    github.drop(when)
    error = failure(github)
    assert isinstance(error, GitHubUnreachable)
    assert "dropped" in error.reason
    assert len(github.requests) == 1


def test_an_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: Any, **_options: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    # No test contacts a name server.
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("NO_PROXY", "*")
    with pytest.raises(GitHubUnreachable, match="is not known"):
        AppClient(1, private_key(), "https://git.invalid").check_app()


def test_a_proxy_from_the_environment_does_not_see_loopback(
    github: StillGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert mint(github).token


@pytest.mark.parametrize("address", ["http://github.example", "ftp://x", "https://", "https://u:p@x", "http://[::1"])
def test_no_token_is_requested_without_encryption(address: str) -> None:
    with pytest.raises(InvalidValue):
        AppClient(1, private_key(), address)


def test_an_address_with_ipv6(github: StillGitHub) -> None:
    port = github.url.rpartition(":")[2]
    with pytest.raises(GitHubUnreachable, match=r"connection refused|Cannot assign|not supported|unreachable"):
        AppClient(1, private_key(), f"http://[::1]:{port}").check_app()


# --- TLS -------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> tuple[ssl.SSLContext, str]:
    """A server's TLS context, and the file of the authority that signed for it."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    key = rsa_key()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "podbot test")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = built.add_extension(hosts, critical=False).sign(key, hashes.SHA256())
    (tmp_path / "ca.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    (tmp_path / "key.pem").write_text(pem_of(key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.pem", tmp_path / "key.pem")
    return context, str(tmp_path / "ca.pem")


@pytest.fixture
def secure(authority: tuple[ssl.SSLContext, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[StillGitHub]:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with StillGitHub(tls=authority[0]) as server:
        assert server.url.startswith("https://")
        yield server


def test_an_unknown_authority_is_not_trusted(secure: StillGitHub) -> None:
    error = failure(secure)
    assert isinstance(error, GitHubUnreachable)
    assert "its certificate is not trusted: self-signed certificate" in error.reason.replace(
        "self signed", "self-signed"
    )
    assert "SSL_CERT_FILE" in error.remedy
    assert secure.requests == []


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_private_certificate_authority(
    secure: StillGitHub, authority: tuple[ssl.SSLContext, str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, authority[1])
    assert mint(secure).token


def test_a_ca_file_that_is_missing(secure: StillGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    assert isinstance(failure(secure), GitHubUnreachable)


def test_plain_text_where_tls_is_expected(github: StillGitHub) -> None:
    error_type = GitHubUnreachable
    with pytest.raises(error_type, match=r"TLS failed|dropped"):
        AppClient(1, private_key(), github.url.replace("http:", "https:"), timeout=HANG).check_app()
