"""``podbot doctor``: look at the configuration, the machine, the engine, the image and the App; change nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from podbot.config.models import AppConfig, LoadOptions
from podbot.diagnosis.check import Check
from podbot.diagnosis.disk_checks import Disks, check_disk, room_for_first
from podbot.diagnosis.github_checks import check_github
from podbot.diagnosis.image_checks import check_image
from podbot.diagnosis.machine_checks import check_machine
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman.private.machine import MachineFacts
from podbot.engine.port import Engine, EngineHost
from podbot.errors import PodbotError
from podbot.events import Emit, ignore
from podbot.images.recipe import LABEL_AGENTS, load_recipe

BUILD_ONE = "podbot setup"


@dataclass(frozen=True, slots=True)
class Patient:
    """What doctor asks of the world; :func:`this_machine` is the real one."""

    facts: MachineFacts
    podman_version: str
    load: Callable[[], AppConfig]
    config_path: Callable[[], str]
    locate: Callable[[AppConfig], Endpoint | None]
    connect: Callable[[AppConfig], Engine]
    runtime_dir: Callable[[], str]
    disks: Callable[[EngineHost], Disks]
    seccomp: Callable[[], str]
    token_unit: bool = False
    github: Callable[[AppConfig], Iterator[Check]] = check_github


def this_machine(options: LoadOptions, environ: Mapping[str, str], emit: Emit = ignore) -> Patient:
    """The real machine, configuration and engine. ``emit`` hears of sessions that a killed podbot left."""
    from podbot.config.load import config_location, load_config
    from podbot.diagnosis.disk_checks import look_at_disks
    from podbot.engine.podman.connect import connect, locate
    from podbot.engine.podman.private.machine import detect
    from podbot.launch.seccomp import profile_path
    from podbot.places import private_runtime_root, state_dir
    from podbot.session.confined import place_seccomp
    from podbot.session.facts import podman_version
    from podbot.session.orphans import report_orphans
    from podbot.tokens.systemd_unit import unit_path

    def connected(config: AppConfig) -> Engine:
        engine = connect(config, environ, emit)
        report_orphans(engine, environ, emit)
        return engine

    facts = detect(environ)
    return Patient(
        facts=facts,
        podman_version=podman_version(facts.programs.get("podman", "")),
        load=lambda: load_config(options),
        config_path=lambda: config_location(options)[0],
        locate=lambda config: locate(config, environ),
        connect=connected,
        runtime_dir=lambda: private_runtime_root(environ),
        disks=lambda host: look_at_disks(host, environ),
        seccomp=lambda: place_seccomp(profile_path(os.path.realpath(state_dir(environ)))),
        token_unit=os.path.exists(unit_path(environ)),
    )


def diagnose(patient: Patient, *, probe_image: bool = False) -> Iterator[Check]:
    """Every check, in the order in which things must be fixed; no error escapes, each becomes a check.

    ``probe_image``: also run a throw-away container of the image to see what it lacks.
    """
    config, check = _config(patient)
    yield check
    yield _runtime_dir(patient)
    endpoint, check_endpoint = _endpoint(patient, config)
    if check_endpoint is not None:
        yield check_endpoint
    elif endpoint is None or endpoint.local:
        network = config.sandbox.network
        yield from check_machine(patient.facts, patient.podman_version, network=network, token_unit=patient.token_unit)
    if check_endpoint is None:
        yield from _engine(patient, config, endpoint, probe_image=probe_image)
    yield from patient.github(config)


def _config(patient: Patient) -> tuple[AppConfig, Check]:
    """The configuration, or the defaults when it is not valid, so that the rest can be looked at."""
    try:
        config = patient.load()
        return config, Check("config", "ok", patient.config_path())
    except PodbotError as exc:
        return AppConfig(), _failed("config", exc)


def _runtime_dir(patient: Patient) -> Check:
    try:
        return Check("runtime-dir", "ok", patient.runtime_dir())
    except PodbotError as exc:
        return _failed("runtime-dir", exc)


def _endpoint(patient: Patient, config: AppConfig) -> tuple[Endpoint | None, Check | None]:
    try:
        return patient.locate(config), None
    except PodbotError as exc:
        return None, _failed("engine", exc)


def _engine(patient: Patient, config: AppConfig, endpoint: Endpoint | None, *, probe_image: bool) -> Iterator[Check]:
    try:
        engine = patient.connect(config)
    except PodbotError as exc:
        yield _failed("engine", exc)
        return
    try:
        info = engine.ping()
        origin = endpoint.origin if endpoint is not None else "podbot's private service"
        yield Check("engine", "ok", f"Podman {info.version} at {info.endpoint} ({origin})")
        if engine.local:
            yield _disk(patient, engine, config)
        if probe_image and config.image:
            yield from check_image(engine, config, BUILD_ONE, patient.seccomp() if engine.local else None)
        else:
            yield _image(engine, config)
    except PodbotError as exc:
        yield _failed("engine", exc)
    finally:
        engine.close()


def _disk(patient: Patient, engine: Engine, config: AppConfig) -> Check:
    try:
        is_there = config.image and engine.image(config.image) is not None
        return check_disk(patient.disks(engine.host()), None if is_there else room_for_first(load_recipe()))
    except PodbotError as exc:
        return _failed("disk", exc)


def _image(engine: Engine, config: AppConfig) -> Check:
    if not config.image:
        return Check("image", "fail", "none is configured", "podbot has no image to run agents in.", BUILD_ONE)
    where = f"{config.image} ({config.origin('image')})"
    found = engine.image(config.image)
    if found is None:
        return Check("image", "fail", f"{where} is not on the engine", "No session can start.", BUILD_ONE)
    agents = found.labels.get(LABEL_AGENTS)
    return Check("image", "ok", f"{where}, {found.size / 1e6:.0f} MB" + (f", {agents}" if agents else ""))


def _failed(name: str, exc: PodbotError) -> Check:
    return Check(name, "fail", exc.message, "", exc.remedy)
