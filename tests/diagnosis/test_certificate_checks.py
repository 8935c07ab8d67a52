"""doctor's check of sandbox.ca_certificates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from podbot.config.models import AppConfig, SandboxConfig
from podbot.diagnosis.certificate_checks import check_certificates
from tests.session.test_certificate_files import COMPANY, OTHER, PUBLIC


def configured(path: object) -> AppConfig:
    return AppConfig(sandbox=replace(SandboxConfig(), ca_certificates=str(path)))


def test_without_the_key_there_is_no_check() -> None:
    assert list(check_certificates(AppConfig(), "/home/ann")) == []


def test_the_file_and_the_hosts_list_are_counted(tmp_path: Path) -> None:
    (tmp_path / "company.pem").write_text(COMPANY + OTHER)
    (tmp_path / "list.crt").write_text(PUBLIC)
    (found,) = check_certificates(configured("~/company.pem"), str(tmp_path), (str(tmp_path / "list.crt"),))
    assert found.status == "ok"
    assert found.found == f"2 of {tmp_path}/company.pem, in addition to 1 of {tmp_path}/list.crt"


def test_a_file_that_no_session_could_pass_on_fails_with_the_remedy(tmp_path: Path) -> None:
    (found,) = check_certificates(configured(tmp_path / "gone.pem"), str(tmp_path))
    assert found.status == "fail"
    assert "sandbox.ca_certificates" in found.found
    assert "No such file" in found.found
    assert "PEM" in found.fix
