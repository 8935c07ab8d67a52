from __future__ import annotations

import dataclasses
import re
from pathlib import PurePosixPath
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.remedies import remedy_of
from podbot.container_spec import Mount
from podbot.errors import InvalidValue, MissingRequired, MountRefused
from podbot.launch.mount_paths import normal_target
from podbot.launch.mounts import MountPlan, check_configured_paths, plan_mounts, workspace_target
from podbot.launch.refused_paths import own_places, within
from podbot.launch.types import LaunchRequest, PathFacts
from tests.launch.build import FLAG, config, directory, facts, typed

TYPED = typed()
UNTYPED = LaunchRequest()


def refused(path: str, *, request: LaunchRequest | None = None, **changes: Any) -> MountRefused:
    with pytest.raises(MountRefused) as caught:
        plan_mounts(config(), request or typed(), facts(workspace=directory(path), **changes))
    return caught.value


def accepted(path: str, *, request: LaunchRequest | None = None, **changes: Any) -> Mount:
    return plan_mounts(config(), request or typed(), facts(workspace=directory(path), **changes)).workspace


# --- the refusal list ---

REFUSED = [
    "/", "/home", "/home/ann", "/root", "/home/bob",
    "/etc", "/etc/nginx", "/proc", "/proc/1/root", "/sys", "/dev", "/dev/shm", "/run", "/run/user/1000",
    "/run/user/1000/w", "/var/run", "/var/run/x",
    "/boot", "/boot/efi", "/bin", "/sbin", "/lib", "/lib64", "/usr", "/usr/bin", "/usr/lib/x",
    "/usr/local/bin", "/var", "/var/lib", "/var/lib/containers/storage", "/var/lib/docker",
    *(f"/home/ann/{name}" for name in (
        ".ssh", ".ssh/keys", ".gnupg", ".aws", ".config/gh", ".config", ".kube", ".docker", ".claude", ".claude/x",
        ".codex", ".config/gcloud", ".azure", ".netrc", ".password-store", ".gemini", ".local/share/opencode",
        ".config/containers", ".local/share/containers/storage", ".local", ".config/podbot", ".config/systemd/user",
    )),
    "/root/.ssh", "/home/bob/.aws", "/var/home/bob", "/var/home/bob/.ssh/x", "/Users/bob/.gnupg",
]  # fmt: skip


@pytest.mark.parametrize("path", REFUSED)
@pytest.mark.parametrize("trusted", [True, False])
def test_refused_even_when_typed_or_inside_an_allowed_root(path: str, trusted: bool) -> None:
    request = typed() if trusted else UNTYPED
    error = refused(path, request=request, allowed_roots=(directory("/"),))
    assert error.path == path
    assert error.reason.startswith(("it is ", "it contains ", "it is inside "))
    assert error.hint


ACCEPTED = [
    "/home/ann/src/proj", "/home/ann/src/.docker", "/home/ann/src/.config/nvim", "/optional",
    "/home/bob/proj", "/root/project", "/srv/app", "/etcetera", "/var/tmp/x", "/var/srv/app",
    "/runner/w", "/var/www/site", "/usr/src/app",
    "/tmp/x", "/homework", "/var/home/ann/p", "/mnt/c/code", "/usr/local/src/p",
]  # fmt: skip


@pytest.mark.parametrize("path", ACCEPTED)
def test_a_path_that_only_resembles_a_refused_path_is_allowed(path: str) -> None:
    assert accepted(path) == Mount(path, path)


def test_root_whose_home_is_root() -> None:
    assert accepted("/root/project", home="/root").source == "/root/project"
    assert "a home directory" in refused("/root", home="/root").reason
    assert "/root/.claude" in refused("/root/.claude/projects", home="/root").reason


def test_a_home_at_the_root_of_the_file_system_does_not_forbid_everything() -> None:
    assert accepted("/srv/app", home="/").source == "/srv/app"
    assert "whole file system" in refused("/", home="/").reason


def test_the_engines_socket_is_never_mounted() -> None:
    for path in ("/srv/engine", "/srv"):
        assert "engine's socket" in refused(path, engine_socket_dir="/srv/engine").reason
    # A socket in /tmp must not forbid every project below /tmp: those do not contain it.
    assert accepted("/srv/engine/project", engine_socket_dir="/srv/engine").source == "/srv/engine/project"
    assert accepted("/srv/engine", engine_socket_dir=None).source == "/srv/engine"


