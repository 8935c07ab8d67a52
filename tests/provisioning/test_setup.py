"""Setup's decisions as a table, and its doings against recorded image works."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podbot.config.models import AppConfig, Origin
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.rootless_checks import user_ids_hint
from podbot.engine.podman.words import WORDS
from podbot.engine.port import ImageInfo
from podbot.errors import ImageBuildFailed, InvalidValue
from podbot.events import Event
from podbot.images import base_image
from podbot.images.image_build import PULLED_BASE, BuildContext
from podbot.images.recipe import CONTAINERFILE, LABEL_RECIPE, load_recipe
from podbot.provisioning.setup import SetupPlan, plan_setup, setup

RECIPE = load_recipe()
DEBIAN = PodmanFacts(programs={"mmdebstrap": "/usr/bin/mmdebstrap"}, distribution=("debian",), codename="bookworm")
FEDORA = PodmanFacts(distribution=("fedora",))


def image(name: str, labels: Mapping[str, str]) -> ImageInfo:
    return ImageInfo(id=f"id-{name}", tags=(name,), labels=dict(labels), size=1, created="")


def sandbox(*agents: str, **changes: str) -> ImageInfo:
    return image("sandbox", RECIPE.labels(agents) | {f"io.podbot.{key}": value for key, value in changes.items()})


BASE = image("base", {LABEL_RECIPE: RECIPE.base_digest})


def labels_of(context: bytes) -> dict[str, str]:
    """The labels at the end of the Containerfile in a build's archive."""
    with tarfile.open(fileobj=io.BytesIO(context)) as tar:
        lines = (tar.extractfile(CONTAINERFILE) or io.BytesIO()).read().decode().splitlines()
    (line,) = (line for line in lines if line.startswith("LABEL "))
    return dict(re.findall(r'(\S+)="([^"]*)"', line))


@dataclass
class Works:
    """Image works that record what they were asked and change nothing but ``images``."""

    images: dict[str, ImageInfo] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    built: dict[str, Any] = field(default_factory=dict)
    unreachable: bool = False

    def build(self, *, context: bytes, tag: str, on_line: Callable[[str], None], **rest: Any) -> None:
        self.calls.append(("build", tag))
        self.built |= rest | {"labels": labels_of(context)}
        on_line("STEP 1/2: FROM base")
        self.images[tag] = ImageInfo("id-new", (tag,), self.built["labels"], 1, "")

    def import_rootfs(self, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None:
        self.calls.append(("import", tag))
        self.images[tag] = image("new-base", {LABEL_RECIPE: RECIPE.base_digest})
        assert f"LABEL {LABEL_RECIPE}={RECIPE.base_digest}" in list(changes)

    def pull(self, *, reference: str, on_line: Callable[[str], None]) -> None:
        if self.unreachable:
            raise ImageBuildFailed(image=reference, step="pull", reason="no route to host")
        self.calls.append(("pull", reference))

    def remove(self, *, image: str) -> bool:
        self.calls.append(("remove", image))
        return True


@pytest.fixture(autouse=True)
def _no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_image, "apt_targets", lambda: "http://mirror/debian bookworm main")


def shop(works: Works, facts: PodmanFacts = DEBIAN, emit: Callable[[Event], None] = lambda _: None) -> BuildContext:
    hint = user_ids_hint(facts)
    return BuildContext(RECIPE, facts, {}, works.images.get, works, WORDS, emit, hint)


def decide(works: Works, facts: PodmanFacts = DEBIAN, path: str = "/c.toml", **rest: Any) -> SetupPlan:
    return plan_setup(shop(works, facts), config=rest.pop("config", AppConfig()), config_path=path, **rest)


def configured(ref: str, kind: Any = "file") -> AppConfig:
    return AppConfig(image=ref, origins={"image": Origin(kind, "x")})


