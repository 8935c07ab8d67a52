"""The packages' names exist, and importing podbot loads none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import podbot.sections
import podbot.suites
import podbot.tools

PACKAGES = [podbot.tools, podbot.sections, podbot.suites]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.__name__))
def test_every_public_name_is_loaded_when_it_is_used(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert dir(package) == sorted(names)
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="nope"):
        package.nope  # type: ignore[attr-defined] # noqa: B018


def test_the_tools_package_has_the_names_of_sections_and_suites() -> None:
    for package in (podbot.sections, podbot.suites):
        for name in package.__all__:
            assert name in podbot.tools.__all__
            assert getattr(podbot.tools, name) is getattr(package, name)


def test_podbot_does_not_load_them_by_itself() -> None:
    code = (
        "import sys, podbot, podbot.tools, podbot.sections, podbot.suites; podbot.Event; "
        "rooms = ('podbot.tools.', 'podbot.sections.', 'podbot.suites.', 'podbot.api'); "
        "print([name for name in sys.modules if name.startswith(rooms)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
