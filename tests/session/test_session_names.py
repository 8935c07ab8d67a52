"""A name that is typed: a whole one, the beginning of one, or an id."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.port import ContainerInfo
from podbot.errors import AmbiguousName, ContainerNotFound, NotOurs, RequestFailed
from podbot.session.directory import names_here, session_directory
from podbot.session.session_names import container_meant, session_meant
from podbot.testing import FakeEngine
from tests.session.plans import Place, container, made

NAMES = st.text("ab", min_size=1, max_size=4)


@pytest.mark.parametrize("typed", ["shop", "sho", "s"])
def test_the_beginning_of_a_name_is_enough(engine: FakeEngine, typed: str) -> None:
    made(engine, "shop", "notes")
    assert session_meant(engine, typed).name == "shop"


def test_a_whole_name_counts_before_longer_ones(engine: FakeEngine) -> None:
    made(engine, "shop", "shop-2")
    assert session_meant(engine, "shop").name == "shop"


def test_an_ambiguous_name_lists_the_candidates(engine: FakeEngine) -> None:
    made(engine, "shop-b", "shop-a", "notes")
    with pytest.raises(AmbiguousName) as caught:
        session_meant(engine, "shop")
    assert caught.value.candidates == "shop-a, shop-b"
    assert str(caught.value) == "shop could be any of shop-a, shop-b. Type more of the name."


def test_a_directory_is_enough_for_a_session_that_podbot_named_after_it(engine: FakeEngine) -> None:
    made(engine, "podbot-shop-1a2b3c", "podbot-shop-api-4c5d6e", "podbot-notes-0a1b2c")
    assert session_meant(engine, "shop").name == "podbot-shop-1a2b3c"
    with pytest.raises(ContainerNotFound):
        session_meant(engine, "note")
    made(engine, "podbot-shop-9d8e7f")
    with pytest.raises(AmbiguousName) as caught:
        session_meant(engine, "shop")
    assert caught.value.candidates == "podbot-shop-1a2b3c, podbot-shop-9d8e7f"


def test_a_long_list_of_candidates_is_cut() -> None:
    error = AmbiguousName.among("a", (f"a{number}" for number in range(10)))
    assert error.message.endswith("a6, a7 and 2 more")


def test_other_programs_containers_are_found_by_their_whole_name_only(engine: FakeEngine) -> None:
    engine.create(container("database", marks={}))
    assert container_meant(engine, "database").name == "database"
    with pytest.raises(NotOurs):
        session_meant(engine, "database")
    with pytest.raises(ContainerNotFound):
        container_meant(engine, "data")


def test_an_id_is_found(engine: FakeEngine) -> None:
    made(engine, "shop")
    assert session_meant(engine, engine.inspect("shop").id).name == "shop"


class ShortIds(FakeEngine):
    """Finds a container by the beginning of its id too, as Podman does."""

    def inspect(self, container: str) -> ContainerInfo:
        for found in self.by_name.values():
            if found.info.id.startswith(container) and container not in self.by_name:
                return found.info
        return super().inspect(container)


@pytest.mark.parametrize("typed", ["0", "000", "0" * 11])
def test_a_few_digits_of_an_id_mean_nothing(typed: str) -> None:
    """`podbot rm 0` removed the only session whose id began so."""
    engine = ShortIds()
    made(engine, "shop")
    with pytest.raises(ContainerNotFound):
        session_meant(engine, typed)
    made(engine, f"{typed}-a")
    assert session_meant(engine, typed).name == f"{typed}-a"


def test_a_name_and_an_id_that_begin_alike_are_ambiguous() -> None:
    engine, typed = ShortIds(), "0" * 12
    made(engine, "shop")
    assert session_meant(engine, typed).name == "shop"
    made(engine, f"{typed}-a")
    assert session_meant(engine, f"{typed}-a").name == f"{typed}-a"
    with pytest.raises(AmbiguousName) as caught:
        session_meant(engine, typed)
    assert caught.value.candidates == f"{typed}-a, shop"


def test_several_ids_that_begin_so(engine: FakeEngine) -> None:
    """Podman answers with an error; only the names of sessions count then."""
    refused = RequestFailed(operation="inspect a container", status=500, reason="more than one result")
    made(engine, "abc")
    engine.fail("inspect", refused)
    assert session_meant(engine, "a").name == "abc"
    engine.fail("inspect", refused)
    with pytest.raises(RequestFailed):
        session_meant(engine, "b")
    made(engine, "abd")
    engine.fail("inspect", refused)
    with pytest.raises(AmbiguousName):
        session_meant(engine, "a")


def test_no_name_is_no_beginning(engine: FakeEngine) -> None:
    made(engine, "shop")
    with pytest.raises(ContainerNotFound):
        container_meant(engine, "")


@given(st.sets(NAMES, max_size=5), NAMES)
def test_the_name_that_is_found_begins_so_and_is_the_only_one(names: set[str], typed: str) -> None:
    engine = FakeEngine()
    made(engine, *names)
    begun = {name for name in names if name.startswith(typed)}
    if typed in names:
        assert session_meant(engine, typed).name == typed
    elif len(begun) == 1:
        assert {session_meant(engine, typed).name} == begun
    else:
        with pytest.raises(AmbiguousName if begun else ContainerNotFound):
            session_meant(engine, typed)


def test_names_of_this_host_are_read_from_one_directory(place: Place) -> None:
    assert names_here(place.environ) == []
    with session_directory(place.directory("shop"), "e"), session_directory(place.directory("notes"), "e"):
        os.mkdir(place.directory("other"))
        os.mkdir(place.directory(".engine"))
        os.symlink(place.directory("shop"), place.directory("shop-2"))
        assert names_here(place.environ) == ["notes", "shop"]
        assert names_here(place.environ, "s") == ["shop"]