@pytest.mark.parametrize(
    ("present", "facts", "options", "steps"),
    [
        ({}, DEBIAN, {}, ["base", "build", "config"]),
        ({}, FEDORA, {}, ["pull", "build", "config"]),
        ({PULLED_BASE: BASE}, FEDORA, {}, ["build", "config"]),
        ({RECIPE.base: BASE}, DEBIAN, {}, ["build", "config"]),
        ({RECIPE.base: image("old", {LABEL_RECIPE: "other"})}, DEBIAN, {}, ["base", "build", "config"]),
        ({RECIPE.image: sandbox("claude")}, DEBIAN, {}, ["config"]),
        ({RECIPE.image: sandbox("claude")}, DEBIAN, {"config": configured(RECIPE.image)}, []),
        ({RECIPE.image: sandbox("claude", recipe="old"), RECIPE.base: BASE}, DEBIAN, {}, ["build", "config"]),
        ({RECIPE.image: sandbox("claude", "codex")}, DEBIAN, {"agents": ["codex"]}, ["config"]),
        ({RECIPE.image: sandbox("claude"), RECIPE.base: BASE}, DEBIAN, {"agents": ["codex"]}, ["build", "config"]),
        ({RECIPE.image: sandbox("claude", agents="claude=0.1"), RECIPE.base: BASE}, DEBIAN, {}, ["build", "config"]),
        ({RECIPE.image: sandbox("claude"), RECIPE.base: BASE}, DEBIAN, {"force": True}, ["base", "build", "config"]),
        ({RECIPE.image: sandbox("claude")}, DEBIAN, {"config": configured("my/own:1")}, []),
        ({RECIPE.image: sandbox("claude")}, DEBIAN, {"config": configured(RECIPE.image, "flag")}, []),
        ({RECIPE.image: sandbox("claude")}, DEBIAN, {"config": configured("localhost/podbot-sandbox:0")}, ["config"]),
        ({RECIPE.image: sandbox("claude")}, DEBIAN, {"config": configured("localhost/podbot-sandbox:0", "flag")}, []),
    ],
)
def test_what_is_to_be_done(
    present: dict[str, ImageInfo], facts: PodmanFacts, options: dict[str, Any], steps: list[str]
) -> None:
    assert [step.kind for step in decide(Works(present), facts, **options).steps] == steps


def test_an_image_without_agents_named_keeps_those_that_it_has() -> None:
    works = Works({RECIPE.image: sandbox("codex", recipe="old"), RECIPE.base: BASE})
    assert decide(works).agents == ("codex",)


def test_an_unknown_agent_is_refused_before_anything_is_done() -> None:
    with pytest.raises(InvalidValue, match="cloude"):
        decide(Works(), agents=["cloude"])


def test_from_nothing(tmp_path: Path) -> None:
    path = tmp_path / "podbot" / "config.toml"
    works, events = Works(), list[Event]()
    plan = decide(works, path=str(path), agents=["claude", "codex"])
    result = setup(plan, shop(works, emit=events.append))
    assert works.calls == [("import", RECIPE.base), ("build", RECIPE.image)]
    assert works.built["build_args"] == RECIPE.build_args(RECIPE.base)
    assert works.built["labels"] == RECIPE.labels(("claude", "codex"))
    assert path.read_text() == f'image = "{RECIPE.image}"\n'
    assert (result.image, result.built, result.wrote_config) == (RECIPE.image, True, True)
    assert [event.kind for event in events if event.level == "info"] == ["image.base", "image.build", "setup.config"]
    assert Event("debug", "image.line", "STEP 1/2: FROM base") in events


def test_twice_is_once(tmp_path: Path) -> None:
    path = str(tmp_path / "config.toml")
    works = Works()
    setup(decide(works, path=path), shop(works))
    works.calls.clear()
    again = setup(decide(works, path=path, config=configured(RECIPE.image)), shop(works))
    assert (works.calls, again.built, again.wrote_config) == ([], False, False)


def test_another_image_of_the_users_is_left_and_named(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('image = "my/own:1"\n')
    works, events = Works({RECIPE.image: sandbox("claude")}), list[Event]()
    plan = decide(works, path=str(path), config=configured("my/own:1"))
    result = setup(plan, shop(works, emit=events.append))
    assert path.read_text() == 'image = "my/own:1"\n'
    assert not result.wrote_config
    assert [(event.level, event.kind) for event in events] == [("notice", "setup.other_image")]
    assert "my/own:1" in events[0].message


def test_what_a_build_replaces_is_removed(tmp_path: Path) -> None:
    works = Works({RECIPE.image: sandbox("claude"), RECIPE.base: image("old-base", {LABEL_RECIPE: "other"})})
    plan = decide(works, path=str(tmp_path / "c.toml"), force=True)
    setup(plan, shop(works))
    assert works.built["no_cache"] is True
    assert works.calls[-2:] == [("remove", "id-sandbox"), ("remove", "id-old-base")]


def test_a_base_that_is_in_use_is_not_removed(tmp_path: Path) -> None:
    works = Works({RECIPE.image: sandbox("claude", recipe="old"), RECIPE.base: BASE})
    setup(decide(works, path=str(tmp_path / "c.toml")), shop(works))
    assert ("remove", BASE.id) not in works.calls


def test_a_registry_out_of_reach_says_what_else_works(tmp_path: Path) -> None:
    works = Works(unreachable=True)
    plan = decide(works, FEDORA, path=str(tmp_path / "c.toml"))
    with pytest.raises(ImageBuildFailed, match=r"mmdebstrap.*podman load"):
        setup(plan, shop(works, FEDORA))
    assert not (tmp_path / "c.toml").exists()


def test_a_pulled_base_is_built_on(tmp_path: Path) -> None:
    works = Works()
    setup(decide(works, FEDORA, path=str(tmp_path / "c.toml")), shop(works, FEDORA))
    assert works.calls == [("pull", PULLED_BASE), ("build", RECIPE.image)]
    assert works.built["build_args"]["BASE"] == PULLED_BASE
