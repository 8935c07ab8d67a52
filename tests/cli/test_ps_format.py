"""The filters and templates of podbot ps, and its table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli import ps
from podbot.cli.ps_format import chosen, renderer
from podbot.errors import InvalidValue
from podbot.management.manage import SessionInfo

SHOP = SessionInfo(
    "podbot-shop-1a2b3c", "6a18", "claude", "podbot", "host_mount", "/home/ada/src/shop", "localhost/podbot", "running",
    1_800_000_000.0, orphan=False,
)  # fmt: skip
NOTES = replace(SHOP, session="notes", agent="opencode", path="/home/ada/notes", state="exited", orphan=True)
BOTH = [SHOP, NOTES]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ([], ["podbot-shop-1a2b3c", "notes"]),
        (["name=shop"], ["podbot-shop-1a2b3c"]),
        (["agent=opencode"], ["notes"]),
        (["agent=opencode", "agent=claude"], ["podbot-shop-1a2b3c", "notes"]),
        (["agent=opencode", "state=running"], []),
        (["status=Exited"], ["notes"]),
        (["orphan=true"], ["notes"]),
        (["path=/home/ada/src"], ["podbot-shop-1a2b3c"]),
        (["agent=code"], []),
    ],
    ids=" ".join,
)
def test_filters(filters: list[str], names: list[str]) -> None:
    assert [info.session for info in chosen(BOTH, filters)] == names


@pytest.mark.parametrize("text", ["", "name", "=x", "label=x"])
def test_an_unknown_filter_names_the_known_ones(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        chosen([], [text])
    assert "name, agent, mode, state, path, image, orphan, detached" in str(caught.value)


@pytest.mark.parametrize(
    ("template", "lines"),
    [
        ("{{.Names}}", ["podbot-shop-1a2b3c", "notes"]),
        (r"{{ .session }}\t{{.Status}}", ["podbot-shop-1a2b3c\trunning", "notes\texited"]),
        ("{{.orphan}} {{.created}}", ["false 2027-01-15T08:00:00Z", "true 2027-01-15T08:00:00Z"]),
        ("plain", ["plain", "plain"]),
        (
            r"table {{.Name}}\t{{.Agent}}",
            ["SESSION             AGENT", "podbot-shop-1a2b3c  claude", "notes               opencode"],
        ),
    ],
)
def test_templates(template: str, lines: list[str]) -> None:
    assert renderer(template)(BOTH).splitlines() == lines


@pytest.mark.parametrize("template", ["{{json .}}", "{{.Name}} {{upper .State}}", "{{ range . }}"])
def test_a_function_of_gos_templates_is_refused(template: str) -> None:
    with pytest.raises(InvalidValue, match="All fields as JSON: --format json") as caught:
        renderer(template)
    assert "only fields can stand in braces: {{.session}}, {{.id}} and so on" in str(caught.value)


def test_an_unknown_field_is_refused_before_anything_is_listed() -> None:
    with pytest.raises(InvalidValue) as caught:
        renderer("{{.Stat}}")
    assert "there is no field Stat" in str(caught.value)
    assert "Did you mean {{.state}}?" in str(caught.value)


def test_a_field_cannot_send_control_characters() -> None:
    assert renderer("{{.Path}}")([replace(SHOP, path="/a\x1b[2J\n")]) == "/a\\x1b[2J\\n\n"


@given(st.text(max_size=40))
def test_any_template_is_printed_or_refused(template: str) -> None:
    try:
        render = renderer(template)
    except InvalidValue:
        return
    assert render(BOTH)


def test_the_table_holds_at_60_columns() -> None:
    detached = replace(SHOP, detached=True, agent="opencode", mode="acp")
    for width in (60, 61, 79, 80, 100, 200):
        text = ps.table([SHOP, NOTES, detached], SHOP.created + 7300, width)
        assert max(map(len, text.splitlines())) <= width
        assert all(info.session in text for info in BOTH)
    assert "/home/ada/src/shop" in ps.table(BOTH, SHOP.created, 100)


@pytest.mark.parametrize(("seconds", "text"), [(-1, "0s"), (59, "59s"), (60, "1m"), (7300, "2h"), (9 * 86400, "9d")])
def test_short_ages(seconds: float, text: str) -> None:
    assert ps.short_age(seconds) == text
