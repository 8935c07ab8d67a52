"""Which keys the gateway holds instead of the sandbox, and what the sandbox gets for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podbot.agents.login_state import first, is_filled
from podbot.agents.registry import agent as known
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue
from podbot.exec_spec import ExecSpec
from podbot.frozen import Frozen, field, replace
from podbot.launch.api_endpoints import ENDPOINTS, Endpoint
from podbot.launch.network_choice import FILTERED, network_of
from podbot.launch.types import HostFacts, LaunchRequest

PORT = 28282  # of the gateway, on the loopback interface inside
BASE_VARIABLES = tuple(found.base_variable for found in ENDPOINTS)


class HeldKey(Frozen):
    """An API with its key. ``variable``: where the key comes from. ``upstream``: the API's address.

    ``chosen``: the operator set that address. ``placeholder``: the end of what the sandbox has instead of the key.
    """

    name: str
    variable: str
    upstream: str
    paths: tuple[str, ...]
    header: str
    scheme: str
    chosen: bool = False
    key: str = field(default="", repr=False)
    placeholder: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        """Where the sandbox finds the API."""
        return f"http://127.0.0.1:{PORT}/{self.name}"


class Inside(Frozen):
    """What the sandbox gets. ``env``: variables of the agent. ``words``, ``files``: see ``ThroughGateway``."""

    env: Mapping[str, str] = field(repr=False)
    words: tuple[str, ...] = ()
    files: Mapping[str, str] = {}


def held_keys(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> tuple[HeldKey, ...]:
    """The keys that the agent would get as variables; none if its network is not filtered. Raises InvalidValue."""
    if network_of(config, request) != FILTERED:
        return ()
    given = {**{name: facts.env[name] for name in config.agent.env_allowlist if name in facts.env}, **request.env}
    found = (_held(endpoint, given, facts) for endpoint in ENDPOINTS)
    return tuple(key for key in found if key is not None)


def led_to_gateway(
    config: AppConfig, request: LaunchRequest, facts: HostFacts, command: ExecSpec
) -> tuple[ExecSpec, Mapping[str, str], tuple[str, ...]]:
    """``command`` with what leads the agent to the gateway, the files that it needs for it, and notes.

    Without a key that the gateway holds, ``command`` is unchanged, and there is nothing else. Raises InvalidValue.
    """
    keys = held_keys(config, request, facts)
    if not keys:
        return command, {}, ()
    kind, words = config.agent.kind, command.command
    held = inside(kind, keys, command.env)
    if words[:1] == (kind,):  # not of its adapter for another protocol
        words = (words[0], *held.words, *words[1:])
    return replace(command, command=words, env={**command.env, **held.env}), held.files, key_notes(keys)


def inside(kind: str, keys: Iterable[HeldKey], given: Mapping[str, str]) -> Inside:
    """What an agent of this ``kind`` gets for ``keys``. ``given``: its variables, with the keys."""
    env: dict[str, str] = {}
    addresses, variables = {}, {}
    for key in keys:
        endpoint = next(found for found in ENDPOINTS if found.name == key.name)
        env |= {
            name: endpoint.form.get(name, "") + key.placeholder for name in endpoint.keys if is_filled(given.get(name))
        }
        env[endpoint.base_variable] = key.address
        addresses[key.name], variables[key.name] = key.address, key.variable
    through = known(kind).through
    if through is None or not env:
        return Inside(env)
    more = through(addresses, variables)
    return Inside({**env, **more.env}, more.words, more.files)


def key_notes(keys: Iterable[HeldKey]) -> tuple[str, ...]:
    """Lines for the operator."""
    return tuple(f"{key.variable} stays on this host: podbot adds it to requests to {key.upstream}" for key in keys)


def _is_address(text: str) -> bool:
    from podbot.gateway.hosts import BadHost, parse_authority  # only if the operator has set such an address

    scheme, _, rest = text.partition("://")
    try:
        parse_authority(rest.partition("/")[0], 1)
    except BadHost:  # also a user and a password before the host
        return False
    return scheme in ("http", "https") and rest.isascii() and rest.isprintable() and not set(rest) & set(" ?#")


def _held(endpoint: Endpoint, given: Mapping[str, str], facts: HostFacts) -> HeldKey | None:
    variable = first(endpoint.keys, given)  # a blank one is none, and a placeholder for it would look like one
    if variable is None:
        return None
    header, scheme = endpoint.keys[variable]
    chosen = given.get(endpoint.base_variable) or facts.env.get(endpoint.base_variable) or ""
    if chosen and not _is_address(chosen):
        raise InvalidValue(
            field=endpoint.base_variable,
            origin="variable of the host",
            reason="it is not the address of an API",  # not shown: it may contain a password
            hint="Write it as https://HOST or https://HOST/PATH, without a user, or unset it.",
        )
    if not (given[variable].isascii() and given[variable].isprintable()):
        raise InvalidValue(
            field=variable, origin="variable of the host", reason="it has a character that no key has", hint=""
        )
    return HeldKey(
        endpoint.name,
        variable,
        (chosen or endpoint.upstream).rstrip("/"),
        endpoint.paths,
        header,
        scheme,
        chosen=bool(chosen),
        key=given[variable],
        placeholder=f"podbot-{endpoint.name}-{facts.placeholder}",
    )
