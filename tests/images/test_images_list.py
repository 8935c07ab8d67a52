"""podbot's images as the engine lists them."""

from __future__ import annotations

from podbot.engine.podman import rest_answers
from podbot.images.images_list import SandboxImage, sandbox_images
from podbot.testing import IMAGE, FakeEngine

LABELS = {"io.podbot.image": "sandbox", "io.podbot.version": "0.1.0", "io.podbot.agents": "claude=2,codex=0.1"}


def test_agents_and_versions_are_read_from_the_labels() -> None:
    engine = FakeEngine()
    engine.image_labels = LABELS
    (found,) = sandbox_images(engine)
    assert found == SandboxImage(IMAGE, "f" * 64, "0.1.0", {"claude": "2", "codex": "0.1"}, 1 << 20, 1767225600.0)


def test_images_of_others_are_not_listed() -> None:
    engine = FakeEngine()
    engine.image_labels = {"io.podbot.image": "other"}
    assert sandbox_images(engine) == []


def test_the_engines_list_has_its_own_form() -> None:
    item = {"Id": "a" * 64, "RepoTags": None, "Created": 1795299892, "Size": 5, "Labels": LABELS}
    (found,) = rest_answers.images([{**item, "History": ["localhost/a:1"]}])
    assert found.former_tags == ("localhost/a:1",)
    (found,) = rest_answers.images([item])
    assert (found.tags, found.size, found.created) == ((), 5, 1795299892.0)
    assert rest_answers.images(None) == []
