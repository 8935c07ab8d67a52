"""Facts of this host that tell whether an agent's login works, with or without a planned session."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot.agents.registry import agent, families
from podbot.config.models import AppConfig
from podbot.credentials.login_reading import login_to_copy, place_of, read_login_files
from podbot.errors import InvalidValue
from podbot.frozen import replace
from podbot.launch.judged_logins import judged, time_of
from podbot.launch.resources.login import selected_family, store_of
from podbot.launch.types import CredentialSource, HostFacts
from podbot.places import home_dir, state_dir
from podbot.session.host_paths import kind_of


def with_logins(facts: HostFacts, config: AppConfig, environ: Mapping[str, str]) -> HostFacts:
    """``facts`` with those about logins, for the configured agent.

    Raises InvalidValue for the directory of a family that is to be copied, if the agent's variable for it forbids that.
    """
    now = time_of(facts)
    places = _places(config, home_dir(environ, facts.uid), environ)
    return replace(
        facts,
        credentials=_credentials(config, places, now),
        login_dirs=tuple((kind, path) for kind, path in places.items() if environ.get(families()[kind].variable)),
        login_variables=_login_variables(config, environ, now),
        own_logins=_own_logins(config, state_dir(environ)),
        own_login=_own_login(config, state_dir(environ)),
    )


def _login_variables(config: AppConfig, environ: Mapping[str, str], now: float) -> tuple[str, ...]:
    """Those that are a login by themselves; a cloud's switch needs more."""
    kind = config.agent.kind
    login = agent(kind).login
    found = []
    for name in login.variables if login is not None else ():
        state = judged(kind, {}, {name: environ[name]}, now) if name in environ else None
        found += [name] if state is not None and state.state == "key" else []
    return tuple(found)


def _places(config: AppConfig, home: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The directory of each family. Raises InvalidValue for one that is to be copied, and that its variable forbids."""
    places = {}
    for name, family in families().items():
        try:
            places[name] = place_of(family, home, environ)
        except InvalidValue:
            if selected_family(config, name):
                raise
    return places


def _credentials(config: AppConfig, places: Mapping[str, str], now: float) -> tuple[CredentialSource, ...]:
    """The credential families that exist on the host. Dangling links are skipped; unreadable ones are refused later."""
    found = []
    for name, given in places.items():
        family = families()[name]
        if kind_of(given) == "missing":
            continue
        files = read_login_files(given, family.files)
        alone = False
        if family.login in files:
            files[family.login], alone = login_to_copy(
                name, files[family.login], renewable=config.creds.copy_refresh_tokens
            )
        state = judged(name, files, {}, now)
        works, renews = state is not None and state.works, state is not None and state.renews
        source = os.path.realpath(given)
        # A link is copied with the file in the family that it leads to.
        alone = alone and not os.path.islink(os.path.join(source, family.login))
        found.append(CredentialSource(name, given, source, family.target, works, renews, files, alone))
    return tuple(found)


def _own_logins(config: AppConfig, state: str) -> tuple[str, ...]:
    kind = config.agent.kind
    known = agent(kind).own_login is not None
    return (kind,) if known and os.path.isfile(os.path.join(store_of(state, kind), "login")) else ()


def _own_login(config: AppConfig, state: str) -> bytes | str | None:
    return read_login_files(store_of(state, config.agent.kind), ("login",)).get("login")
