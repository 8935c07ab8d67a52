from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import InvalidValue
from podbot.launch.names import LONGEST, begins, is_name, names_meant
from podbot.launch.names import session_name as made_name

SHOP, OTHER_SHOP = "podbot-shop-1a2b3c", "podbot-shop-9d8e7f"
SHOP_API, NOTES = "podbot-shop-api-4c5d6e", "podbot-notes-0a1b2c"
DIRECTORIES = st.text("ab-", min_size=1, max_size=4)
NONCES = st.text("ab", min_size=6, max_size=6)
ENGINE_RULE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}")


def session_name(chosen: str | None, workspace: str, nonce: str) -> str:
    return made_name(chosen, workspace, nonce, "the caller")


@given(st.text(), st.text(alphabet="0123456789abcdef", min_size=6, max_size=6))
def test_a_made_name_is_always_valid(path: str, nonce: str) -> None:
    name = session_name(None, path, nonce)
    assert ENGINE_RULE.fullmatch(name)
    assert name.startswith("podbot-")
    assert name.endswith(f"-{nonce}")
    assert name == name.lower()


@given(st.text(max_size=80))
def test_is_name_follows_the_engines_rule(text: str) -> None:
    assert is_name(text) == (ENGINE_RULE.fullmatch(text) is not None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/ann/My Project", "my-project"),
        ("/home/ann/proj/", "proj"),
        ("/srv/..--..", "workspace"),
        ("/srv/日本", "workspace"),
        ("/srv/" + "a" * 200, "a" * 40),
        ("/srv/\u212a2", "k2"),  # KELVIN SIGN, whose lower case is ASCII
    ],
)
def test_slugs(path: str, expected: str) -> None:
    assert session_name(None, path, "0a1b2c") == f"podbot-{expected}-0a1b2c"


@pytest.mark.parametrize("chosen", ["a", "A.b_c-9", "x" * LONGEST])
def test_a_chosen_name_is_kept(chosen: str) -> None:
    assert session_name(chosen, "/srv/p", "0a1b2c") == chosen


@pytest.mark.parametrize("chosen", ["", "-a", ".a", "..", "a/b", "a b", "ä", "a\n", "x" * (LONGEST + 1)])
def test_a_chosen_name_that_the_engine_would_refuse(chosen: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        session_name(chosen, "/srv/p", "0a1b2c")
    assert caught.value.origin == "the caller"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "names", "meant"),
    [
        (SHOP, [SHOP, SHOP_API], [SHOP]),
        ("podbot-sh", [SHOP, NOTES], [SHOP]),
        ("shop", [SHOP, NOTES], [SHOP]),
        ("sh", [SHOP, NOTES], [SHOP]),
        ("shop-1", [SHOP, OTHER_SHOP], [SHOP]),
        ("hop", [SHOP], []),
        ("", [SHOP], []),
        ("shop", [SHOP, OTHER_SHOP], [SHOP, OTHER_SHOP]),  # two sessions on one directory
    ],
)
def test_what_follows_podbots_own_beginning_of_a_name_is_enough(typed: str, names: list[str], meant: list[str]) -> None:
    assert names_meant(typed, names) == meant


def test_a_directorys_whole_name_counts_before_longer_ones() -> None:
    assert names_meant("shop", [SHOP, SHOP_API]) == [SHOP]
    assert names_meant("sho", [SHOP, SHOP_API]) == [SHOP, SHOP_API]
    assert names_meant("shop-", [SHOP, SHOP_API]) == [SHOP, SHOP_API]


def test_a_name_that_the_operator_chose_is_never_passed_over() -> None:
    """What follows `podbot-` may mean another session than it did before that was looked at."""
    assert names_meant("shop", [SHOP, "shop"]) == ["shop"]
    assert names_meant("shop", [SHOP, "shop-tests", SHOP_API]) == [SHOP, "shop-tests"]


@pytest.mark.parametrize(
    "chosen", ["podbot-shop", "podbot-shop-1a2b3", "podbot-shop-1a2b3g", "podbot-1a2b3c", "podbot--1a2b3c", "my-shop"]
)
def test_of_a_chosen_name_only_its_beginning_counts(chosen: str) -> None:
    assert not begins("shop", chosen)
    assert not begins("1a2b3c", chosen)
    assert begins(chosen[:4], chosen)


@given(
    st.lists(st.tuples(DIRECTORIES, NONCES), max_size=4), st.sets(st.text("ab-", min_size=1, max_size=5)), DIRECTORIES
)
def test_a_session_is_meant_by_a_beginning_of_its_name_or_directory_and_no_better_one_is_there(
    sessions: list[tuple[str, str]], chosen: set[str], typed: str
) -> None:
    made = {session_name(None, f"/srv/{directory}", nonce) for directory, nonce in sessions}
    names = sorted({*made, *chosen})
    meant = names_meant(typed, names)
    can = [name for name in names if name.startswith(typed) or (name in made and name[7:].startswith(typed))]
    assert set(meant) <= set(can)
    assert bool(meant) == bool(can)
    if typed in names:
        assert meant == [typed]
    else:
        passed_over = set(can) - set(meant)
        assert passed_over <= made - chosen
        assert not passed_over or any(name[7:-7] == typed for name in meant)
