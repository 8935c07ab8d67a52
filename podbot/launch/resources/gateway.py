"""The filtered network of a sandbox: what it can reach, and the variables that lead its programs there. Pure.

The sandbox has no network interface but loopback. Its programs connect to a port there, which the guest has passed to a
process on the host, the gateway (``podbot.gateway``, ADR 0046).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from podbot.config.checks import rule_refusal
from podbot.config.models import AppConfig
from podbot.errors import IllegalCombination, InvalidValue
from podbot.frozen import field
from podbot.launch.held_keys import PORT, HeldKey, held_keys
from podbot.launch.network_choice import FILTERED, network_of
from podbot.launch.resources.guest import has_own_kernel
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, LaunchRequest, ResourcePlan, SandboxPlan

DIRECTORY = "gateway"  # in the session's own directory on the host
LOG, CONTROL = "log", "control"  # in that directory
# The operator's proxy, which the gateway uses; and a file with the certificate authorities to trust.
PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy")
CA_VARIABLE = "SSL_CERT_FILE"
HOST_VARIABLES = (*PROXY_VARIABLES, CA_VARIABLE)

_HERE = "localhost,127.0.0.1,::1"


class GatewayPlan(ResourcePlan):
    """The policy of a session's gateway. ``allow``, ``deny``, ``private``: rules, see ``podbot.gateway.host_rules``.

    ``directory``: on the host, for its log and its control socket. ``keys``: what it adds to requests. ``host``: the
    host's variables that say how the gateway itself reaches the network; a proxy's address may contain a password.
    """

    directory: str
    allow: tuple[str, ...]
    deny: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    keys: tuple[HeldKey, ...] = ()
    port: int = PORT
    host: Mapping[str, str] = field(default_factory=dict, repr=False)

    def described(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "allow": list(self.allow),
            "deny": list(self.deny),
            "private": list(self.private),
            "keys": {key.variable: key.upstream for key in self.keys},
            "port": self.port,
        }

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """See ResourcePlan. A record cannot give a sandbox with a network a gateway, or one elsewhere."""
        del facts
        own = os.path.join(sandbox.runtime_dir, DIRECTORY)
        return self.directory == own and sandbox.container.network == "none" and self.port == PORT

    def refreshed(self, facts: HostFacts) -> GatewayPlan:
        """See ResourcePlan."""
        from podbot.frozen import replace

        return replace(self, host=_host(facts))


def plan(context: Context) -> Part | None:
    """None for another network. Raises IllegalCombination and InvalidValue."""
    config, request = context.config, context.request
    if network_of(config, request) != FILTERED:
        _check_no_hosts(config, request)
        return None
    if has_own_kernel(config.sandbox.runtime):
        raise IllegalCombination(
            field="sandbox.network",
            value=FILTERED,
            origin=_origin(config, request),
            reason=f"sandbox.runtime = {config.sandbox.runtime} ({config.origin('sandbox.runtime')}) gives a sandbox a"
            " kernel of its own, which the gateway cannot reach",
            hint="Choose another runtime, or another network: none or default.",
        )
    network = config.network
    _check(request.allow, str(request.origin("allow")))
    _check_open(config, request)
    keys = held_keys(config, request, context.facts) if context.command is not None else ()
    value = GatewayPlan(
        directory=os.path.join(context.runtime_dir, DIRECTORY),
        allow=tuple(dict.fromkeys((*network.allow, *request.allow))),
        deny=(*network.deny, *_behind_the_gateway(config, keys)),
        private=network.private,
        keys=keys,
        host=_host(context.facts),
    )
    return Part(value, env=environment(PORT), notes=(_note(value),))


def environment(port: int) -> dict[str, str]:
    """The variables that lead programs to the gateway, with the programs that need each.

    There is no ALL_PROXY: Python's httpx refuses to start with a SOCKS one, and nothing here needs it.
    """
    url = f"http://127.0.0.1:{port}"
    java = " ".join(
        f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}" for scheme in ("http", "https")
    )  # Maven, Gradle and HttpClient read no variable of their own
    return {
        "HTTP_PROXY": url,
        "HTTPS_PROXY": url,
        "http_proxy": url,  # curl and wget read only this form of it
        "https_proxy": url,
        "NO_PROXY": _HERE,
        "no_proxy": _HERE,
        "NODE_USE_ENV_PROXY": "1",  # Node's own fetch ignores the variables above without it
        "JAVA_TOOL_OPTIONS": f"{java} -Dhttp.nonProxyHosts=localhost|127.0.0.1",
        "grpc_proxy": url,
        "CARGO_HTTP_PROXY": url,
        "YARN_HTTP_PROXY": url,  # Yarn 2 and later read only these
        "YARN_HTTPS_PROXY": url,
    }


def _check_no_hosts(config: AppConfig, request: LaunchRequest) -> None:
    if request.allow:
        raise IllegalCombination(
            field="network.allow",
            value=request.allow[0][:80],
            origin=str(request.origin("allow")),
            reason=f"the network is {config.sandbox.network} ({config.origin('sandbox.network')}), not filtered",
            hint="Leave one of them out.",
        )


def _check(texts: tuple[str, ...], origin: str) -> None:
    """Raise InvalidValue for a rule of this session that is none; those of the configuration are checked before."""
    from podbot.gateway.host_rules import BadRule, expand

    for text in texts:
        try:
            expand((text,))
        except BadRule as exc:
            reason, hint = rule_refusal(text, str(exc), exc.hint)
            raise InvalidValue(field="network.allow", origin=origin, reason=reason, hint=hint) from None


def _check_open(config: AppConfig, request: LaunchRequest) -> None:
    """Raise InvalidValue for a rule by which nothing can be reached: the plan would say that it can."""
    from podbot.gateway.host_rules import BadRule, check_open, expand

    network = config.network
    private = expand(network.private)
    for key, texts, origin in (
        ("network.private", (), config.origin("network.private")),
        ("network.allow", network.allow, config.origin("network.allow")),
        ("network.allow", request.allow, request.origin("allow")),
    ):
        try:
            check_open(expand(texts), private)
        except BadRule as exc:
            raise InvalidValue(field=key, origin=str(origin), reason=str(exc), hint=exc.hint) from None


def _behind_the_gateway(config: AppConfig, keys: tuple[HeldKey, ...]) -> tuple[str, ...]:
    """APIs that podbot's own default allows, but that are asked by way of the gateway now.

    With another key, which an attacker could give an agent, data could leave the sandbox to them.
    """
    if config.origin("network.allow").kind != "default":
        return ()
    return tuple(key.upstream.partition("://")[2].partition("/")[0] for key in keys if not key.chosen)


def _host(facts: HostFacts) -> dict[str, str]:
    return {name: facts.env[name] for name in HOST_VARIABLES if facts.env.get(name)}


def _origin(config: AppConfig, request: LaunchRequest) -> str:
    chosen = config.sandbox.network == FILTERED
    return str(config.origin("sandbox.network") if chosen else request.origin("allow"))


def _note(plan: GatewayPlan) -> str:
    names = ", ".join((*plan.allow, *plan.private)) or "nothing"
    denied = f", but not {', '.join(plan.deny)}" if plan.deny else ""
    return f"the sandbox can reach {names}{denied}; refused hosts are in its network log"
