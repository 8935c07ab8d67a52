"""What a sandbox gets of the operator's additional certificate authorities."""

from __future__ import annotations

import json
import tomllib

from podbot.launch.describe import describe
from podbot.launch.plan import plan_sandbox, plan_session
from podbot.launch.resources.certificates import ADDITIONAL, ALL, INNER_MOUNTS, INNER_SETTINGS, VARIABLES
from podbot.launch.types import Certificates, LaunchPlan, LaunchRequest
from tests.launch.build import config, facts, text_of, typed

FOUND = Certificates("/home/ann/ca.pem", ("company\n", "shared\n"), "/etc/ssl/ca.crt", ("public\n", "shared\n"))
# Adding to a program's own list; the others replace it.
ADDING = {"NODE_EXTRA_CA_CERTS", "DENO_CERT"}


def planned(**values: object) -> LaunchPlan:
    return plan_session(config(dict(values)), typed(), facts(certificates=FOUND))


def test_without_the_key_nothing_is_added() -> None:
    made = plan_session(config(), typed(), facts())
    assert "certificates" not in made.sandbox.resources
    assert not VARIABLES.keys() & made.sandbox.container.env.keys()
    assert describe(made)["certificates"] is None


def test_a_variable_that_replaces_a_programs_list_names_the_public_authorities_too() -> None:
    made = planned()
    env = made.sandbox.container.env
    assert {name for name in VARIABLES if env[name] == ADDITIONAL} == ADDING
    assert {name for name in VARIABLES if env[name] == ALL} == VARIABLES.keys() - ADDING
    assert text_of(made, ALL) == "public\nshared\ncompany\n"
    assert text_of(made, ADDITIONAL) == "company\nshared\n"


def test_the_files_are_mounted_read_only() -> None:
    mounts = {mount.target: mount for mount in planned().sandbox.container.files}
    assert all(mounts[target].read_only for target in (ALL, ADDITIONAL, INNER_SETTINGS, INNER_MOUNTS))


def test_the_operators_own_variable_overrides_each_one() -> None:
    own = dict.fromkeys(VARIABLES, "/own.pem")
    env = planned(**{"sandbox.env": own}).sandbox.container.env
    assert {name: env[name] for name in VARIABLES} == own


def test_a_sandbox_without_an_agent_and_without_a_network_gets_them() -> None:
    made = plan_sandbox(
        config({"workspace.source": "none", "workspace.host_path": None, "sandbox.profile": "sealed"}),
        LaunchRequest(),
        facts(workspace=None, certificates=FOUND, kernel=(6, 1)),
    )
    assert made.container.env["SSL_CERT_FILE"] == ALL
    assert ALL in {file.target for file in made.files}


def test_podman_inside_passes_the_files_and_the_variables_to_its_containers() -> None:
    made = planned()
    settings = tomllib.loads(text_of(made, INNER_SETTINGS))
    # Nothing else is set, because a list here would replace the image's own, such as its volumes.
    assert settings == {"containers": {"env": [f"{name}={path}" for name, path in VARIABLES.items()]}}
    assert text_of(made, INNER_MOUNTS).splitlines() == [f"{ALL}:{ALL}", f"{ADDITIONAL}:{ADDITIONAL}"]


def test_a_description_says_where_they_are_from_and_not_what_they_are() -> None:
    found = describe(planned())
    assert found["certificates"] == {"path": "/home/ann/ca.pem", "additional": 2, "system": "/etc/ssl/ca.crt"}
    assert "company\\n" not in json.dumps(found)
