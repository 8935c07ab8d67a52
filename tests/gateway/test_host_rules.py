"""Rules, and the verdict on a host and a port."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.gateway.host_rules import BadRule, Policy, Verdict, check_open, expand, judge, parse_rule, policy_from
from podbot.gateway.hosts import parse_authority
from podbot.gateway.sets import SETS


def verdict(target: str, allow: str = "", deny: str = "", private: str = "") -> Verdict:
    return judge(parse_authority(target), policy_from(allow.split(), deny.split(), private.split()))


@pytest.mark.parametrize(
    ("target", "allow"),
    [
        ("example.com:443", "example.com"),
        ("example.com:80", "example.com"),
        ("EXAMPLE.com.:443", "example.COM."),
        ("a.example.com:443", "*.example.com"),
        ("a.b.example.com:443", "*.example.com"),
        ("example.com:8443", "example.com:8443"),
        ("a.example.com:8443", "*.example.com:8443"),
        ("1.2.3.4:443", "1.2.3.4"),
        ("[2606:4700::1]:443", "2606:4700::1"),
        ("[2606:4700::1]:443", "[2606:4700:0::1]:443"),
        ("pypi.org:443", "@models @registries"),
    ],
)
def test_what_a_rule_allows(target: str, allow: str) -> None:
    assert verdict(target, allow) == Verdict(allowed=True)


@pytest.mark.parametrize(
    ("target", "allow", "reason"),
    [
        ("example.com:443", "", "no rule allows it"),
        ("example.com:22", "example.com", "the rule example.com allows other ports only"),
        ("example.com:443", "example.com:8443", "the rule example.com:8443 allows other ports only"),
        ("example.com:443", "*.example.com", "no rule allows it"),
        ("a.example.com:443", "example.com", "no rule allows it"),
        ("notexample.com:443", "*.example.com", "no rule allows it"),
        ("example.com.evil.example:443", "example.com *.example.com", "no rule allows it"),
        ("1.2.3.4:443", "*.3.4.example", "no rule allows it"),
    ],
)
def test_everything_else_is_refused_with_the_reason(target: str, allow: str, reason: str) -> None:
    assert verdict(target, allow) == Verdict(allowed=False, reason=reason)


@pytest.mark.parametrize("deny", ["gist.example.com", "*.example.com", "gist.example.com:443"])
def test_a_denial_always_wins(deny: str) -> None:
    found = verdict("gist.example.com:443", "gist.example.com *.example.com", deny, "gist.example.com")
    assert found == Verdict(allowed=False, denied=True, reason=f"the rule {deny} denies it")


def test_a_denial_without_a_port_is_about_every_port() -> None:
    assert not verdict("a.example:8443", "a.example:8443", "a.example").allowed
    assert verdict("a.example:8443", "a.example:8443", "a.example:443").allowed


def test_private_addresses_are_for_rules_that_say_so() -> None:
    assert verdict("gitlab.example:443", "gitlab.example", private="gitlab.example") == Verdict(True, private=True)
    assert verdict("127.0.0.1:11434", private="127.0.0.1:11434").private
    assert not verdict("127.0.0.1:11435", "127.0.0.1", private="127.0.0.1:11434").allowed
    assert not verdict("other.example:443", "other.example", private="gitlab.example").private


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "*.com", "*.1.2.3.4", "a.*.example", "@", "@nothing", "https://example.com", "example.com/x",
     "example.com:0", "example.com:x", "[::1]x", "[::1", "*.[::1]", "127.1", "a b"],
)  # fmt: skip
def test_a_text_that_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(BadRule):
        expand([text])


@pytest.mark.parametrize(
    ("text", "shown", "hint"),
    [
        ("https://github.com/octo", "https://github.com/octo", "Write github.com."),
        ("https://example.com:8443/a?token=hunter2#x", "https://example.com:8443/a", "Write example.com:8443."),
        ("https://me:hunter2@example.com/", "https://example.com/", "Write example.com."),
        ("example.com/x", "example.com/x", "Write example.com."),
        ("https://*.example.com", "https://*.example.com", "Write *.example.com."),
        ("https://[::1]/", "https://[::1]/", "Write [::1]."),
        ("https:///x", "https:///x", "Write HOST, *.HOST, HOST:PORT or @SET, such as *.example.com."),
    ],
)
def test_an_address_is_answered_with_its_host(text: str, shown: str, hint: str) -> None:
    with pytest.raises(BadRule) as caught:
        expand([text])
    assert str(caught.value) == f"'{shown}' is an address or a path, and a rule is about a whole host"
    assert caught.value.hint == hint
    if "HOST" not in hint:
        assert expand([hint.removeprefix("Write ").removesuffix(".")])


def test_a_long_text_keeps_its_closing_quote() -> None:
    with pytest.raises(BadRule, match=r"^'x{79}\.\.\.' "):
        expand(["x" * 300])


def test_an_unknown_set_is_named_with_those_that_exist() -> None:
    with pytest.raises(BadRule, match="'@regs' is not a set of hosts: there are @models, @registries, @github"):
        expand(["@regs"])


@pytest.mark.parametrize("name", SETS)
def test_every_host_of_every_set_is_a_rule_with_its_reason(name: str) -> None:
    assert SETS[name].purpose
    assert all(SETS[name].hosts.values())
    assert [str(rule) for rule in expand([f"@{name}"])] == list(SETS[name].hosts)


RULES = st.from_regex(r"(\*\.)?[a-z]{1,5}\.[a-z]{1,5}(:[1-9][0-9]{0,3})?", fullmatch=True)


@given(RULES)
def test_a_rule_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_rule(text)) == text


@given(st.lists(RULES), st.lists(RULES), st.from_regex(r"[a-z]{1,5}\.[a-z]{1,5}:(80|443)", fullmatch=True))
def test_only_what_some_rule_allows_and_none_denies_is_allowed(allow: list[str], deny: list[str], target: str) -> None:
    found = parse_authority(target)
    rules = policy_from(allow, deny)
    allowed = judge(found, rules).allowed
    assert not judge(found, Policy(deny=rules.deny)).allowed
    assert allowed <= judge(found, Policy(allow=rules.allow)).allowed
    assert not judge(found, Policy(rules.allow, (*rules.deny, parse_rule(found.host.text)))).allowed


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/255.0.0.0", "fd00::/8"])
def test_a_network_is_no_host(text: str) -> None:
    with pytest.raises(BadRule) as caught:
        parse_rule(text)
    assert "is a network, and a rule is about one host" in str(caught.value)
    assert caught.value.hint == "Write each host that is meant."


@pytest.mark.parametrize(
    ("allow", "private", "said"),
    [
        ("10.0.0.5:5432", "", "10.0.0.5:5432 is private, and network.allow does not open that"),
        ("10.0.0.5", "10.0.0.5:5432", "10.0.0.5 is private"),
        ("[fd12::1]:80", "", "[fd12::1]:80 is private"),
        ("localhost:5432", "", "localhost:5432 is this host itself"),
        ("*.app.localhost", "", "*.app.localhost is this host itself"),
        ("127.0.0.1", "127.0.0.1:80", "127.0.0.1 is loopback"),
        ("169.254.169.254", "", "169.254.169.254 is link-local, as metadata services of clouds are, and no rule opens"),
        ("", "169.254.169.254", "169.254.169.254 is link-local, as metadata services of clouds are, and no rule opens"),
    ],
)
def test_a_rule_by_which_nothing_can_be_reached_is_refused(allow: str, private: str, said: str) -> None:
    with pytest.raises(BadRule) as caught:
        check_open(expand(allow.split()), expand(private.split()))
    assert str(caught.value).startswith(said)
    if "no rule" not in said:
        listed = caught.value.hint.split(" = ")[1].split(" for ")[0].strip("'")
        assert listed == ",".join((*private.split(), allow))
        check_open(expand(allow.split()), expand(listed.split(",")))


@pytest.mark.parametrize(
    ("allow", "private"),
    [
        ("@models @github 8.8.8.8 a.example:5432 localhost.example", ""),
        ("10.0.0.5:5432 localhost", "10.0.0.5:5432 localhost"),
        ("127.0.0.1", "127.0.0.1:80 127.0.0.1:443"),
    ],
)
def test_other_rules_are_not(allow: str, private: str) -> None:
    check_open(expand(allow.split()), expand(private.split()))
