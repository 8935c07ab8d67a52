"""Images: build podbot's own, list existing ones, and remove them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from podbot.api.engines import driver_of, environment, open_engine
from podbot.config.models import AppConfig
from podbot.errors import ImageNotRemoved
from podbot.events import Emit, Event, ignore

if TYPE_CHECKING:
    from podbot.engine.driver import EngineMachine
    from podbot.engine.port import Engine
    from podbot.images.image_build import BuildContext, BuildRequest, BuildResult
    from podbot.images.images_list import SandboxImage
    from podbot.images.images_remove import Removable

__all__ = ["build_image", "list_images", "named_images", "remove_images", "unused_images"]


def build_image(
    config: AppConfig,
    request: BuildRequest,
    *,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> BuildResult:
    """Build the sandbox image, after waiting for another podbot that builds on the same engine.

    Existing layers are not built again. Raises InvalidValue, ImageNotFound and NoImageBuilder before anything is built,
    then ImageBuildFailed, EngineStorageFull, DiskFull and EngineGone, which leave the tag unchanged.
    """
    from podbot.images.build_turn import build_turn
    from podbot.images.image_build import build_image as build
    from podbot.images.image_build import plan_build
    from podbot.images.image_names import remember_images
    from podbot.provisioning.setup import requested
    from podbot.provisioning.stages import Stages
    from podbot.session.orphans import report_orphans

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_orphans(engine, environ, emit)
        context = build_context(engine, driver_of(config).machine(environ), environ, emit)
        request = requested(request, config)
        plan_build(context, request)  # refuses an invalid request before any waiting
        with build_turn(environ, engine.endpoint, emit):
            plan = plan_build(context, request)
            result = build(plan, replace(context, emit=Stages(emit, plan.steps)))
    remember_images(environ, [result.image], all_of_them=False)
    return result


def list_images(
    config: AppConfig, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> list[SandboxImage]:
    """podbot's images on the engine, newest first. Raises ContainerError subclasses."""
    from podbot.images.image_names import remember_images
    from podbot.images.images_list import sandbox_images
    from podbot.session.orphans import report_orphans

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_orphans(engine, environ, emit)
        found = sandbox_images(engine)
    remember_images(environ, [image.image for image in found], all_of_them=True)
    return found


def named_images(
    config: AppConfig, names: Sequence[str], *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> list[Removable]:
    """The images called ``names``, for :func:`remove_images`. Raises ImageNotRemoved if one is not podbot's."""
    from podbot.images.image_build import builder_of
    from podbot.images.images_remove import named_images as named

    with open_engine(config, environ=environment(environ), emit=emit) as engine:
        builder_of(engine)  # the error of an engine without one comes before any question
        return named(engine, names)


def unused_images(
    config: AppConfig, needed: Collection[str] = (), *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> list[Removable]:
    """podbot's images that no container needs, oldest first, for :func:`remove_images`.

    The image of ``config``, those called ``needed`` and those that this podbot builds are not among them, nor those to
    which the operator gave a name.
    """
    from podbot.images.image_build import builder_of
    from podbot.images.images_remove import unused_images as unused
    from podbot.images.recipe import load_recipe

    recipe = load_recipe()
    with open_engine(config, environ=environment(environ), emit=emit) as engine:
        builder_of(engine)
        return unused(engine, {config.image or "", recipe.image, recipe.base, *needed})


def remove_images(
    config: AppConfig, images: Sequence[Removable], *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> Iterator[tuple[Removable, ImageNotRemoved | None]]:
    """Remove each, and yield it with None, or with the reason why it stays.

    Waits for another podbot that builds on the same engine, unless there is nothing to remove. Raises NoImageBuilder.
    """
    from podbot.images.build_turn import build_turn
    from podbot.images.image_build import builder_of
    from podbot.images.image_names import forget_image
    from podbot.images.images_remove import remove_image

    if not images:
        return
    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine, build_turn(environ, engine.endpoint, emit):
        for image in images:
            emit(Event("info", "image.remove", f"removing {image.image}", {"image": image.image}))
            try:
                remove_image(engine, builder_of(engine), image)
            except ImageNotRemoved as exc:
                yield image, exc
                continue
            forget_image(environ, image.reference)
            yield image, None


def build_context(engine: Engine, machine: EngineMachine, environ: Mapping[str, str], emit: Emit) -> BuildContext:
    """The engine's image builder, this machine, and podbot's recipe. Raises NoImageBuilder and PathError."""
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