def test_podbots_own_directories_are_refused() -> None:
    for path in ("/tmp/runtime-0/podbot/s1/secrets", "/tmp/runtime-0/podbot", "/tmp/runtime-0"):
        assert "podbot's runtime directory" in refused(path, runtime_dir="/tmp/runtime-0/podbot").reason
    env = {"XDG_CONFIG_HOME": "/srv/conf"}
    for path in ("/srv/conf/podbot", "/srv/conf", "/srv/conf/podbot/x"):
        assert "podbot's configuration" in refused(path, env=env).reason
    assert accepted("/srv/conf/other", env=env).source == "/srv/conf/other"
    for path in ("/srv/state/podbot/gitconfig", "/srv/state/podbot", "/srv/state"):
        assert "podbot's state" in refused(path, state_dir="/srv/state/podbot").reason


def test_parents_of_homes_are_always_refused() -> None:
    for path in ("/home", "/var/home", "/Users"):
        assert "home" in refused(path, home="/root").reason
    assert accepted("/home/ann/src/other", home="/root").source == "/home/ann/src/other"


def test_the_target_of_a_protected_link_is_refused() -> None:
    protected = ("/data/keys",)
    for path in ("/data", "/data/keys", "/data/keys/x"):
        assert "target of a link" in refused(path, protected=protected).reason
    assert accepted("/data/keysmith", protected=protected).source == "/data/keysmith"


def test_own_places_do_not_read_the_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert "/home/ann/.config/podbot" in [place.path for place in own_places(facts())]


# --- containment and trust ---


def test_a_path_that_was_not_typed_needs_an_allowed_root() -> None:
    error = refused("/srv/ab", request=UNTYPED, allowed_roots=(directory("/srv/a"),))
    assert "workspace.allowed_roots" in error.reason
    assert error.hint == (
        "Add it or a parent of it to workspace.allowed_roots; or, if you chose the path yourself, pass"
        " LaunchRequest(trusted_workspace=True)."
    )
    assert remedy_of(error).endswith("allowed_roots; or name it on the command line (`--workspace PATH`).")
    assert error.origin == "config file /home/ann/.config/podbot/config.toml"
    for path in ("/srv/a", "/srv/a/b"):
        assert accepted(path, request=UNTYPED, allowed_roots=(directory("/srv/a"),)).source == path
    assert "allowed_roots" in refused("/srv/a", request=UNTYPED, allowed_roots=()).reason


def test_a_root_that_is_not_a_directory_allows_nothing() -> None:
    roots = (PathFacts("/srv/a", "/srv/a", "missing"), PathFacts("/srv/a", "/srv/a", "other"))
    assert "allowed_roots" in refused("/srv/a/b", request=UNTYPED, allowed_roots=roots).reason


def test_a_link_that_leaves_the_roots_is_checked_by_its_target() -> None:
    made = facts(workspace=PathFacts("/srv/a/link", "/srv/secret", "directory"), allowed_roots=(directory("/srv/a"),))
    with pytest.raises(MountRefused) as caught:
        plan_mounts(config(), UNTYPED, made)
    assert caught.value.path == "/srv/secret, from /srv/a/link"


def test_a_typed_path_does_not_allow_extra_mounts_in_it() -> None:
    made = config({"sandbox.extra_mounts": ("/home/ann/src/proj/x:/x",)})
    with pytest.raises(MountRefused, match="allowed_roots"):
        plan_mounts(made, typed(), facts(extra_mounts=(directory("/home/ann/src/proj/x"),)))


@pytest.mark.parametrize(
    ("kind", "words"),
    [("missing", "no such directory"), ("other", "not a directory"), ("unreadable", "may not open")],
)
def test_a_source_must_be_an_existing_directory(kind: Literal["missing", "other", "unreadable"], words: str) -> None:
    with pytest.raises(MountRefused) as caught:
        plan_mounts(
            config(origins={"workspace.host_path": FLAG}), typed(), facts(workspace=PathFacts("p", "/srv/p", kind))
        )
    assert words in caught.value.reason
    assert caught.value.path == "/srv/p, from p"
    assert caught.value.origin == "flag --workspace"


def test_no_workspace_at_all() -> None:
    with pytest.raises(MissingRequired, match=r"set workspace\.host_path"):
        plan_mounts(config(), typed(), facts(workspace=None))


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\0b", "a\u202eb", "a\udc80b", "a\x85b"])
def test_a_name_that_a_terminal_or_json_cannot_represent(name: str) -> None:
    error = refused(f"/srv/{name}")
    assert "control character" in error.reason
    assert str(error).isprintable()


