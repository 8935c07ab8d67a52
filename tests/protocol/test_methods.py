"""The known methods against the protocol's own schema, as the installed SDK has it."""

from __future__ import annotations

from typing import get_args

from acp.meta import CLIENT_METHODS

from podbot.config.models import Delegation
from podbot.protocol.methods import ACP, acp_methods, delegated
from tests.protocol import oracle


def test_every_client_method_of_the_sdk_is_known() -> None:
    """A new one fails here: decide what it acts on, and add it to ``methods.py``."""
    assert set(CLIENT_METHODS.values()) <= set(ACP)
    assert len(CLIENT_METHODS) >= 14


def test_methods_that_act_on_the_client_need_a_delegation() -> None:
    assert {method for method, part in ACP.items() if part is None} == oracle.SHOWN
    for part, methods in oracle.ACTING.items():
        assert {method for method, found in ACP.items() if found == part} == methods


def test_each_delegation_has_the_methods_of_its_parts() -> None:
    for delegation in get_args(Delegation):
        expected = oracle.SHOWN.union(*(oracle.ACTING[part] for part in delegated(delegation)))
        assert acp_methods(delegation) == expected
