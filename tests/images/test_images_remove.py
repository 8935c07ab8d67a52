"""Which of podbot's images are removed, on an engine in memory that removes names and images as Podman 4.3.1 does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podbot.cli.entry import main
from podbot.config.load import configured_images
from podbot.config.models import LoadOptions
from podbot.engine.port import ImageInfo
from podbot.errors import ImageNotRemoved
from podbot.frozen import replace
from podbot.images.image_names import image_names, remember_images
from podbot.images.images_remove import Removable, named_images, remove_image, unused_images
from podbot.images.recipe import load_recipe
from podbot.testing import FakeEngine
from tests.driver import FakeDriver
from tests.session.plans import Place, container

RECIPE = load_recipe()
OLD, OLD_BASE, MINE = "localhost/podbot-sandbox:0.0.9", "localhost/podbot-base:0.0.9", "localhost/mine:1"
SANDBOX, BASE_ONLY = {"io.podbot.image": "sandbox", "io.podbot.recipe": "1"}, {"io.podbot.recipe": "1"}
Capture = pytest.CaptureFixture[str]


class Store(FakeEngine):
    """An engine with images: id -> image. It is its own image builder."""

    def __init__(self) -> None:
        super().__init__(images=())
        self.stored: dict[str, ImageInfo] = {}
        self.made = 0
        self.refuses = self.refuses_parent = ""
        self.image_builder = self

    def add(self, *tags: str, former: str = "", **labels: str) -> str:
        """An image with the next id, made a second after the one before. ``former``: a name that it had."""
        self.made += 1
        former_tags = (former,) if former else ()
        size, made_at = 1 << 20, float(self.made)
        made = ImageInfo(f"{self.made:x}" * 64, tags, labels or SANDBOX, size, made_at, former_tags=former_tags)
        self.stored[made.id] = made
        return made.id

    def _image(self, ref: str) -> ImageInfo | None:
        whole = f"localhost/{ref}" if ":" in ref else f"localhost/{ref}:latest"
        return next((i for i in self.stored.values() if ref in i.tags or whole in i.tags or i.id.startswith(ref)), None)

    def list_images(self, *, label: str) -> list[ImageInfo]:
        name, _, value = label.partition("=")
        return [i for i in self.stored.values() if name in i.labels and value in ("", i.labels[name])]

    def remove(self, container: str = "", *, image: str = "", kill: bool = True) -> Any:
        if container:
            return super().remove(container, kill=kill)
        found = self._image(image)
        assert found is not None
        if self.refuses:
            return self.refuses
        if len(found.tags) > 1 and image in found.tags:
            self.stored[found.id] = replace(found, tags=tuple(tag for tag in found.tags if tag != image))
        elif len(found.tags) > 1:
            return "it has several names"
        elif any(entry.info.image_id == found.id for entry in self.by_name.values()):
            return "image is in use by a container: consider force-removing"
        else:
            del self.stored[found.id]
            return self.refuses_parent
        return ""

    def build(self, **_: Any) -> None:
        raise AssertionError

    import_rootfs = pull = build


@pytest.fixture
def store(driver: FakeDriver) -> Store:
    driver.engine = made = Store()
    return made


def removed(store: Store, *names: str) -> list[str]:
    found = named_images(store, names)
    for one in found:
        remove_image(store, store, one)
    return [one.image for one in found]


def names_of(found: list[Removable]) -> list[str]:
    return [one.reference for one in found]


# --- by name -------------------------------------------------------------------------------------------


def test_a_name_of_two_is_taken_away_and_the_last_one_removes_the_image(store: Store) -> None:
    store.add(OLD, MINE)
    assert removed(store, MINE) == [MINE]
    assert [image.tags for image in store.stored.values()] == [(OLD,)]
    assert removed(store, "podbot-sandbox:0.0.9") == [OLD], "a shortened name is completed"
    assert store.stored == {}


def test_an_image_without_a_name_is_removed_by_the_beginning_of_its_id(store: Store) -> None:
    identity = store.add()
    assert removed(store, identity[:8]) == [identity[:12]]
    assert store.stored == {}


def test_an_image_that_is_named_twice_is_removed_once(store: Store) -> None:
    store.add(OLD)
    assert removed(store, OLD, "podbot-sandbox:0.0.9", OLD) == [OLD]


@pytest.mark.parametrize(
    ("name", "reason"), [("localhost/no:1", "not on this engine"), ("docker.io/library/debian:12", "did not build it")]
)
def test_one_wrong_name_and_nothing_is_removed(store: Store, name: str, reason: str) -> None:
    store.add(OLD)
    store.add("docker.io/library/debian:12", maintainer="debian")
    with pytest.raises(ImageNotRemoved, match=reason):
        removed(store, OLD, name)
    assert len(store.stored) == 2


def test_the_containers_that_use_an_image_are_named(store: Store) -> None:
    store.add(OLD)
    for name in ("shop", "blog"):
        store.create(replace(container(name), image=OLD))
    with pytest.raises(
        ImageNotRemoved, match=f"{OLD} was not removed: blog, shop use it. Remove the sessions blog, shop first"
    ):
        removed(store, OLD)


def test_a_refusal_that_no_container_explains_is_the_engines(store: Store) -> None:
    store.add(OLD)
    store.refuses = "a build uses it"
    with pytest.raises(ImageNotRemoved, match=f"{OLD} was not removed: a build uses it"):
        removed(store, OLD)


@pytest.mark.parametrize("name", ["1111", "mine:1"])
def test_an_image_with_several_names_that_could_be_meant_stays(store: Store, name: str) -> None:
    store.add(MINE, "quay.example/mine:1")
    with pytest.raises(ImageNotRemoved, match=f"it has the names {MINE}, quay.example/mine:1. Name one of them"):
        removed(store, name)


def test_one_name_in_two_spellings_is_taken_away_once(store: Store) -> None:
    store.add(MINE, "localhost/mine:latest")
    assert removed(store, "mine", "localhost/mine:latest", "mine:1") == ["localhost/mine:latest", MINE]
    assert store.stored == {}


def test_an_image_that_got_the_name_meanwhile_stays(store: Store) -> None:
    old = store.add(OLD)
    (chosen,) = named_images(store, [OLD])
    del store.stored[old]
    new = store.add(OLD)
    with pytest.raises(ImageNotRemoved, match="the name belongs to another image now"):
        remove_image(store, store, chosen)
    assert [*store.stored] == [new]


def test_an_image_that_is_gone_counts_as_removed(store: Store) -> None:
    old = store.add(OLD)
    (chosen,) = named_images(store, [OLD])
    del store.stored[old]
    remove_image(store, store, chosen)


def test_the_error_of_a_parent_that_could_not_go_with_the_image_is_not_the_images(store: Store) -> None:
    store.add(MINE)
    store.refuses_parent = "the image's parent is in use"
    assert removed(store, MINE) == [MINE]
    assert store.stored == {}


def test_only_sessions_are_named_for_removal_by_podbot(store: Store, place: Place, capsys: Capture) -> None:
    store.add(OLD)
    store.create(replace(container("foreign", marks={}), image=OLD))
    assert main(["image", "rm", OLD]) == 1
    err = capsys.readouterr().err
    assert "foreign uses it. Remove what uses it first." in err
    assert "podbot stop" not in err


# --- those that nothing needs --------------------------------------------------------------------------


def test_images_of_earlier_versions_and_replaced_ones_are_unused_oldest_first(store: Store) -> None:
    store.add(OLD_BASE, **BASE_ONLY)
    nameless = store.add(former=RECIPE.image)
    store.add(OLD)
    store.add("localhost/podbot-question:3f2a")
    assert names_of(unused_images(store, ())) == [OLD_BASE, nameless, OLD, "localhost/podbot-question:3f2a"]


def test_what_is_needed_used_or_the_operators_own_stays(store: Store) -> None:
    store.add(RECIPE.image)
    store.add(RECIPE.base, **BASE_ONLY)
    store.add(MINE)
    store.add("localhost/podbot-sandbox:slim")
    store.add(OLD_BASE, "registry.example/team/box:2")
    store.add()  # built without a name, or pulled by its digest
    store.add(former=MINE)
    store.add(OLD)
    store.create(replace(container("shop"), image=OLD))
    store.add("localhost/debian:12", maintainer="debian")
    assert unused_images(store, {RECIPE.image, RECIPE.base, "", "localhost/missing:1"}) == []


def test_the_image_of_a_container_stays_when_a_build_took_its_name(store: Store) -> None:
    used = store.add(OLD)
    store.create(replace(container("shop"), image=OLD))
    store.stored[used] = replace(store.stored[used], tags=())
    store.add(RECIPE.image)
    assert unused_images(store, {RECIPE.image}) == []


# --- from the command line -------------------------------------------------------------------------------


def test_rm_prints_what_it_removed_and_the_shell_does_not_complete_it_any_more(
    store: Store, place: Place, capsys: Capture
) -> None:
    store.add(OLD)
    store.add(MINE)
    remember_images(place.environ, [OLD, MINE], all_of_them=True)
    assert main(["image", "rm", OLD]) == 0
    assert capsys.readouterr().out == f"{OLD}\n"
    assert image_names(place.environ) == (MINE,)


def test_rm_all_needs_consent_and_leaves_what_the_configuration_names(
    store: Store, place: Place, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODBOT_IMAGE", OLD)
    store.add(OLD)
    nameless = store.add(former=RECIPE.image)
    assert main(["image", "rm", "--all"]) == 2
    err = capsys.readouterr().err
    assert f"  - {nameless[:12]} (1 MB)\n" in err
    assert "add --yes" in err
    assert len(store.stored) == 2
    assert main(["image", "rm", "--all", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"image": nameless[:12], "id": nameless, "size": 1 << 20}]
    assert [image.tags for image in store.stored.values()] == [(OLD,)]
    assert main(["image", "rm", "--all", "--json"]) == 0, "there is nothing to ask about"
    assert json.loads(capsys.readouterr().out) == []


def test_a_refusal_does_not_keep_the_others(store: Store, place: Place, capsys: Capture) -> None:
    for tag in (OLD, MINE, OLD_BASE):
        store.add(tag)
    for name, image in (("shop", OLD), ("blog", MINE)):
        store.create(replace(container(name), image=image))
    assert main(["image", "rm", "--json", OLD, MINE, OLD_BASE]) == 1
    out, err = capsys.readouterr()
    assert [one["image"] for one in json.loads(out)] == [OLD_BASE]
    for name, image in (("shop", OLD), ("blog", MINE)):
        assert f"the image {image} was not removed: {name} uses it" in err
        assert f"Remove the session {name} first (`podbot stop --rm NAME`" in err


@pytest.mark.parametrize(
    ("words", "said"), [((), "name an IMAGE, or use --all"), ((OLD, "--all"), "IMAGE and --all exclude each other")]
)
def test_rm_of_nothing_and_of_everything(
    store: Store, place: Place, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    store.add(OLD)
    assert main(["image", "rm", *words]) == 2
    assert said in capsys.readouterr().err
    assert len(store.stored) == 1


def test_the_images_of_all_projects_are_configured_images(place: Place) -> None:
    file = f"{place.base}/config.toml"
    with open(file, "w", encoding="utf-8") as out:
        out.write('image = "a"\n[project."/src/one"]\nimage = "b"\n[project."/src/two"]\nsandbox.network = "none"\n')
    environ = {**place.environ, "HOME": place.base, "PODBOT_IMAGE": "c"}
    options = LoadOptions(file=file, environ=environ, overrides={"image": "d"})
    assert configured_images(options) == {"a", "b", "c", "d"}