@pytest.mark.parametrize("name", ["a b", "a:b", "a,b", "ü", "日本\u3000", "$(x)", "a\\b", 'a"b'])
def test_names_that_the_engine_can_mount(name: str) -> None:
    assert accepted(f"/srv/{name}").source == f"/srv/{name}"


# --- targets ---


@pytest.mark.parametrize(
    "target",
    [
        "", "workspace", "./x", "/", "//", "/root", "/root/", "/root/.claude", "/root/.claude.json", "/root/.config",
        "/proc", "/proc/x", "/sys/fs", "/dev/shm", "/run", "/run/secrets", "/etc", "/etc/x", "//etc///x", "/usr",
        "/usr/bin", "/bin", "/lib64", "/var", "/var/run/x", "/var/lib/containers/storage", "/boot", "/workspace/../etc",
        "/workspace/.", "/a\0", "/a\n",
    ],
)  # fmt: skip
def test_targets_that_are_refused(target: str) -> None:
    with pytest.raises(MountRefused) as caught:
        normal_target(target, "config file x")
    assert caught.value.origin == "config file x"
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("target", "normal"),
    [
        ("/workspace", "/workspace"),
        ("//a///b/", "/a/b"),
        ("/root/p", "/root/p"),
        ("/runner", "/runner"),
        ("/...", "/..."),
    ],
)
def test_targets_that_are_normalised(target: str, normal: str) -> None:
    assert normal_target(target, "default") == normal


def test_container_path_host_mounts_at_the_hosts_path() -> None:
    made = config({"workspace.container_path": "host", "workspace.read_only": True})
    workspace = plan_mounts(made, typed(), facts(workspace=directory("/srv/real", "/srv/link"))).workspace
    assert workspace == Mount("/srv/real", "/srv/real", read_only=True)


@pytest.mark.parametrize("source", ["/etc/w", "/usr/lib/w"])
def test_target_rules_apply_to_the_same_path_too(source: str) -> None:
    """Today every reserved target is also a refused source; the rule must not depend on that."""
    with pytest.raises(MountRefused, match="same path as on the host"):
        workspace_target(config({"workspace.container_path": "host"}), source)


def test_a_workspace_is_mounted_at_the_hosts_path_unless_a_key_changes_it() -> None:
    """Issue 10.9."""
    made = plan_mounts(config(), TYPED, facts())
    assert (made.workspace.target, made.link) == ("/home/ann/src/proj", ("/workspace", "/home/ann/src/proj"))
    for chosen in ("/workspace", "/code"):
        made = plan_mounts(config({"workspace.container_path": chosen}), TYPED, facts())
        assert (made.workspace.target, made.link, made.places) == (chosen, None, (chosen,))


def test_the_error_names_the_key_when_the_workspace_cannot_be_at_its_own_path() -> None:
    with pytest.raises(MountRefused) as caught:
        workspace_target(config(), "/etc/w")
    assert 'workspace.container_path = "/workspace"' in caught.value.hint
    with pytest.raises(
        MountRefused, match=r"refused to mount anything at /etc \(workspace.container_path, config file "
    ):
        workspace_target(config({"workspace.container_path": "/etc"}), "/home/ann/src/proj")


# --- the link /workspace ---


def test_the_link_is_reported_as_a_second_name_and_trusted() -> None:
    made = plan_mounts(config(), typed(), facts())
    path = "/home/ann/src/proj"
    assert made.notes == (f"mounting {path} at {path} and at /workspace (read-write)",)
    assert made.places == (path, "/workspace")


@pytest.mark.parametrize("path", ["/workspace", "/workspace/shop"])
def test_there_is_no_link_when_the_host_has_its_own_workspace_directory(path: str) -> None:
    made = plan_mounts(config(), typed(), facts(workspace=directory(path)))
    assert (made.link, made.places) == (None, (path,))
    assert ("the mount at /workspace/shop is in the way" in "".join(made.notes)) == (path != "/workspace")


def test_a_workspace_at_that_path_needs_no_link() -> None:
    made = linked("/workspace")
    assert (made.link, made.places) == (None, (REAL, "/workspace"))
    assert len(made.mounts) == 2


