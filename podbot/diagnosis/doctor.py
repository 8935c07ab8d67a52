"""``podbot doctor``: checks the configuration, the machine, the engine, the image and the App."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from podbot.agents.login_state import LoginState, iso
from podbot.config.models import AppConfig
from podbot.diagnosis.disk_checks import Disks, check_disk, room_for_first
from podbot.diagnosis.github_checks import check_github
from podbot.diagnosis.host_checks import check_host
from podbot.diagnosis.image_checks import check_image
from podbot.engine.check import Check
from podbot.engine.driver import EngineMachine
from podbot.engine.endpoint import Endpoint
from podbot.engine.port import Engine, EngineHost
from podbot.errors import PodbotError
from podbot.images.recipe import LABEL_AGENTS, load_recipe, other_image, packages_in
from podbot.launch.judged_logins import words as login_words
from podbot.launch.security import asks_for_fuse, effective_profile
from podbot.management.login_list import AgentLogin

BUILD_ONE = "podbot setup"
_GIVE_A_VALUE = "give it a value, or leave it out of agent.env_allowlist and sandbox.env"


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """The functions by which doctor gets its data; :func:`podbot.api.diagnosis.this_machine` has the real ones."""

    machine: Callable[[AppConfig], EngineMachine]
    load: Callable[[], AppConfig]
    config_file: Callable[[], str]
    locate: Callable[[AppConfig], Endpoint | None]
    connect: Callable[[AppConfig], Engine]
    runtime_dir: Callable[[], str]
    disks: Callable[[EngineHost], Disks]
    seccomp: Callable[[], str]
    token_unit: bool = False
    certificates: Callable[[AppConfig], Iterator[Check]] = lambda _config: iter(())
    github: Callable[[AppConfig], Iterator[Check]] = check_github
    logins: Callable[[AppConfig], Sequence[AgentLogin]] = lambda _config: ()


def diagnose(context: DoctorContext, *, probe_image: bool = False) -> Iterator[Check]:
    """Every check, in the order in which problems must be fixed. Errors are not raised but become checks.

    ``probe_image``: also run a temporary container of the image to find what it lacks.
    """
    config, check = _config(context)
    yield check
    yield _runtime_dir(context)
    endpoint, check_endpoint = _endpoint(context, config)
    if check_endpoint is not None:
        yield check_endpoint
    elif endpoint is None or endpoint.local:
        machine = context.machine(config)
        yield from machine.checks(config.sandbox.network, private=endpoint is None)
        yield from check_host(
            machine.facts,
            token_unit=context.token_unit,
            fuse=asks_for_fuse(config),
            own_ids=config.sandbox.own_user_ids and effective_profile(config) != "privileged",
        )
    if check_endpoint is None:
        yield from _engine(context, config, endpoint, probe_image=probe_image)
    yield from context.certificates(config)
    yield from context.github(config)
    yield from _logins(context, config)


def _config(context: DoctorContext) -> tuple[AppConfig, Check]:
    """The configuration, or the defaults if it is not valid, so that the rest can be checked."""
    try:
        config = context.load()
        return config, Check("config", "ok", context.config_file())
    except PodbotError as exc:
        return AppConfig(), _failed("config", exc)


def _logins(context: DoctorContext, config: AppConfig) -> Iterator[Check]:
    """Which login the sessions of each agent get, and whether it works; without one, only of the configured agent."""
    try:
        found = context.logins(config)
    except PodbotError as exc:
        yield _failed("logins", exc)
        return
    shown = [login for login in found if login.state.state != "none" or login.agent == config.agent.kind]
    if not shown:
        return
    there = ", ".join(f"{login.agent}: {_said(login.origin, login.state)}" for login in shown)
    bad = [login for login in shown if login.advice]
    meaning = [f"No session of {', '.join(login.agent for login in bad)} gets a login that works."] if bad else []
    meaning += [f"{login.note}." for login in shown if login.note]
    advice = bad[0].advice if bad else _GIVE_A_VALUE if meaning else ""
    yield Check("logins", "warn" if meaning else "ok", there, " ".join(meaning), advice)


def _said(origin: str, state: LoginState) -> str:
    return f"{origin}{_until(state)}" if state.works or state.state == "none" else f"{origin} {login_words(state)}"


def _until(state: LoginState) -> str:
    return f" until {iso(state.at)}" if state.state == "usable" and state.at is not None else ""


def _runtime_dir(context: DoctorContext) -> Check:
    try:
        return Check("runtime-dir", "ok", context.runtime_dir())
    except PodbotError as exc:
        return _failed("runtime-dir", exc)


def _endpoint(context: DoctorContext, config: AppConfig) -> tuple[Endpoint | None, Check | None]:
    try:
        return context.locate(config), None
    except PodbotError as exc:
        return None, _failed("engine", exc)


def _engine(
    context: DoctorContext, config: AppConfig, endpoint: Endpoint | None, *, probe_image: bool
) -> Iterator[Check]:
    try:
        engine = context.connect(config)
    except PodbotError as exc:
        yield _failed("engine", exc)
        return
    try:
        info = engine.ping()
        origin = endpoint.origin if endpoint is not None else "podbot's private service"
        yield Check("engine", "ok", f"{engine.words.name} {info.version} at {info.endpoint} ({origin})")
        if engine.local:
            yield _disk(context, engine, config)
        if probe_image and config.image:
            yield from check_image(engine, config, _get(engine, config), context.seccomp() if engine.local else None)
        else:
            yield _image(engine, config)
    except PodbotError as exc:
        yield _failed("engine", exc)
    finally:
        engine.close()


def _disk(context: DoctorContext, engine: Engine, config: AppConfig) -> Check:
    try:
        is_there = config.image and engine.image(config.image) is not None
        return check_disk(
            context.disks(engine.host()), None if is_there else room_for_first(load_recipe()), engine.words
        )
    except PodbotError as exc:
        return _failed("disk", exc)


def _image(engine: Engine, config: AppConfig) -> Check:
    if not config.image:
        return Check("image", "fail", "none is configured", "podbot has no image to run agents in.", BUILD_ONE)
    where = f"{config.image} ({config.origin('image')})"
    found = engine.image(config.image)
    if found is None:
        return Check("image", "fail", f"{where} is not on the engine", "No session can start.", _get(engine, config))
    agents = found.labels.get(LABEL_AGENTS)
    missing = sorted({*config.sandbox.packages} - packages_in(found.labels))
    if missing and not other_image(config):
        reason = f"{config.image} was built without {', '.join(missing)} ({config.origin('sandbox.packages')})"
        return Check("image", "warn", reason, "Sessions lack these packages.", BUILD_ONE)
    return Check("image", "ok", f"{where}, {found.size / 1e6:.0f} MB" + (f", {agents}" if agents else ""))


def _get(engine: Engine, config: AppConfig) -> str:
    """How to get the image that the configuration names."""
    image = other_image(config)
    if not image:
        return BUILD_ONE
    if engine.words.can_fetch(image):
        return f"{engine.words.pull} {shlex.quote(image)}"
    return f"build {image} again, or choose another image"


def _failed(name: str, exc: PodbotError) -> Check:
    return Check(name, "fail", exc.message, "", exc.remedy)
