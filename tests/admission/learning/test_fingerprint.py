"""What tells whether a container is the one that an earlier run was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from admission.learning.fingerprint import MAX_TEXT, fingerprint, is_same
from admission.values import Unit
from tests.builders import unit, workload


def of(made: Unit) -> str:
    """Return the fingerprint of *made* in a Job."""
    return fingerprint(made, workload(made))


def having(**fields: Any) -> Unit:
    """Return a unit whose container has *fields* too."""
    made = unit()
    container = {**made.container_spec, **fields}
    return replace(
        made, container_spec=container, program=replace(made.program, container=container)
    )


LR = {"name": "LR", "value": "0.1"}
BATCH = {"name": "BATCH", "value": "32"}


def test_where_it_runs_and_what_it_asks_for_make_no_other() -> None:
    """A job with other cards, or more memory of its node, is the same job."""
    asked = having(resources={"limits": {"memory": "64Gi", "nvidia.com/gpu": "1"}})
    placed = unit(nodeSelector={"zone": "a"})

    assert of(asked) == of(placed) == of(unit())


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "example.com/train:2"},
        {"command": ["python", "other.py"]},
        {"args": ["--batch-size=32"]},
        {"env": [BATCH]},
        {"envFrom": [{"configMapRef": {"name": "knobs"}}]},
    ],
    ids=["image", "command", "args", "env", "envFrom"],
)
def test_what_it_runs_makes_another(fields: dict[str, Any]) -> None:
    """So whoever changes a batch size starts afresh."""
    assert of(having(**fields)) != of(unit())


def test_a_spec_that_is_stated_makes_another() -> None:
    """It is the owner's word on what runs."""
    assert of(unit(annotations={"vramgate.dev/spec": "{}"})) != of(unit())


def test_another_container_that_starts_it_makes_another() -> None:
    """The launcher of an MPIJob says what its workers run."""
    made = unit()
    launcher = {"name": "launcher", "command": ["mpirun", "train", "--batch-size=32"]}
    other = {"name": "launcher", "command": ["mpirun", "train", "--batch-size=64"]}

    first, second = (
        of(replace(made, program=replace(made.program, container=each)))
        for each in (launcher, other)
    )

    assert first != second != of(made)


def test_what_the_api_server_fills_in_makes_no_other() -> None:
    """A job as it was sent is the one that was stored."""
    sent = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    stored = {
        "name": "NODE",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
    }

    assert of(having(env=[sent])) == of(having(env=[stored]))


def test_a_pod_has_variables_more_than_its_template() -> None:
    """Controllers add ranks and addresses; what the template sets has to be there."""
    template = of(having(env=[LR]))
    made = of(having(env=[LR, {"name": "JOB_COMPLETION_INDEX", "value": "0"}]))
    other = of(having(env=[BATCH, {"name": "JOB_COMPLETION_INDEX", "value": "0"}]))

    assert is_same(template, made, is_made=True)
    assert not is_same(template, made, is_made=False)
    assert not is_same(template, other, is_made=True)


def test_it_is_short_whatever_there_is() -> None:
    """Also of thousands of variables."""
    many = [{"name": f"V{number}", "value": "x"} for number in range(5000)]

    assert len(of(having(env=many, args=["x" * 100_000]))) < MAX_TEXT


@pytest.mark.parametrize("text", ["", "a", "a.b.c", "a.b.c.d.e", "...."])
def test_nonsense_is_nothing(text: str) -> None:
    """Whoever wrote it."""
    assert not is_same(text, of(unit()), is_made=True)