@pytest.mark.parametrize("target", ["/workspace", "/workspace/reference"])
def test_an_extra_mount_at_that_path_replaces_the_link(target: str) -> None:
    made = plan_mounts(
        config({"sandbox.extra_mounts": (f"/srv/a:{target}",)}),
        typed(),
        facts(extra_mounts=(directory("/srv/a"),), allowed_roots=(directory("/srv"),)),
    )
    assert made.link is None
    assert made.notes[-1] == f"inside, /workspace is not the workspace: the mount at {target} is in the way"


# --- the workspace under the name that a link gives it ---

REAL, LINKED = "/var/home/ann/proj", "/home/ann/proj"


def mounted(plan: MountPlan) -> tuple[Mount, tuple[Mount, ...], tuple[str, ...]]:
    return plan.workspace, plan.mounts, plan.places


def linked(
    spelled: str | None = LINKED, values: dict[str, Any] | None = None, request: LaunchRequest = TYPED, **changes: Any
) -> MountPlan:
    found = PathFacts(".", REAL, "directory", spelled)
    return plan_mounts(config(values), request, facts(workspace=found, **changes))


@pytest.mark.parametrize("read_only", [False, True])
def test_a_workspace_that_was_opened_through_a_link_is_at_both_its_names(read_only: bool) -> None:
    made = linked(values={"workspace.read_only": read_only})
    real, second = Mount(REAL, REAL, read_only), Mount(REAL, LINKED, read_only)
    note = f"mounting {REAL} at {LINKED} and at {REAL} and at /workspace ({'read-only' if read_only else 'read-write'})"
    places = (REAL, LINKED, "/workspace")
    assert made == MountPlan(real, (second, real), places, (note,), link=("/workspace", REAL))


def test_only_where_the_workspace_has_the_hosts_path() -> None:
    assert linked().places == linked(request=typed()).places == (REAL, LINKED, "/workspace")
    for target in ("/workspace", REAL):
        assert linked(values={"workspace.container_path": target}).mounts == (Mount(REAL, target),)
    assert mounted(linked(None)) == (Mount(REAL, REAL), (Mount(REAL, REAL),), (REAL, "/workspace"))


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ("/etc/proj", "it is inside /etc"),
        ("/run/proj", "it is inside /run"),
        ("/usr", "it contains /usr/"),
        ("/var", "it contains /var/"),
        ("/", "the sandbox's whole file system"),
        ("/root", "the agent's home"),
        ("/root/.claude/proj", "it is inside /root/.claude"),
        ("/root/.config", "it contains /root/.config/"),
        ("/usr/local/lib/proj", "it is inside /usr/local/lib"),
        (f"{REAL}/again", f"its mount at {REAL} is in the way"),
        ("/var/home/ann", f"its mount at {REAL} is in the way"),
        ("/srv/a\u202eb", "control character"),
        ("/srv/\udc80", "UTF-8"),
        ("/srv/../etc", "must not contain '.' or '..'"),
    ],
)
def test_a_name_where_nothing_may_be_mounted_is_omitted_and_reported(spelled: str, reason: str) -> None:
    made = linked(spelled)
    assert mounted(made) == mounted(linked(None))
    _, note = made.notes
    assert note.startswith("inside, the workspace is not also mounted at ")
    assert reason in note
    assert note.isprintable()


@pytest.mark.parametrize(
    "target", [LINKED, f"{LINKED}/secrets", "/home/ann", "/home", f"{REAL}/secrets", f"{REAL}/a/b"]
)
def test_a_mount_over_a_part_of_the_workspace_cannot_be_bypassed(target: str) -> None:
    """A part that an operator covers with an empty directory must not be visible under the other name."""
    more: dict[str, Any] = {
        "values": {"sandbox.extra_mounts": (f"/srv/empty:{target}:ro",)},
        "extra_mounts": (directory("/srv/empty"),),
        "allowed_roots": (directory("/srv"),),
    }
    made = linked(**more)
    assert mounted(made) == mounted(linked(None, **more))
    assert made.notes[-1] == (
        f"inside, the workspace is not also mounted at {LINKED}: the mount at {target} is in the way"
    )


@pytest.mark.parametrize("target", ["/home/ann/project", "/home/bob", "/var/home", "/var/home/ann", "/reference"])
def test_a_mount_next_to_it_does_not_interfere(target: str) -> None:
    made = linked(
        values={"sandbox.extra_mounts": (f"/srv/ref:{target}",)},
        extra_mounts=(directory("/srv/ref"),),
        allowed_roots=(directory("/srv"),),
    )
    assert made.places == (REAL, LINKED, "/workspace")
    assert (len(made.mounts), len(made.notes)) == (3, 2)


