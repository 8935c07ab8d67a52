"""An evaluation whose model is a script: it uses the tools of an agent in podbot's sandboxes."""

from __future__ import annotations

import os

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash, python

MODEL = "mockllm/model"
TAG = os.environ["E2E_TAG"]  # of e2e/harness.py


@task
def waiting() -> Task:
    """A sample whose command does not end."""
    call = ModelOutput.for_tool_call(MODEL, "bash", {"command": f"sleep 48445.{TAG}"})
    call.usage = ModelUsage()
    return Task(
        dataset=[Sample(input="Wait.", target="")],
        solver=[use_tools([bash()]), generate()],
        model=get_model(MODEL, custom_outputs=[call]),
        sandbox="podbot",
    )


def outputs(samples: int) -> list[ModelOutput]:
    """What the model says, in order, for samples one after another."""
    conversation = [
        ModelOutput.for_tool_call(MODEL, "bash", {"command": "cat data.txt secret/setup.txt; id -u"}),
        ModelOutput.for_tool_call(MODEL, "python", {"code": "print(6 * 7)"}),
        ModelOutput.for_tool_call(MODEL, "bash", {"command": "sleep 48443"}),
        ModelOutput.from_content(MODEL, "The answer is 42."),
    ]
    for output in conversation:
        output.usage = ModelUsage()  # otherwise Inspect counts tokens, with a table that it downloads
    return conversation * samples


@task
def sandboxed(samples: int = 2) -> Task:
    """``samples`` samples, each with a file and a setup script."""
    return Task(
        dataset=[
            Sample(
                input="What is in data.txt?",
                target="42",
                files={"data.txt": f"file of {number}\n"},
                setup="#!/bin/sh\nmkdir secret; echo made by setup > secret/setup.txt",
            )
            for number in range(samples)
        ],
        solver=[use_tools([bash(timeout=2), python(timeout=30)]), generate()],
        scorer=includes(),
        model=get_model(MODEL, custom_outputs=outputs(samples)),
        sandbox="podbot",
    )
