"""Setup's decisions as a table, and its doings against recorded image works."""

from __future__ import annotations

import io
import re
import tarfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from podbot.config.models import AgentConfig, AppConfig, Origin, SandboxConfig
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.rootless_checks import user_ids_hint
from podbot.engine.podman.words import WORDS
from podbot.engine.port import ImageInfo
from podbot.errors import ImageBuildFailed, InvalidValue
from podbot.events import Event
from podbot.images.image_build import PULLED_BASE, BuildContext, BuildRequest, build_image, plan_build
from podbot.images.recipe import CONTAINERFILE, LABEL_RECIPE, load_recipe
from podbot.provisioning.setup import SetupPlan, plan_setup, setup

RECIPE = load_recipe()
DEBIAN = PodmanFacts(programs={"mmdebstrap": "/usr/bin/mmdebstrap"}, distribution=("debian",), codename="bookworm")
FEDORA = PodmanFacts(distribution=("fedora",))


def image(name: str, labels: Mapping[str, str]) -> ImageInfo:
    return ImageInfo(id=f"id-{name}", tags=(name,), labels=dict(labels), size=1, created=0.0)


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
    """Image functions that record their calls and change nothing except ``images``."""

    images: dict[str, ImageInfo] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    built: dict[str, Any] = field(default_factory=dict)
    unreachable: bool = False

    def build(self, *, context: bytes, tag: str, on_line: Callable[[str], None], **rest: Any) -> None:
        self.calls.append(("build", tag))
        self.built |= rest | {"labels": labels_of(context)}
        on_line("STEP 1/2: FROM base")
        self.images[tag] = ImageInfo("id-new", (tag,), self.built["labels"], 1, 0.0)

    def import_rootfs(self, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None:
        self.calls.append(("import", tag))
        self.images[tag] = image("new-base", {LABEL_RECIPE: RECIPE.base_digest})
        assert f"LABEL {LABEL_RECIPE}={RECIPE.base_digest}" in list(changes)

    def pull(self, *, reference: str, on_line: Callable[[str], None]) -> None:
        if self.unreachable:
            raise ImageBuildFailed(image=reference, step="pull", reason="no route to host")
        self.calls.append(("pull", reference))

    def remove(self, *, image: str) -> str:
        self.calls.append(("remove", image))
        return ""


def apt_targets() -> str:
    return "http://mirror/debian bookworm main"


def shop(works: Works, facts: PodmanFacts = DEBIAN, emit: Callable[[Event], None] = lambda _: None) -> BuildContext:
    hint = user_ids_hint(facts)
    return BuildContext(RECIPE, facts, {}, works.images.get, works, WORDS, emit, hint, apt_targets)


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
def test_the_planned_steps(
    present: dict[str, ImageInfo], facts: PodmanFacts, options: dict[str, Any], steps: list[str]
) -> None:
    assert [step.kind for step in decide(Works(present), facts, **options).steps] == steps


def test_an_image_without_agents_named_keeps_those_that_it_has() -> None:
    works = Works({RECIPE.image: sandbox("codex", recipe="old"), RECIPE.base: BASE})
    assert decide(works).agents == ("codex",)


def test_an_unknown_agent_is_refused_before_anything_is_done() -> None:
    for option in ("agents", "also"):
        named: dict[str, Any] = {option: ["cloude"]}
        with pytest.raises(InvalidValue, match=r"^agents \(named for set-up\): unknown agent 'cloude'"):
            decide(Works(), **named)


def test_from_nothing(tmp_path: Path) -> None:
    path = tmp_path / "podbot" / "config.toml"
    works, events = Works(), list[Event]()
    plan = decide(works, path=str(path), agents=["claude", "codex"])
    result = setup(plan, shop(works, emit=events.append))
    assert works.calls == [("import", RECIPE.base), ("build", RECIPE.image)]
    assert works.built["build_args"] == RECIPE.build_args(RECIPE.base)
    assert works.built["labels"] == RECIPE.labels(("claude", "codex"))
    assert tomllib.loads(path.read_text()) == {"image": RECIPE.image, "agent": {"install": ["claude", "codex"]}}
    assert (result.image, result.built, result.wrote_config) == (RECIPE.image, True, True)
    assert [event.kind for event in events if event.level == "info"] == [
        "image.base",
        "image.build",
        "setup.config",
        "setup.config",
    ]
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


def test_the_replaced_image_is_removed(tmp_path: Path) -> None:
    works = Works({RECIPE.image: sandbox("claude"), RECIPE.base: image("old-base", {LABEL_RECIPE: "other"})})
    plan = decide(works, path=str(tmp_path / "c.toml"), force=True)
    setup(plan, shop(works))
    assert works.built["no_cache"] is True
    assert works.calls[-2:] == [("remove", "id-sandbox"), ("remove", "id-old-base")]


def test_a_base_that_is_in_use_is_not_removed(tmp_path: Path) -> None:
    works = Works({RECIPE.image: sandbox("claude", recipe="old"), RECIPE.base: BASE})
    setup(decide(works, path=str(tmp_path / "c.toml")), shop(works))
    assert ("remove", BASE.id) not in works.calls


def test_without_a_registry_the_error_names_the_alternatives(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("options", "install", "agents", "settings"),
    [
        ({}, (), ("claude",), {"image"}),
        ({}, ("codex", "gemini"), ("codex", "gemini"), {"image"}),
        ({"agents": ["codex"]}, (), ("codex",), {"image", "agent.install"}),
        ({"agents": ["codex"]}, ("codex",), ("codex",), {"image"}),
        ({"also": ["codex"]}, (), ("claude", "codex"), {"image", "agent.install"}),
        ({"also": ["codex"]}, ("gemini",), ("codex", "gemini"), {"image", "agent.install"}),
        ({"agents": ["codex"], "also": ["gemini"]}, (), ("codex", "gemini"), {"image", "agent.install"}),
    ],
)
def test_agents_are_remembered_in_the_configuration(
    options: dict[str, Any], install: tuple[str, ...], agents: tuple[str, ...], settings: set[str]
) -> None:
    """Issue 16.3: also when the image was removed, or another podbot gives it another name."""
    plan = decide(Works(), config=AppConfig(agent=AgentConfig(install=install)), **options)
    assert (set(plan.agents), set(plan.settings)) == (set(agents), settings)
    assert set(plan.settings.get("agent.install", agents)) == set(agents)


def test_an_agent_is_added_to_those_of_the_image() -> None:
    works = Works({RECIPE.image: sandbox("codex", "gemini"), RECIPE.base: BASE})
    plan = decide(works, also=["claude"])
    assert plan.agents == ("codex", "gemini", "claude")  # in the order that reuses the layers
    again = decide(works, also=["gemini"])
    assert (again.build, set(again.settings)) == (None, {"image"}), "what the image has, it remembers itself"


def test_a_list_of_agents_from_the_environment_is_not_written() -> None:
    config = AppConfig(
        agent=AgentConfig(install=("codex",)), origins={"agent.install": Origin("environment", "PODBOT_AGENT_INSTALL")}
    )
    assert set(decide(Works(), config=config, agents=["claude"]).settings) == {"image"}


def version_of(plan: SetupPlan, agent: str) -> str:
    assert plan.build is not None
    return plan.build.recipe.agents[agent].version


def test_a_chosen_version_is_built_and_stays() -> None:
    """Issue 16.3: set-up again, and a newer podbot with other versions of its own, do not change it."""
    config = AppConfig(image=RECIPE.image, agent=AgentConfig(versions={"claude": "2.1.1"}))
    works = Works({RECIPE.base: BASE})
    assert version_of(decide(works, config=config), "claude") == "2.1.1"
    works.images[RECIPE.image] = sandbox("claude", agents="claude=2.1.1")
    assert decide(works, config=config).build is None
    works.images[RECIPE.image] = sandbox("claude", agents="claude=2.1.1", recipe="of an earlier podbot")
    assert version_of(decide(works, config=config), "claude") == "2.1.1"
    later = AppConfig(image=RECIPE.image)  # the operator removed the line
    assert version_of(decide(works, config=later), "claude") == RECIPE.agents["claude"].version


def test_packages_are_installed_remembered_and_removed() -> None:
    works = Works({RECIPE.image: sandbox("claude"), RECIPE.base: BASE})
    plan = decide(works, config=configured(RECIPE.image), packages=["gh", "gcc", "gh"])
    assert plan.build is not None
    assert plan.build.recipe.added == ("gcc", "gh")
    assert plan.settings == {"sandbox.packages": ("gh", "gcc")}
    config = replace(configured(RECIPE.image), sandbox=SandboxConfig(packages=("gh", "gcc")))
    assert decide(works, config=config).build is not None, "the key was changed by hand"
    works.images[RECIPE.image] = sandbox("claude", packages="gcc,gh")
    assert decide(works, config=config).steps == ()
    assert decide(works, config=config, packages=["gh", "gcc"]).steps == ()
    fewer = decide(works, config=config, packages=[])
    assert fewer.build is not None
    assert (fewer.build.recipe.added, fewer.settings) == ((), {"sandbox.packages": ()})


def test_packages_that_a_variable_names_are_not_replaced_in_the_file() -> None:
    """The next set-up would take them out again."""
    config = replace(
        configured(RECIPE.image),
        sandbox=SandboxConfig(packages=("gh",)),
        origins={"sandbox.packages": Origin("environment", "PODBOT_SANDBOX_PACKAGES")},
    )
    with pytest.raises(InvalidValue, match="PODBOT_SANDBOX_PACKAGES"):
        decide(Works({RECIPE.base: BASE}), config=config, packages=["tree"])
    assert decide(Works({RECIPE.base: BASE}), config=config, packages=["gh"]).build is not None


def test_a_version_by_build_argument_stays_in_images_of_that_name() -> None:
    works = Works({RECIPE.base: BASE})
    request = BuildRequest(agents=["claude", "codex"], build_args={"CLAUDE_VERSION": "2.1.1"})
    build_image(plan_build(shop(works), request), shop(works))
    assert works.built["labels"]["io.podbot.chosen"] == "claude=2.1.1"
    config = AppConfig(image=RECIPE.image)
    assert decide(works, config=config).build is None
    labels = {**works.built["labels"], LABEL_RECIPE: "of an earlier podbot"}
    works.images[RECIPE.image] = image("sandbox", labels)
    again = decide(works, config=config)
    assert (version_of(again, "claude"), version_of(again, "codex")) == ("2.1.1", RECIPE.agents["codex"].version)
    setup(again, shop(works))
    assert works.built["labels"]["io.podbot.chosen"] == "claude=2.1.1"
    newer = replace(config, agent=AgentConfig(versions={"claude": "2.2.0"}))
    setup(decide(works, config=newer), shop(works))
    assert "io.podbot.chosen" not in works.built["labels"], "the configuration has it now"


def test_the_agents_of_an_image_that_an_earlier_podbot_named_are_built_again() -> None:
    old = "localhost/podbot-sandbox:0.0.1"
    works = Works({old: sandbox("gemini", recipe="old", chosen="gemini=0.9"), RECIPE.base: BASE})
    plan = decide(works, config=configured(old))
    assert (plan.agents, version_of(plan, "gemini"), dict(plan.settings)) == (
        ("gemini",),
        "0.9",
        {"image": RECIPE.image},
    )
    assert plan.build is not None
    assert plan.build.replaces == ()


def test_a_label_that_is_no_version_is_ignored() -> None:
    works = Works({RECIPE.image: sandbox("claude", recipe="old", chosen="claude=$(x),y=1"), RECIPE.base: BASE})
    assert version_of(decide(works), "claude") == RECIPE.agents["claude"].version
