"""A plan is read back exactly as it was, except secrets, and nothing else is accepted as a plan."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.container_spec import ContainerSpec, Limits, Mount, Security
from podbot.launch.held_keys import HeldKey
from podbot.launch.resources.certificates import CertificatesPlan
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.credentials import CredentialsPlan, FirstRunSource
from podbot.launch.resources.every import EVERY
from podbot.launch.resources.gateway import GatewayPlan
from podbot.launch.resources.git_identity import GitIdentityPlan
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.resources.guest import GuestPlan
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.resources.login import LoginPlan
from podbot.launch.resources.token import TokenPlan
from podbot.launch.types import CredentialSource, LinkedGit, OwnFile, SandboxPlan
from podbot.session.plan_json import NotAPlan, plan_from, public_part, resource_kind
from tests.launch.build import facts

TEXTS = st.text(st.characters(), max_size=12)  # surrogates too: a path is the host's bytes
NAMES = st.dictionaries(TEXTS, TEXTS, max_size=2)
MOUNTS = st.builds(Mount, TEXTS, TEXTS, st.booleans(), st.booleans())
LINES = st.lists(TEXTS, max_size=2).map(tuple)
SECURITY = st.builds(Security, st.booleans(), st.booleans(), LINES, LINES, LINES, st.booleans(), st.none() | TEXTS)
NUMBERS = st.none() | st.integers()
LIMITS = st.builds(Limits, NUMBERS, st.none() | st.floats(0, 9), NUMBERS, NUMBERS, NUMBERS, LINES)
CONTAINERS = st.builds(
    ContainerSpec,
    name=TEXTS, image=TEXTS, image_origin=TEXTS, labels=NAMES, mounts=st.lists(MOUNTS, max_size=2).map(tuple),
    security=SECURITY, files=st.lists(MOUNTS, max_size=2).map(tuple), link=st.none() | st.tuples(TEXTS, TEXTS),
    limits=LIMITS, network=TEXTS, workdir=st.none() | TEXTS, make_workdir=st.booleans(), env=NAMES,
    runtime=st.none() | TEXTS, guest=st.none() | TEXTS,
)  # fmt: skip
HISTORIES = st.builds(HistoryPlan, TEXTS, TEXTS, TEXTS, MOUNTS, LINES)
TOKENS = st.builds(TokenPlan, st.integers(), st.integers(), TEXTS, TEXTS, TEXTS, st.none() | TEXTS, TEXTS, NAMES, TEXTS)
CLONES = st.builds(ClonePlan, TEXTS, st.none() | TEXTS, TEXTS, TEXTS, TEXTS, st.none() | st.integers(), st.booleans())
LINKED = st.builds(
    LinkedGit, TEXTS, st.sampled_from(["worktree", "submodule"]), TEXTS, st.booleans(), st.none() | TEXTS, TEXTS
)
SOURCES = st.lists(st.builds(CredentialSource, TEXTS, TEXTS, TEXTS, TEXTS, st.booleans()), max_size=2).map(tuple)
SECRET = "sk-ant-0123456789-never-to-be-written"
FIRST_RUNS = st.lists(st.builds(FirstRunSource, TEXTS, TEXTS, TEXTS, st.just(SECRET)), max_size=2).map(tuple)
RESOURCES: dict[str, st.SearchStrategy[Any]] = {
    "clone": CLONES,
    "token": TOKENS,
    "login": st.builds(LoginPlan, TEXTS, TEXTS, TEXTS),
    "credentials": st.builds(CredentialsPlan, SOURCES, FIRST_RUNS, st.none() | TEXTS, TEXTS),
    "history": HISTORIES,
    "guard": st.builds(GuardPlan, TEXTS, TEXTS),
    "git_identity": st.builds(GitIdentityPlan, NAMES),
    "certificates": st.builds(CertificatesPlan, TEXTS, st.integers(), TEXTS),
    "guest": st.builds(GuestPlan, TEXTS),
    "gateway": st.builds(
        GatewayPlan,
        TEXTS,
        LINES,
        LINES,
        LINES,
        st.lists(st.builds(HeldKey, TEXTS, TEXTS, TEXTS, LINES, TEXTS, TEXTS), max_size=2).map(tuple),
        st.integers(),
    ),
}
PLANS = st.builds(
    SandboxPlan,
    session=TEXTS, source=st.sampled_from(["host_mount", "github_clone", "none"]), container=CONTAINERS,
    keep=st.sampled_from(["always", "never", "when_unsaved"]), runtime_dir=TEXTS, files_dir=TEXTS,
    workspace=st.none() | MOUNTS, linked_git=st.none() | LINKED, image_agent=st.none() | st.just("claude"),
    files=st.lists(st.builds(OwnFile, TEXTS, TEXTS, st.booleans()), max_size=2).map(tuple),
    resources=st.fixed_dictionaries({}, optional=RESOURCES), notes=LINES, limit_origins=NAMES,
)  # fmt: skip


def test_every_resource_has_one_plan_that_describes_itself() -> None:
    assert RESOURCES.keys() == EVERY.keys()
    names = {name: resource_kind(name).__name__ for name in EVERY}
    assert names == {
        "clone": "ClonePlan",
        "token": "TokenPlan",
        "guard": "GuardPlan",
        "login": "LoginPlan",
        "credentials": "CredentialsPlan",
        "history": "HistoryPlan",
        "git_identity": "GitIdentityPlan",
        "certificates": "CertificatesPlan",
        "guest": "GuestPlan",
        "gateway": "GatewayPlan",
    }
    with pytest.raises(NotAPlan, match="no resource 'proxy'"):
        resource_kind("proxy")


def without_secrets(plan: SandboxPlan) -> SandboxPlan:
    resources = dict(plan.resources)
    if "credentials" in resources:
        found = resources["credentials"]
        assert isinstance(found, CredentialsPlan)
        public = tuple(dataclasses.replace(source, approved_key=None) for source in found.first_run)
        resources["credentials"] = dataclasses.replace(found, first_run=public)
    return dataclasses.replace(plan, resources=resources, notes=())


@given(PLANS)
def test_it_is_read_back_without_secrets(plan: SandboxPlan) -> None:
    text = json.dumps(public_part(plan))
    assert SECRET not in text
    assert plan_from(json.loads(text)) == without_secrets(plan)


@given(PLANS, st.data())
def test_a_plan_in_which_something_was_changed_is_another_plan_or_none(plan: SandboxPlan, data: st.DataObject) -> None:
    document = json.loads(json.dumps(public_part(plan)))
    name = data.draw(st.sampled_from([*document, "more"]))
    document[name] = data.draw(st.sampled_from([None, 1, True, "x", [], {}, [1], {"x": 1}, [["x", 1]]]))
    try:
        found = plan_from(document)
    except NotAPlan:
        return
    assert json.loads(json.dumps(public_part(found))) == document


# Written by the code of commit 155ded9, the last one before own logins, ports and other sources of tokens.
EARLIER = json.loads(Path(__file__).with_name("golden").joinpath("plans-155ded9.json").read_bytes())


@pytest.mark.parametrize("source", ["host_mount", "github_clone"])
def test_a_plan_of_an_earlier_podbot_is_read(source: str) -> None:
    plan = plan_from(EARLIER[source])
    known = facts(credentials=(CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude"),))
    assert all(resource.agrees_with(plan, known) for resource in plan.resources.values())
    token, credentials = plan.find(TokenPlan), plan.find(CredentialsPlan)
    assert token is not None
    assert credentials is not None
    assert (token.auth, credentials.own, plan.container.ports) == ("app", "", ())
    assert plan.find(ClonePlan) is None or plan.find(ClonePlan).auth == "app"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("path", "name"),
    [((), "session"), (("container",), "security"), (("resources", "token"), "repo"), (("container",), "capacity")],
    ids=["session", "security", "repo", "unknown"],
)
def test_a_plan_without_a_needed_field_or_with_an_unknown_one_is_refused(path: tuple[str, ...], name: str) -> None:
    document = json.loads(json.dumps(EARLIER["host_mount"]))
    inner = document
    for above in path:
        inner = inner[above]
    if inner.pop(name, None) is None:
        inner[name] = 1
    with pytest.raises(NotAPlan, match="does not have the fields"):
        plan_from(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("session",), 1),
        (("keep",), "sometimes"),
        (("keep",), ["always"]),
        (("container", "mounts"), {}),
        (("container", "mounts"), [["a", "b", False, False]]),
        (("container", "security", "privileged"), 1),
        (("container", "limits", "pids"), True),
        (("container", "link"), ["/workspace"]),
        (("container", "labels"), {"a": 1}),
        (("container", "labels"), [["a", "b"]]),
        (("container",), None),
        (("resources",), None),
        (("resources",), {"gateway": {}}),
        (("resources",), {"guest": {"directory": 1}}),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_position(path: tuple[str, ...], value: object) -> None:
    spec = ContainerSpec("c", "i", "o", {}, (), Security())
    document: Any = json.loads(json.dumps(public_part(SandboxPlan("s", "host_mount", spec, "always", "/r", "/f"))))
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(NotAPlan, match=rf"plan\.{path[0]}|gateway"):
        plan_from(document)


def test_a_value_that_does_not_belong_to_a_plan_is_not_written() -> None:
    spec = ContainerSpec("c", "i", "o", {}, (), Security(devices={"x"}))  # type: ignore[arg-type] # on purpose
    with pytest.raises(TypeError, match="set cannot be stored in a record"):
        public_part(SandboxPlan("s", "host_mount", spec, "always", "/r", "/f"))
