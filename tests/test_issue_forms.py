"""The forms for issues, and what SECURITY.md says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = {path.name: path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.yml") if path.name != "config.yml"}


def value(form: str, key: str) -> str:
    """The value of a key at the top."""
    (found,) = re.findall(rf"(?m)^{key}: (.+)$", form)
    return str(found)


def types(form: str) -> list[str]:
    """The types of the parts, in their order."""
    return re.findall(r"(?m)^  - type: (\w+)$", form)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_form_has_what_github_needs(form: str) -> None:
    assert value(form, "name")
    assert value(form, "description")
    fields = [kind for kind in types(form) if kind != "markdown"]
    assert fields
    assert set(fields) <= {"textarea", "input", "checkboxes", "dropdown"}
    ids = re.findall(r"(?m)^    id: (\w+)$", form)
    assert len(set(ids)) == len(ids) == len(fields)


def test_the_form_that_the_security_policy_names_asks_for_nothing() -> None:
    """Issues without a form are off, so a reporter could otherwise only fill in the one for errors, in public."""
    assert "blank_issues_enabled: false" in (TEMPLATES / "config.yml").read_text(encoding="utf-8")
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (name,) = re.findall(r"an issue of the form \*\*(.+?)\*\*", policy)
    (form,) = [form for form in FORMS.values() if value(form, "name") == name]
    assert types(form) == ["markdown", "checkboxes"]
    assert value(form, "title") == '"A private contact, please"', (
        "without one GitHub opens the form with an empty title"
    )