# --- extra mounts ---


def test_extra_mounts_come_with_parents_first() -> None:
    made = config({"sandbox.extra_mounts": ("/srv/c:/z/c/d", "/srv/b:/z/c:ro", "/srv/a:/a")})
    found = tuple(directory(f"/srv/{name}") for name in "cba")
    plan = plan_mounts(made, typed(), facts(extra_mounts=found, allowed_roots=(directory("/srv"),)))
    assert plan.workspace == Mount("/home/ann/src/proj", "/home/ann/src/proj")
    assert plan.mounts == (
        Mount("/srv/a", "/a"),
        plan.workspace,
        Mount("/srv/b", "/z/c", read_only=True),
        Mount("/srv/c", "/z/c/d"),
    )


def test_two_mounts_never_share_a_target() -> None:
    made = config({"sandbox.extra_mounts": ("/srv/a://home/ann//src/proj/",)})
    with pytest.raises(MountRefused, match="two mounts"):
        plan_mounts(made, typed(), facts(extra_mounts=(directory("/srv/a"),), allowed_roots=(directory("/srv"),)))


def test_extra_mounts_follow_the_list_of_refused_paths() -> None:
    made = config({"sandbox.extra_mounts": ("~/.ssh:/keys",)})
    with pytest.raises(MountRefused, match="credentials"):
        plan_mounts(
            made,
            typed(),
            facts(extra_mounts=(directory("/home/ann/.ssh", "~/.ssh"),), allowed_roots=(directory("/home/ann"),)),
        )


# --- properties ---

COMPONENTS = st.sampled_from(
    ["home", "ann", "bob", "root", ".ssh", ".config", "gh", ".claude", "etc", "run", "var", "lib", "usr", "bin", "srv",
     "a", "ab", "engine", "podbot", "secret", "proc", "src", "Users", "containers"]
)  # fmt: skip
PATHS = st.lists(COMPONENTS | st.text(alphabet="ab.", min_size=3, max_size=4), max_size=5).map(
    lambda parts: "/" + "/".join(parts)
)
# The contract's own list, compared by pathlib: neither the data nor the comparison of the code under test.
TREES = ["/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/srv/podbot", "/srv/secret"] + [
    f"{home}/{name}"
    for home in ("/home/ann", "/root", "/home/bob")
    for name in (".ssh", ".gnupg", ".aws", ".config/gh", ".kube", ".docker", ".claude", ".codex", ".config/podbot")
]
POINTS = ["/", "/home/ann", "/root", "/home/bob", "/srv/engine"]


def lies_in(inner: str, outer: str) -> bool:
    return PurePosixPath(inner).is_relative_to(PurePosixPath(outer))


@given(PATHS, PATHS, PATHS, st.booleans())
def test_no_plan_ever_contains_a_refused_path(path: str, extra: str, root: str, trusted: bool) -> None:
    made = config({"sandbox.extra_mounts": (f"{extra}:/extra",)})
    host = facts(
        workspace=directory(path),
        extra_mounts=(directory(extra),),
        allowed_roots=(directory(root),),
        runtime_dir="/srv/podbot",
        engine_socket_dir="/srv/engine",
        protected=("/srv/secret",),
    )
    try:
        plan = plan_mounts(made, LaunchRequest(trusted_workspace=trusted), host)
    except MountRefused:
        return
    assert plan.workspace in plan.mounts
    for mount in plan.mounts:
        assert not any(lies_in(mount.source, tree) for tree in TREES)
        assert not any(lies_in(place, mount.source) for place in TREES + POINTS)
        assert lies_in(mount.source, root) or (trusted and mount is plan.workspace)


UNTOUCHED = ["/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot", "/usr/bin", "/usr/lib", "/root/.claude",
             "/root/.codex", "/root/.ssh", "/root/.config/gh", "/var/lib/containers"]  # fmt: skip


