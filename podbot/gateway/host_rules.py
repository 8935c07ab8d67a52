"""What a sandbox may reach: rules, and the verdict on a host and a port. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from podbot.frozen import Frozen
from podbot.gateway.addresses import refusal
from podbot.gateway.hosts import BadHost, Host, Target, bracketed, parse_host, parse_port, shown, split_authority
from podbot.gateway.sets import SETS

USUAL_PORTS = (443, 80)  # of a rule without a port


class BadRule(ValueError):
    """A text that is not a rule; the message says which and why, and ``hint`` what to write."""

    def __init__(
        self, reason: str, hint: str = "Write HOST, *.HOST, HOST:PORT or @SET, such as *.example.com."
    ) -> None:
        super().__init__(reason)
        self.hint = hint


class Rule(Frozen):
    """``host``: canonical, see ``hosts``. ``subdomains``: its subdomains instead of itself.

    ``port``: None means the usual ones, and every port of a denial.
    """

    host: Host
    subdomains: bool = False
    port: int | None = None

    def __str__(self) -> str:
        port = "" if self.port is None else f":{self.port}"
        return f"{'*.' if self.subdomains else ''}{bracketed(self.host)}{port}"

    def covers(self, host: Host) -> bool:
        """Whether the rule is about that host."""
        if self.subdomains:
            return not host.is_address and host.text.endswith(f".{self.host.text}")
        return host == self.host


class Policy(Frozen):
    """``deny`` wins over the others. ``private``: may also lead to private addresses and to this host."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    private: tuple[Rule, ...] = ()


class Verdict(Frozen):
    """``private``: private addresses may be dialled. ``denied``: a denial refuses it, which a rule that allows
    does not change. ``reason``: why it is refused, with the rule that refuses it.
    """

    allowed: bool
    private: bool = False
    denied: bool = False
    reason: str = ""


def policy_from(allow: Iterable[str], deny: Iterable[str] = (), private: Iterable[str] = ()) -> Policy:
    """The policy of such texts. Raises BadRule."""
    return Policy(expand(allow), expand(deny), expand(private))


def expand(texts: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of such texts; ``@NAME`` is a named set. Raises BadRule."""
    found: dict[Rule, None] = {}
    for text in texts:
        if not text.startswith("@"):
            found[parse_rule(text)] = None
            continue
        if text[1:] not in SETS:
            raise BadRule(f"{shown(text)} is not a set of hosts: there are {', '.join(f'@{name}' for name in SETS)}")
        found |= dict.fromkeys(map(parse_rule, SETS[text[1:]].hosts))
    return tuple(found)


def parse_rule(text: str) -> Rule:
    """``HOST``, ``*.HOST``, either with ``:PORT``; HOST may be an address. Raises BadRule."""
    if "/" in text:
        raise _of_address(text)
    if text in ("*", "*.*"):
        raise BadRule("'*' is not a host", "Everything is reachable with sandbox.network = default.")
    if "," in text:
        raise BadRule(f"{shown(text)} is more than one rule", "Write each host by itself.")
    rest = text.removeprefix("*.")
    try:
        host, port = _host_and_port(rest)
    except BadHost as exc:
        raise BadRule(str(exc)) from None
    if rest == text:
        return Rule(host, port=port)
    if host.is_address:
        raise BadRule(f"{shown(text)}: an address has no subdomains")
    if "." not in host.text:
        raise BadRule(f"{shown(text)} would allow a whole top-level domain")
    return Rule(host, subdomains=True, port=port)


def check_open(allow: Iterable[Rule], private: Iterable[Rule] = ()) -> None:
    """Raise BadRule for a rule by which nothing can be reached, whatever it says.

    That is an address of a private network or of this host, which only ``private`` opens, and one that nothing opens,
    such as that of a cloud's metadata service. What a name resolves to is judged for each connection.
    """
    private = tuple(private)
    for rule in (*allow, *private):
        reason = _refusal(rule.host, private=True)
        if reason is not None:
            raise BadRule(f"{rule} {reason}, and no rule opens that", "Leave it out.")
    for rule in allow:
        reason = _refusal(rule.host, private=False)
        if reason is not None and not _opened(rule, private):
            raise BadRule(f"{rule} {reason}, and network.allow does not open that", for_private((*private, rule)))


def _refusal(host: Host, *, private: bool) -> str | None:
    if host.is_address:
        return refusal(host.address, private=private)
    is_here = host.text == "localhost" or host.text.endswith(".localhost")
    return "is this host itself" if is_here and not private else None


def _opened(rule: Rule, private: tuple[Rule, ...]) -> bool:
    ports = USUAL_PORTS if rule.port is None else (rule.port,)
    return rule in private or all(any(_allows(other, Target(rule.host, port)) for other in private) for port in ports)


def for_private(rules: Iterable[Rule]) -> str:
    """What to do so that such rules open private addresses."""
    return f"Set network.private = {shlex.quote(','.join(map(str, rules)))} for sessions that start from then on."


def _of_address(text: str) -> BadRule:
    """What to write for an address, without the login and the query that it may have."""
    scheme, colon, rest = text.rpartition("://")
    authority, slash, path = rest.partition("/")
    where = authority.rpartition("@")[2]
    if re.fullmatch(r"[0-9.]+/[0-9.]+|[0-9a-fA-F:]+:[0-9a-fA-F:]*/[0-9]+", text):
        return BadRule(f"{shown(text)} is a network, and a rule is about one host", "Write each host that is meant.")
    plain = f"{scheme}{colon}{where}{slash}{path.partition('?')[0].partition('#')[0]}"
    reason = f"{shown(plain)} is an address or a path, and a rule is about a whole host"
    try:
        parse_rule(where)
    except BadRule:
        return BadRule(reason)
    return BadRule(reason, f"Write {where}.")


def judge(target: Target, policy: Policy) -> Verdict:
    """Whether the target may be reached. What its name resolves to is judged by ``addresses``."""
    for rule in policy.deny:
        if rule.covers(target.host) and rule.port in (None, target.port):
            return Verdict(allowed=False, denied=True, reason=f"the rule {rule} denies it")
    if any(_allows(rule, target) for rule in policy.private):
        return Verdict(allowed=True, private=True)
    if any(_allows(rule, target) for rule in policy.allow):
        return Verdict(allowed=True)
    others = [rule for rule in (*policy.allow, *policy.private) if rule.covers(target.host)]
    if others:
        return Verdict(allowed=False, reason=f"the rule {others[0]} allows other ports only")
    return Verdict(allowed=False, reason="no rule allows it")


def _allows(rule: Rule, target: Target) -> bool:
    ports = USUAL_PORTS if rule.port is None else (rule.port,)
    return rule.covers(target.host) and target.port in ports


def _host_and_port(text: str) -> tuple[Host, int | None]:
    """An IPv6 address may be written without brackets if it has no port."""
    if text.count(":") > 1 and not text.startswith("["):
        return parse_host(text), None
    host, port = split_authority(text)
    return parse_host(host), None if port is None else parse_port(port, text)
