"""Runs the Python blocks of docs/how-to/inspect.md with a model that follows a script, and prints a result of each.

Run by ``e2e/test_inspect.py`` with the page and a directory for Inspect's logs. ``PODBOT_IMAGE`` is also the image of
the page's second block.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from inspect_ai import Task, eval  # noqa: A004 - as Inspect's documentation imports it
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash

MODEL = "mockllm/model"
IMAGE = "localhost/mine"  # as the page names it


def page(text: str, place: Path) -> ModuleType:
    """The blocks as one module of a user's."""
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", text)
    assert IMAGE in text
    file = place / "page_task.py"
    file.write_text("\n".join(blocks).replace(IMAGE, os.environ["PODBOT_IMAGE"]), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("page_task", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["page_task"] = module
    spec.loader.exec_module(module)
    return module


def result(task: Task, command: str, answer: str, logs: str) -> dict[str, Any]:
    """What an evaluation says of its only sample, in which the model runs ``command`` and then says ``answer``."""
    said = [ModelOutput.for_tool_call(MODEL, "bash", {"command": command}), ModelOutput.from_content(MODEL, answer)]
    for output in said:
        output.usage = ModelUsage()  # otherwise Inspect counts tokens, with a table that it downloads
    (log,) = eval(task, model=get_model(MODEL, custom_outputs=said), log_dir=logs, display="none")
    (sample,) = log.samples
    return {
        "status": log.status,
        "accuracy": log.results.scores[0].metrics["accuracy"].value,
        "printed": [message.text for message in sample.messages if message.role == "tool"],
    }


def main(path: str, place: str) -> None:
    """Evaluate the page's task, and one in the sandbox of its second block."""
    found = page(Path(path).read_text(encoding="utf-8"), Path(place))
    chosen = Task(
        dataset=[Sample(input="Who are you?", target="1000")],
        solver=[use_tools([bash(timeout=60)]), generate()],
        scorer=includes(),
        sandbox=found.sandbox,
    )
    results = [
        result(found.arithmetic(), "python3 sum.py", "It prints 42.", place),
        result(chosen, "id -u; pwd", "My id is 1000.", place),
    ]
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