@given(PATHS, PATHS, PATHS, PATHS, st.booleans(), st.booleans())
def test_a_second_name_follows_the_rules_for_targets(  # noqa: PLR0917 - drawn by hypothesis
    real: str, spelled: str, extra: str, target: str, read_only: bool, with_extra: bool
) -> None:
    mounted = {"sandbox.extra_mounts": (f"{extra}:{target}",) if with_extra else ()}
    made = config({"workspace.read_only": read_only} | mounted)
    host = facts(
        workspace=PathFacts(spelled, real, "directory", None if spelled == real else spelled),
        extra_mounts=(directory(extra),) if with_extra else (),
        allowed_roots=(directory("/"),),
    )
    alone = dataclasses.replace(host, workspace=directory(real))
    try:
        before = plan_mounts(made, TYPED, alone)
    except MountRefused as refusal:
        with pytest.raises(MountRefused, match=re.escape(refusal.reason)):
            plan_mounts(made, TYPED, host)
        return
    found = plan_mounts(made, TYPED, host)
    for mount in found.mounts:
        assert mount.target not in ("/", "/root")
        assert not any(lies_in(mount.target, place) or lies_in(place, mount.target) for place in UNTOUCHED)
    second = [mount for mount in found.mounts if mount not in before.mounts]
    assert [mount for mount in found.mounts if mount in before.mounts] == list(before.mounts)
    left_out = any("not also mounted" in note for note in found.notes)
    assert bool(second) == (not left_out and spelled != real)
    assert found.places == (real, *(m.target for m in second), *((found.link[0],) if found.link else ()))
    for mount in second:
        assert mount == Mount(real, spelled, read_only)
        assert found.workspace == Mount(real, real, read_only)
        for other in before.mounts:
            assert not lies_in(other.target, mount.target)
            assert not lies_in(mount.target, other.target)
            assert other == before.workspace or not lies_in(other.target, real)


@given(PATHS)
def test_a_typed_path_is_refused_only_by_the_lists(path: str) -> None:
    """Trust adds the path as a root: a refusal then always names a refused path, and never the roots."""
    reason = None
    try:
        plan_mounts(config(), typed(), facts(workspace=directory(path)))
    except MountRefused as error:
        reason = error.reason
    assert reason is None or reason.startswith(("it is ", "it contains ", "it is inside /"))


@given(PATHS, PATHS)
def test_containment_compares_components(inner: str, outer: str) -> None:
    assert within(inner, outer) == lies_in(inner, outer)


@given(st.text(max_size=30) | PATHS.map(lambda path: path + "//"))
def test_a_target_is_absolute_normal_and_outside_the_reserved_paths(text: str) -> None:
    try:
        target = normal_target(text, "default")
    except MountRefused:
        return
    assert target == str(PurePosixPath("/", *[part for part in text.split("/") if part]))
    assert ".." not in target.split("/")
    assert not any(lies_in(target, tree) for tree in ("/proc", "/sys", "/dev", "/run", "/etc", "/root/.ssh"))
    assert target not in {"/", "/root"}
    assert normal_target(target, "default") == target


@given(st.lists(PATHS.map(lambda path: "/t" + path.rstrip("/")), min_size=1, max_size=5, unique=True))
def test_a_parent_target_always_comes_before_targets_below_it(targets: list[str]) -> None:
    made = config({"sandbox.extra_mounts": tuple(f"/srv/a:{target}" for target in targets)})
    host = facts(extra_mounts=(directory("/srv/a"),) * len(targets), allowed_roots=(directory("/srv"),))
    mounts = plan_mounts(made, typed(), host).mounts
    ordered = [mount.target for mount in mounts]
    assert len(set(ordered)) == len(ordered) == len(targets) + 1
    for index, target in enumerate(ordered):
        assert not any(lies_in(target, later) for later in ordered[index + 1 :])


def test_facts_are_not_changed_by_planning() -> None:
    host = facts()
    plan_mounts(config(), typed(), host)
    assert host == dataclasses.replace(facts())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"workspace.host_path": "src/shop"}, "workspace.host_path (config file "),
        (
            {"workspace.container_path": "/etc"},
            "refused to mount anything at /etc (workspace.container_path, config file ",
        ),
        ({"workspace.container_path": "/a/../etc"}, "a target must not contain"),
    ],
)
def test_paths_that_no_session_accepts_are_refused_before_one_is_planned(values: dict[str, str], words: str) -> None:
    with pytest.raises((InvalidValue, MountRefused)) as caught:
        check_configured_paths(config(values))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [{}, {"workspace.host_path": None}, {"workspace.host_path": "~/src"}, {"workspace.container_path": "/workspace"}],
)
def test_other_paths_are_not(values: dict[str, Any]) -> None:
    check_configured_paths(config(values))
