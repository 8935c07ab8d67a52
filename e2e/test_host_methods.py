"""The methods that podbot knows, compared with those of the agents in the sandbox image: a new one fails here."""

from __future__ import annotations

import json
from typing import Any

from e2e.harness import World
from podbot.protocol.methods import ACP, CODEX

MODULES = "/usr/local/lib/node_modules"
SCHEMAS = f"find {MODULES}/@agentclientprotocol -path '*/sdk/schema/*.json' -exec cat {{}} +"


def inside(world: World, script: str) -> str:
    """The output of a shell in the image."""
    done = world.podman("run", "--rm", "--network", "none", world.image, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents(text: str) -> list[Any]:
    """Consecutive JSON values."""
    found, at = [], 0
    decoder = json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def test_every_client_method_of_the_acp_schemas_is_known(world: World) -> None:
    """Versions 1 and 2, stable and unstable, as in the adapters of Claude and Codex."""
    schemas = documents(inside(world, SCHEMAS))
    sides: dict[str, set[str]] = {}
    for schema in schemas:
        for definition in schema["$defs"].values():
            if "x-method" in definition:
                sides.setdefault(definition["x-side"], set()).add(definition["x-method"])
    assert len(schemas) >= 4
    assert {"session/update", "terminal/create", "elicitation/create"} <= sides["client"]
    assert sides["client"] | sides["protocol"] <= set(ACP)


def test_every_request_of_the_codex_app_server_is_known(world: World) -> None:
    script = "codex app-server generate-json-schema --experimental --out /tmp/schema >&2 && cat /tmp/schema/%s"
    (requests,) = documents(inside(world, script % "ServerRequest.json"))
    methods = {variant["properties"]["method"]["enum"][0] for variant in requests["oneOf"]}
    assert methods == set(CODEX)
