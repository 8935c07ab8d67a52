"""The repository for which a session gets a token, and the data that the token is made from."""

from __future__ import annotations

import dataclasses
import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.models import Origin
from podbot.container_spec import Mount
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired
from podbot.launch.describe import describe
from podbot.launch.plan import plan_session
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.token import TokenPlan
from podbot.launch.types import LaunchPlan, LaunchRequest, RepositoryFacts, SessionSubcommand
from podbot.session.plan_json import public_part
from tests.launch.build import config, facts, resource, text_of, typed

APP = {
    "github.app_id": 12345,
    "github.installation_id": 67890,
    "github.private_key_path": "/home/ann/.config/podbot/app.pem",
}
ACCESS = typed(github_access="octo/shop")
CLONING = {"workspace.source": "github_clone"}
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def plan(values: dict[str, Any] | None = None, request: LaunchRequest = ACCESS, **found: Any) -> LaunchPlan:
    return plan_session(config(APP | (values or {})), request, facts(**found))


@pytest.mark.parametrize("subcommand", ["run", "host"])
def test_a_mounted_workspace_with_a_token(subcommand: SessionSubcommand) -> None:
    made = plan_session(config(APP), typed(github_access="octo/shop"), facts(), subcommand)
    assert made.sandbox.find(ClonePlan) is None
    assert made.sandbox.workspace is not None
    assert (resource(made, TokenPlan).repo, resource(made, TokenPlan).server) == (
        "octo/shop",
        "https://github.com",
    )
    assert resource(made, TokenPlan).permissions == {
        "contents": "write",
        "pull_requests": "write",
        "metadata": "read",
    }
    secrets = f"{made.sandbox.runtime_dir}/secrets"
    assert resource(made, TokenPlan).secrets_dir == secrets
    assert Mount(secrets, "/run/secrets", read_only=True) in made.sandbox.container.files
    assert "/run/podbot/askpass" in [file.target for file in made.sandbox.container.files]
    assert text_of(made, "/run/podbot/askpass")
    env = made.sandbox.container.env
    assert (env["GIT_ASKPASS"], env["GIT_TERMINAL_PROMPT"]) == ("/run/podbot/askpass", "0")
    assert (env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_VALUE_0"]) == ("credential.https://github.com.helper", "")
    levels = "contents: write, metadata: read, pull_requests: write"
    assert f"the agent gets a GitHub token for octo/shop ({levels})" in made.sandbox.notes
    assert not any("cloning" in note for note in made.sandbox.notes)
    assert made.sandbox.keep == "never"


def test_labels_distinguish_a_clone_from_access() -> None:
    labels = plan().sandbox.container.labels
    assert (labels["io.podbot.repo"], labels["io.podbot.access"]) == ("", "octo/shop")
    assert labels["io.podbot.path"] == "/home/ann/src/proj"
    labels = plan(CLONING, LaunchRequest(repo="octo/shop")).sandbox.container.labels
    assert (labels["io.podbot.repo"], labels["io.podbot.access"]) == ("octo/shop", "octo/shop")


def test_without_a_request_there_is_no_token() -> None:
    made = plan(request=typed())
    assert made.sandbox.find(TokenPlan) is None
    assert "/run/podbot/askpass" not in [file.target for file in made.sandbox.files]
    assert not {"GIT_ASKPASS", "GIT_CONFIG_COUNT"} & set(made.sandbox.container.env)
    assert "/run/secrets" not in [file.target for file in made.sandbox.container.files]


SIGNS = RepositoryFacts(settings=(("commit.gpgsign", "true"),))


def test_a_repository_that_signs_its_commits_does_not_inside() -> None:
    made = plan(request=typed(), repository=SIGNS).sandbox.container.env
    names = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0")
    assert [made[name] for name in names] == ["1", "commit.gpgsign", "false"]
    proxy = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.proxy", "GIT_CONFIG_VALUE_0": "http://proxy:3128"}
    theirs = plan({"sandbox.env": MappingProxyType(proxy)}, request=typed(), repository=SIGNS).sandbox.container.env
    assert [theirs[name] for name in names] == ["2", "http.proxy", "http://proxy:3128"]
    assert theirs["GIT_CONFIG_KEY_1"] == "commit.gpgsign"


def test_with_a_token_no_credential_helper_is_asked_either() -> None:
    made = plan(repository=SIGNS).sandbox.container.env
    pairs = {made[f"GIT_CONFIG_KEY_{number}"]: made[f"GIT_CONFIG_VALUE_{number}"] for number in range(2)}
    assert made["GIT_CONFIG_COUNT"] == "2"
    assert pairs == {"credential.https://github.com.helper": "", "commit.gpgsign": "false"}


def test_a_clone_has_its_own_token() -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan(CLONING, LaunchRequest(repo="octo/shop", github_access="octo/other"))
    assert caught.value.field == "repository"
    assert "is for a mounted workspace, and octo/shop is cloned" in str(caught.value)
    assert "github.auth chooses the source" in caught.value.remedy


def test_access_without_any_source_of_tokens_is_refused() -> None:
    with pytest.raises(MissingRequired, match=r"github\.auth is required") as caught:
        plan_session(config(), ACCESS, facts())
    assert all(way in caught.value.hint for way in ('"gh"', '"env:NAME"', "a GitHub App"))


def test_access_with_the_source_none_is_refused() -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan({"github.auth": "none"})
    assert caught.value.field == "github.auth"


@pytest.mark.parametrize("app", [True, False], ids=["App-configured", "no-App"])
def test_a_clone_without_a_token_says_that_pushing_needs_one(app: bool) -> None:
    values = {**CLONING, "github.auth": "none", **(APP if app else {})}
    made = plan_session(config(values), LaunchRequest(repo="octo/shop"), facts())
    assert made.sandbox.find(TokenPlan) is None
    assert resource(made, ClonePlan).auth == "none"
    assert made.sandbox.container.labels["io.podbot.access"] == ""
    assert "/run/secrets" not in [mount.target for mount in made.sandbox.container.files]
    assert made.sandbox.container.env["GIT_TERMINAL_PROMPT"] == "0"
    (note,) = [note for note in made.sandbox.notes if "without a token" in note]
    assert note.startswith("octo/shop is cloned without a token, which works if it is public; to push, set github.auth")


def test_without_an_app_a_clone_needs_no_token() -> None:
    made = plan_session(config(CLONING), LaunchRequest(repo="octo/shop"), facts())
    assert (resource(made, ClonePlan).auth, made.sandbox.find(TokenPlan)) == ("none", None)


def test_the_gh_login_replaces_a_configured_app() -> None:
    made = plan({"github.auth": "gh", "github.permissions": {"contents": "read"}})
    token = resource(made, TokenPlan)
    assert (token.auth, token.app_id, token.private_key_path, dict(token.permissions)) == ("gh", 0, "", {})
    assert Mount(token.secrets_dir, "/run/secrets", read_only=True) in made.sandbox.container.files
    assert text_of(made, "/run/podbot/askpass")
    notes = "\n".join(made.sandbox.notes)
    assert "the agent gets the token of your `gh` login for https://github.com" in notes
    assert "in all repositories" in notes
    assert "github.permissions" in notes


def test_a_variables_token_is_carried_and_never_shown() -> None:
    known = facts(env={"MINE": TOKEN})
    made = plan_session(config({**CLONING, "github.auth": "env:MINE"}), LaunchRequest(repo="octo/shop"), known)
    assert resource(made, TokenPlan).given == TOKEN
    assert TOKEN not in repr(made)
    assert TOKEN not in json.dumps([describe(made), public_part(made.sandbox)])
    assert "the agent gets the token in MINE for https://github.com" in "\n".join(made.sandbox.notes)


def test_a_source_given_for_a_session_without_a_token_is_refused() -> None:
    chosen = config({"github.auth": "gh"})
    made = plan_session(chosen, typed(), facts())
    assert made.sandbox.find(TokenPlan) is None, "from a file, it is for other sessions"
    flag = dataclasses.replace(chosen, origins={**chosen.origins, "github.auth": Origin("flag", "--github-auth")})
    with pytest.raises(IllegalCombination, match="this session has no GitHub token"):
        plan_session(flag, typed(), facts())


def test_an_unset_variable_is_refused_before_anything_is_made() -> None:
    with pytest.raises(InvalidValue, match=r"^github.auth \(.*\): the variable MINE, from which .* is not set. Set it"):
        plan({"github.auth": "env:MINE"})


@pytest.mark.parametrize("text", ["shop", "", "/", "octo/", "octo/shop/x", "-octo/shop", "octo/shop.git", "octo/.."])
def test_invalid_repositories(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        plan(request=typed(github_access=text))
    assert caught.value.origin == "LaunchRequest.github_access"


def test_a_pasted_address_gets_a_hint() -> None:
    with pytest.raises(InvalidValue) as caught:
        plan(request=typed(github_access="https://github.com/octo/shop.git"))
    assert caught.value.hint == "Write octo/shop."


@pytest.mark.parametrize(
    "form", ["{}", "octo/{}", "{}/shop", "https://x-access-token:{}@github.com/octo/shop", "{}@github.com", "octo/a {}"]
)
@pytest.mark.parametrize("token", [TOKEN, TOKEN.replace("ghp", "ghs"), "github_pat_11ABCDEFG0abcdefghij_klmnop"])
def test_a_token_on_the_command_line_is_refused_and_not_repeated(form: str, token: str) -> None:
    for values, request in (
        (None, typed(github_access=form.format(token))),
        (CLONING, LaunchRequest(repo=form.format(token))),
    ):
        with pytest.raises(InvalidValue) as caught:
            plan(values, request)
        assert "looks like a GitHub token" in str(caught.value)
        assert token[4:] not in f"{caught.value} {caught.value.__dict__}"


@given(st.text(max_size=30), st.sampled_from(["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"]))
def test_no_error_contains_a_token(around: str, prefix: str) -> None:
    secret = f"{prefix}0123456789abcdefSECRET"
    with pytest.raises(InvalidValue) as caught:
        plan(request=typed(github_access=f"{around}/{secret}"))
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (("app_id",), "github.app_id is required"),
        (("app_id", "private_key_path"), "github.app_id and github.private_key_path are required"),
        (("app_id", "installation_id"), "github.app_id and github.installation_id are required"),
    ],
)
def test_every_missing_key_is_named_at_once(missing: tuple[str, ...], named: str) -> None:
    with pytest.raises(MissingRequired) as caught:
        plan({f"github.{name}": None for name in missing})
    assert str(caught.value).startswith(named)


def test_a_blank_key_path_is_missing() -> None:
    with pytest.raises(MissingRequired, match=r"github\.private_key_path is"):
        plan({"github.private_key_path": " "})


def test_the_keys_path() -> None:
    made = plan({"github.private_key_path": "~/app.pem"})
    assert resource(made, TokenPlan).private_key_path == "/home/ann/app.pem"
    with pytest.raises(InvalidValue, match="not an absolute path"):
        plan({"github.private_key_path": "app.pem"})
