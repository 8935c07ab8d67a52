from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import InvalidValue
from podbot.launch.names import LONGEST, can_mean, is_name, names_meant
from podbot.launch.names import session_name as made_name

SHOP, OTHER_SHOP = "podbot-shop-1a2b3c", "podbot-shop-9d8e7f"
SHOP_API, NOTES = "podbot-shop-api-4c5d6e", "podbot-notes-0a1b2c"
CINEMA, WORKSPACE = "podbot-cinema-4c5d6e", "podbot-workspace-4c5d6e"
LONG = "podbot-" + "a" * 40 + "-0a1b2c"
DIRECTORIES = st.text("abA_.-", min_size=1, max_size=4)
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
        ("shop", [SHOP, SHOP_API, NOTES], [SHOP]),
        ("shop", [SHOP, OTHER_SHOP], [SHOP, OTHER_SHOP]),  # two sessions on one directory
        ("shop-1a2b", [SHOP, OTHER_SHOP], [SHOP]),
        ("shop-1a2b3c", [SHOP, OTHER_SHOP], [SHOP]),
        ("", [SHOP], []),
        ("podbot", [SHOP], []),  # or `podbot rm podbot`, where no session is on that directory, would remove another's
        ("podbot-", [SHOP], []),
        ("p", [SHOP, "p-1"], ["p-1"]),
        ("podbot", [SHOP, "podbot-podbot-1a2b3c"], ["podbot-podbot-1a2b3c"]),
    ],
)
def test_the_beginning_of_a_name_or_the_directory_is_enough(typed: str, names: list[str], meant: list[str]) -> None:
    assert names_meant(typed, names) == meant


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("shop", SHOP_API),  # when the session on `shop` has ended
        ("ci", CINEMA),
        ("sh", SHOP),
        ("hop", SHOP),
        ("shop-9d8e", SHOP),
        ("shop-1a2b3c4", SHOP),
        ("shop-1", SHOP),  # the directory of another project is called so
        ("1a2b3c", SHOP),
        ("-1a2b3c", SHOP),
        ("shop/api", SHOP_API),
        ("./shop", SHOP),
    ],
)
def test_less_or_other_than_the_directory_never_means_another_projects_session(typed: str, name: str) -> None:
    assert names_meant(typed, [name]) == []


@pytest.mark.parametrize(
    "directory", ["my_app", "Shop", "site.com", "My Project", "a" * 40, "a" * 60, "x" * 39 + "_y", "workspace"]
)
def test_a_directory_is_typed_as_it_is(directory: str) -> None:
    name = session_name(None, f"/home/ann/{directory}/", "0a1b2c")
    assert names_meant(directory, [name, NOTES]) == [name]
    assert names_meant(f"{directory}-0a1b", [name, NOTES]) == [name]


@pytest.mark.parametrize("typed", [".", "..", "-", "--", "_", "/", "*", "日本", ".-4c5d6e", "\0", "\n", " "])
def test_a_text_without_a_letter_or_digit_means_nothing(typed: str) -> None:
    """A directory of such a name is called `workspace` in a session's name."""
    assert names_meant(typed, [SHOP, LONG, WORKSPACE]) == []


def test_a_name_that_the_operator_chose_is_never_passed_over() -> None:
    """The directory may mean another session than it did before directories were looked at."""
    assert names_meant("shop", [SHOP, "shop"]) == ["shop"]
    assert names_meant("shop", [SHOP, "shop-tests", SHOP_API]) == [SHOP, "shop-tests"]


@pytest.mark.parametrize(
    "chosen", ["podbot-shop", "podbot-shop-1a2b3", "podbot-shop-1a2b3g", "podbot-1a2b3c", "podbot--1a2b3c", "my-shop"]
)
def test_of_a_chosen_name_only_its_beginning_counts(chosen: str) -> None:
    assert not can_mean("shop", chosen)
    assert not can_mean("1a2b3c", chosen)
    assert can_mean(chosen[:4], chosen)


@given(
    st.lists(st.tuples(DIRECTORIES, NONCES), max_size=4),
    st.sets(st.text("ab-", min_size=1, max_size=5)),
    DIRECTORIES,
    st.integers(0, 6),
)
def test_a_session_is_meant_by_its_directory_or_the_beginning_of_its_name(
    sessions: list[tuple[str, str]], chosen: set[str], directory: str, digits: int
) -> None:
    made = {session_name(None, f"/srv/{each}", nonce): nonce for each, nonce in sessions}
    names = sorted({*made, *chosen})
    begin = session_name(None, f"/srv/{directory}", "")  # all up to the nonce
    named = any(letter in "abA" for letter in directory)
    expected = [name for name in names if (name in made and named and name[:-6] == begin) or name.startswith(directory)]
    assert names_meant(directory, names) == ([directory] if directory in names else expected)
    for name, nonce in made.items():
        if named and name[:-6] == begin:  # digits of the nonce: enough, or none
            assert can_mean(f"{directory}-{nonce[:digits]}", name) == (digits == 0 or digits >= 4)
