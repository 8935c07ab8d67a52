"""Doctor: whether this machine is ready, and how to fix it if not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.api.engines import driver_of, environment
from podbot.config.models import AppConfig, LoadOptions
from podbot.events import Emit, Event, ignore

if TYPE_CHECKING:
    from podbot.diagnosis.doctor import DoctorContext
    from podbot.engine.check import Check
    from podbot.engine.port import Engine

__all__ = ["doctor"]


def doctor(
    options: LoadOptions,
    *,
    probe_image: bool = False,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[Check]:
    """Check the configuration, this machine, the engine, the image and the GitHub App.

    Changes nothing, except that it starts podbot's engine service where no engine runs.

    Returns the checks in the order in which problems must be fixed. Errors are not raised but become failed checks.
    ``probe_image``: also run a temporary container of the image, without network and mounts, to find what it lacks.
    """
    from podbot.diagnosis.doctor import diagnose

    text = f"checking this machine, the engine and {'a container of the' if probe_image else 'the'} image"
    emit(Event("info", "doctor.start", text, {"probe_image": probe_image}))
    return list(diagnose(this_machine(options, environment(environ), emit), probe_image=probe_image))


def this_machine(options: LoadOptions, environ: Mapping[str, str], emit: Emit) -> DoctorContext:
    """The real machine, configuration and engine. ``emit`` gets events about sessions that a killed podbot left."""
    from podbot.config.load import config_location, load_config
    from podbot.diagnosis.certificate_checks import check_certificates
    from podbot.diagnosis.disk_checks import look_at_disks
    from podbot.diagnosis.doctor import DoctorContext
    from podbot.launch.seccomp import profile_path
    from podbot.management.login_list import list_logins
    from podbot.places import home_dir, private_runtime_root, state_dir
    from podbot.session.orphans import report_orphans
    from podbot.session.seccomp_filter import place_seccomp
    from podbot.tokens.systemd_unit import unit_path

    def config_file() -> str:
        path, _, exists = config_location(options)
        return path if exists else f"the defaults: there is no {path}"

    def connected(config: AppConfig) -> Engine:
        engine = driver_of(config).connect(config, environ, emit)
        report_orphans(engine, environ, emit)
        return engine

    return DoctorContext(
        machine=lambda config: driver_of(config).machine(environ),
        load=lambda: load_config(options),
        config_file=config_file,
        locate=lambda config: driver_of(config).locate(config, environ),
        connect=connected,
        runtime_dir=lambda: private_runtime_root(environ),
        disks=lambda host: look_at_disks(host, environ),
        seccomp=lambda: place_seccomp(profile_path(os.path.realpath(state_dir(environ)))),
        token_unit=os.path.exists(unit_path(environ)),
        certificates=lambda config: check_certificates(config, os.path.realpath(home_dir(environ))),
        logins=lambda config: list_logins(environ, config),
    )
