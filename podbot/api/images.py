"""Images: build podbot's own, list those that are there, and set a machine up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from podbot.api.engines import driver_of, environment, open_engine
from podbot.config.models import AppConfig, LoadOptions
from podbot.events import Emit, ignore

if TYPE_CHECKING:
    from podbot.engine.driver import EngineMachine
    from podbot.engine.port import Engine
    from podbot.images.image_build import BuildContext, BuildRequest, BuildResult
    from podbot.images.images_list import SandboxImage
    from podbot.provisioning.setup import SetupPlan, SetupResult

__all__ = ["build_image", "list_images", "setup"]


def build_image(
    config: AppConfig,
    request: BuildRequest,
    *,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> BuildResult:
    """Build the sandbox image, after waiting for another podbot that builds on the same engine.

    What is built already is not built again. Raises InvalidValue and ImageNotFound before anything is built,
    NoImageBuilder, then ImageBuildFailed, EngineStorageFull, DiskFull and EngineGone; the tag is then what it was.
    """
    from podbot.images.build_turn import build_turn
    from podbot.images.image_build import build_image as build
    from podbot.images.image_build import plan_build
    from podbot.session.orphans import report_orphans

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_orphans(engine, environ, emit)
        context = build_context(engine, driver_of(config).machine(environ), environ, emit)
        plan_build(context, request)  # what cannot be built is refused before any waiting
        with build_turn(environ, engine.endpoint, emit):
            return build(plan_build(context, request), context)


def list_images(
    config: AppConfig, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> list[SandboxImage]:
    """podbot's images on the engine, newest first. Raises ContainerError subclasses."""
    from podbot.images.images_list import sandbox_images
    from podbot.session.orphans import report_orphans

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_orphans(engine, environ, emit)
        return sandbox_images(engine)


def setup(
    options: LoadOptions,
    *,
    agents: Collection[str] | None = None,
    force: bool = False,
    approve: Callable[[SetupPlan], object] | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> SetupResult:
    """Make this machine ready: the sandbox image on the engine, and its name in the configuration file. Idempotent.

    ``agents``: None is those that the image has, or claude. ``force``: build anew. ``approve`` is called with a plan
    that has something to do, before anything is done; what it raises ends the call. Raises MachineNotReady before
    anything is built when no session could start here, ConfigError subclasses, and what :func:`build_image` raises.
    """
    from podbot.config.load import config_location, load_config
    from podbot.errors import ServiceStartFailed
    from podbot.images.build_turn import build_turn
    from podbot.provisioning.setup import check_machine_ready, check_ready, plan_setup
    from podbot.provisioning.setup import setup as carry_out
    from podbot.session.orphans import report_orphans

    environ = environment(environ)
    config = load_config(options)
    path, _, _ = config_location(options)
    driver = driver_of(config)
    machine = driver.machine(environ)
    try:
        engine = driver.connect(config, environ, emit)
    except ServiceStartFailed as exc:
        # The engine alone often names a file, and not the cause.
        check_machine_ready(machine, config, driver.WORDS.name, exc.reason)
        raise
    try:
        report_orphans(engine, environ, emit)
        context = build_context(engine, machine, environ, emit)
        decide = partial(plan_setup, context, config=config, config_path=path, agents=agents, force=force)
        plan = decide()
        is_private = driver.locate(config, environ) is None
        check_ready(plan, context, engine, machine, config, is_private=is_private)
        if plan.steps and approve is not None:
            approve(plan)
        if plan.build is None:
            return carry_out(plan, context)
        with build_turn(environ, engine.endpoint, emit):
            return carry_out(decide(), context)  # the one before us may have built it
    finally:
        engine.close()


def build_context(engine: Engine, machine: EngineMachine, environ: Mapping[str, str], emit: Emit) -> BuildContext:
    """The engine's part that makes images, this machine, and podbot's recipe. Raises NoImageBuilder and PathError."""
    from podbot.images.image_build import BuildContext, builder_of
    from podbot.images.recipe import load_recipe

    return BuildContext(
        recipe=load_recipe(),
        facts=machine.facts,
        environ=environ,
        find_image=engine.image,
        builder=builder_of(engine),
        words=engine.words,
        emit=emit,
        base_hint=machine.image_hint,
    )
