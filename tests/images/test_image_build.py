"""A build's decisions, its requests to the engine, and its reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.port import ImageInfo
from podbot.errors import EngineStorageFull, ImageBuildFailed, ImageNotFound, InvalidValue
from podbot.events import Event
from podbot.images.image_build import PULLED_BASE, BuildPlan, BuildRequest, build_image, plan_build
from podbot.images.recipe import LABEL_AGENTS
from tests.provisioning.test_setup import BASE, DEBIAN, FEDORA, RECIPE, Works, sandbox, shop

OUTPUT = (
    "STEP 1/9: FROM base",
    "STEP 2/9: COPY base/packages.txt /usr/local/lib/podbot/packages.txt",
    "--> Using cache 0123456789ab",
    "--> 0123456789a",
    "STEP 3/9: RUN --mount=type=bind,source=sandbox/host,target=/run/host : 'Node'; install-node \"$NODE_VERSION\"",
    "--> Using cache 0123456789ab",
    "--> 0123456789a",
    "STEP 4/9: RUN : 'codex 9.9'; install-agent '' @openai/codex@9.9",
    "--> Using cache 0123456789ab",
    "--> 0123456789a",
    "STEP 5/9: ENV LANG=C.UTF-8",
    "--> Using cache 0123456789ab",
    "COMMIT tag",
    "--> 0123456789a",
)


class Talking(Works):
    """Works whose build prints ``output``."""

    output: tuple[str, ...] = OUTPUT

    def build(self, *, tag: str, on_line: Any, **rest: Any) -> None:
        super().build(tag=tag, on_line=lambda _line: None, **rest)
        for line in self.output:
            on_line(line)


def decide(works: Works, facts: PodmanFacts = DEBIAN, **request: Any) -> BuildPlan:
    return plan_build(shop(works, facts), BuildRequest(**request))


@pytest.mark.parametrize(
    ("present", "facts", "request_", "steps", "base"),
    [
        ({}, DEBIAN, {}, ["base", "build"], RECIPE.base),
        ({}, DEBIAN, {"from_debian": True}, ["base", "build"], RECIPE.base),
        ({RECIPE.base: BASE}, DEBIAN, {"from_debian": True}, ["build"], RECIPE.base),
        ({RECIPE.base: BASE}, DEBIAN, {"fresh_base": True}, ["base", "build"], RECIPE.base),
        ({RECIPE.base: BASE}, DEBIAN, {"no_cache": True}, ["build"], RECIPE.base),
        ({"my/base:1": BASE}, DEBIAN, {"base": "my/base:1"}, ["build"], "my/base:1"),
        ({}, FEDORA, {}, ["pull", "build"], PULLED_BASE),
    ],
)
def test_the_planned_steps(
    present: dict[str, ImageInfo], facts: PodmanFacts, request_: dict[str, Any], steps: list[str], base: str
) -> None:
    plan = decide(Works(present), facts, **request_)
    assert ([step.kind for step in plan.steps], plan.base) == (steps, base)


@pytest.mark.parametrize(
    ("label", "agents", "order"),
    [
        ("", ["codex", "claude"], ("claude", "codex")),
        ("codex=1", ["claude", "codex"], ("codex", "claude")),
        ("gemini=1,codex=1", ["claude", "codex"], ("codex", "claude")),
        ("gemini=1,codex=1", None, ("gemini", "codex")),
        ("gemini=1", [], ()),
        ("gone=1", None, ("claude",)),
    ],
)
def test_existing_agents_come_first(label: str, agents: list[str] | None, order: tuple[str, ...]) -> None:
    there = ImageInfo("id", (RECIPE.image,), {LABEL_AGENTS: label}, 1, 0.0)
    assert decide(Works({RECIPE.image: there, RECIPE.base: BASE}), agents=agents).agents == order


def test_a_named_base_that_is_missing() -> None:
    with pytest.raises(ImageNotFound, match=r"my/base:1 \(BuildRequest.base\)"):
        decide(Works(), base="my/base:1")


def test_packages_or_a_named_base() -> None:
    with pytest.raises(InvalidValue, match=r"BuildRequest\.from_debian"):
        decide(Works({"b": BASE}), base="b", from_debian=True)


def test_packages_are_added_once_each_and_in_one_order() -> None:
    plan = decide(Works({RECIPE.base: BASE}), packages=["gh", "gcc", "gh"])
    assert plan.recipe.added == ("gcc", "gh")
    assert plan.steps[-1].text.endswith(", and the packages gcc, gh, whose size is not known,")


@pytest.mark.parametrize("name", ["", "-y", "git-", "Gh", "a b", "a;b", "$(id)", "gh=2", "gh/sid", "a\nb", "ä"])
def test_what_is_no_package_is_refused(name: str) -> None:
    """`git-` has apt remove git."""
    with pytest.raises(InvalidValue, match="is not the name of a Debian package"):
        decide(Works({RECIPE.base: BASE}), packages=[name])


def test_a_package_that_apt_does_not_know_has_a_remedy() -> None:
    class Unknown(Works):
        def build(self, *, tag: str, **_: Any) -> None:
            raise ImageBuildFailed(image=tag, step="packages", reason="E: Unable to locate package ghh", hint="")

    works = Unknown({RECIPE.base: BASE})
    with pytest.raises(ImageBuildFailed) as caught:
        build_image(decide(works, packages=["ghh"]), shop(works))
    assert caught.value.hint.startswith("The packages that are added are ghh (sandbox.packages).")


def test_from_debian_never_pulls() -> None:
    with pytest.raises(InvalidValue, match="mmdebstrap"):
        decide(Works(), FEDORA, from_debian=True)


@pytest.mark.parametrize("tag", ["localhost/x:1", "x", "reg.example:5000/a/b:V1.0", "a/b_c-d:latest"])
def test_names_of_images(tag: str) -> None:
    assert decide(Works({RECIPE.base: BASE}), tag=tag).image == tag


@pytest.mark.parametrize("tag", ["UPPER", "a b", "-t", "x:", "x:y:z", "a//b", "../x", "x\n"])
def test_invalid_image_names(tag: str) -> None:
    with pytest.raises(InvalidValue, match="is not the name of an image"):
        decide(Works({RECIPE.base: BASE}), tag=tag)


@given(st.text())
def test_any_tag_is_accepted_or_refused(tag: str) -> None:
    try:
        plan = decide(Works({RECIPE.base: BASE}), tag=tag)
    except InvalidValue:
        return
    assert plan.image == (tag or RECIPE.image)
    assert not set(plan.image) & set(" \t\n'\"$;")


def test_proxy_settings_reach_the_steps_but_no_argument() -> None:
    works = Works({RECIPE.base: BASE})
    plan = decide(works, build_args={"HTTPS_PROXY": "http://canary@p", "NODE_VERSION": "22.9.0"})
    assert plan.environ["HTTPS_PROXY"] == "http://canary@p"
    build_image(plan, shop(works))
    assert works.built["build_args"]["NODE_VERSION"] == "22.9.0"
    assert "canary" not in repr(works.built) + repr(plan)


def test_labels_contain_the_versions_that_were_built() -> None:
    works = Works({RECIPE.base: BASE})
    result = build_image(decide(works, agents=["codex"], build_args={"CODEX_VERSION": "9.9"}), shop(works))
    assert works.built["labels"][LABEL_AGENTS] == "codex=9.9"
    assert (result.agents, result.size) == ({"codex": "9.9"}, 1)


def test_progress_is_a_step_by_its_title() -> None:
    works, events = Talking({RECIPE.base: BASE}), list[Event]()
    build_image(decide(works, agents=["codex"], build_args={"CODEX_VERSION": "9.9"}), shop(works, emit=events.append))
    steps = [(event.message, event.fields) for event in events if event.kind == "image.step"]
    assert steps == [
        ("step 3 of 9: Node", {"step": 3, "steps": 9, "title": "Node", "next": "codex 9.9"}),
        ("step 4 of 9: codex 9.9", {"step": 4, "steps": 9, "title": "codex 9.9", "next": "user"}),
    ]
    assert [event.message for event in events if event.kind == "image.line"] == list(OUTPUT)


@pytest.mark.parametrize(
    ("drop", "cached"), [(None, True), (2, False), (5, False), (11, False)], ids=["all", "copy", "node", "last"]
)
def test_cached_is_every_layer(drop: int | None, cached: bool) -> None:
    works = Talking({RECIPE.base: BASE})
    works.output = tuple(line for number, line in enumerate(OUTPUT) if number != drop)
    assert build_image(decide(works), shop(works)).cached is cached


def test_a_build_that_fails_removes_nothing() -> None:
    class Full(Works):
        def build(self, **_: Any) -> None:
            raise EngineStorageFull(operation="build")

    works = Full({RECIPE.image: sandbox("claude", recipe="old"), RECIPE.base: BASE})
    with pytest.raises(EngineStorageFull):
        build_image(decide(works), shop(works))
    assert works.calls == []


def test_the_replaced_image_is_removed() -> None:
    works = Works({"my/own:1": sandbox("claude", recipe="old"), RECIPE.base: BASE})
    build_image(decide(works, tag="my/own:1"), shop(works))
    assert works.calls == [("build", "my/own:1"), ("remove", "id-sandbox")]


@pytest.mark.parametrize(
    ("proxy", "reason", "said"),
    [
        ("http://ann:c4n4ry@p.example:1", "… ProxyError('Cannot connect to proxy.' …", "HTTPS_PROXY (p.example:1)"),
        ("http://p.example:1", "npm error code ECONNREFUSED", "HTTPS_PROXY (p.example:1)"),
        ("http://p.example:1", "no such package", "no such package"),
        ("", "ProxyError", "ProxyError"),
    ],
)
def test_a_proxy_that_a_step_cannot_use_is_named_without_its_password(proxy: str, reason: str, said: str) -> None:
    class Failing(Works):
        def build(self, **_: Any) -> None:
            raise ImageBuildFailed(image=RECIPE.image, step="STEP 6/15: Node", reason=reason)

    works = Failing({RECIPE.base: BASE})
    plan = replace(decide(works), environ={"HTTPS_PROXY": proxy})
    with pytest.raises(ImageBuildFailed) as caught:
        build_image(plan, shop(works))
    assert said in caught.value.message
    assert "c4n4ry" not in str(caught.value)


@pytest.mark.parametrize(("subids", "said"), [(False, "--add-subuids"), (True, "apt-get update")])
def test_a_base_that_fails_for_want_of_user_ids_says_so(subids: bool, said: str) -> None:
    class Failing(Works):
        def import_rootfs(self, **_: Any) -> None:
            raise ImageBuildFailed(
                image=RECIPE.base, step="base", reason="E: chroot mode", hint="Does `apt-get update` work?"
            )

    programs = {name: f"/usr/bin/{name}" for name in ("mmdebstrap", "newuidmap", "newgidmap")}
    facts = replace(DEBIAN, uid=1000, programs=programs, subids=subids)
    works = Failing()
    with pytest.raises(ImageBuildFailed, match=said):
        build_image(decide(works, facts), shop(works, facts))
