"""Kinds that the settings describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.codes import Operation, ReasonCode
from admission.commands.cases import read_case
from admission.config import parse_settings
from admission.errors import RequestError, SettingsError
from admission.reader import ReviewReader
from admission.review import Review
from admission.workloads import KINDS, read_workload
from admission.workloads.custom import with_custom
from admission.workloads.kind import Kinds
from tests.admission.workloads.objects import template


def _kinds(templates: str, more: str = "") -> Kinds:
    settings = parse_settings(
        f"workloads: {{kinds: [{{group: example.com, kind: Run, templates: {templates}, {more}}}]}}"
    )
    return with_custom(KINDS, settings.workloads.kinds)


def _run(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v2", "kind": "Run", "spec": spec}


def test_one_template_at_a_path() -> None:
    """Any version of the group; the framework counts where nothing else tells."""
    kinds = _kinds(
        "[{path: spec.template, role: trainer, replicasPath: spec.nodes}]",
        "framework: jax, observeOnly: true",
    )

    workload = read_workload(_run(template=template(), nodes=4), kinds=kinds)

    (unit,) = workload.units
    assert (unit.role, unit.replicas) == ("trainer", 4)
    assert unit.container_path == "spec.template.spec.containers[1]"
    assert (workload.framework, workload.observe_only) == ("jax", True)


@pytest.mark.parametrize(
    "roles",
    [
        [
            {"name": "a", "count": 1, "template": template()},
            {"name": "b", "count": 2, "template": template()},
        ],
        {
            "a": {"count": 1, "template": template()},
            "b": {"count": 2, "template": template()},
        },
    ],
    ids=["list", "mapping"],
)
def test_templates_in_a_list_or_mapping(roles: object) -> None:
    """Each has its own number, and its name is its role."""
    kinds = _kinds("[{path: 'spec.roles[*].template', replicasPath: 'spec.roles[*].count'}]")

    units = read_workload(_run(roles=roles), kinds=kinds).units

    assert [(unit.role, unit.replicas) for unit in units] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("spec", [{}, {"roles": None}, {"roles": []}, {"roles": [None]}])
def test_what_is_not_there_is_no_pod(spec: dict[str, Any]) -> None:
    """Null is as good as nothing."""
    kinds = _kinds("[{path: 'spec.roles[*].template'}]")

    assert read_workload(_run(**spec), kinds=kinds).skip is ReasonCode.NO_GPU


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"roles": 3}, "spec.roles: "),
        ({"roles": [{"template": 3}]}, "spec.roles[0].template: "),
        ({"roles": [3]}, "spec.roles[0]: "),
        ({"roles": [{"name": str(i), "template": template()} for i in range(65)]}, "object: 65"),
    ],
)
def test_wrong_types_name_the_path(spec: dict[str, Any], path: str) -> None:
    """As in every other kind."""
    kinds = _kinds("[{path: 'spec.roles[*].template'}]")

    with pytest.raises(RequestError) as caught:
        read_workload(_run(**spec), kinds=kinds)

    assert caught.value.message.startswith(path)


def test_kinds_that_are_read_already_are_refused() -> None:
    """Twice the same, or one of our own: both are said."""
    settings = parse_settings(
        """
        workloads:
          kinds:
            - {group: batch, kind: Job, templates: [{path: spec.template}]}
            - {group: example.com, kind: Run, templates: [{path: spec.template}]}
            - {group: example.com, kind: Run, templates: [{path: spec.template}]}
        """
    )

    with pytest.raises(SettingsError) as caught:
        with_custom(KINDS, settings.workloads.kinds)

    assert [problem.path for problem in caught.value.problems] == [
        "workloads.kinds[0]",
        "workloads.kinds[2]",
    ]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("{kind: Run, templates: [{path: a}]}", "workloads.kinds[0].group"),
        ("{group: g, kind: run, templates: [{path: a}]}", "workloads.kinds[0].kind"),
        ("{group: g, kind: Run, templates: []}", "workloads.kinds[0].templates"),
        (
            "{group: g, kind: Run, templates: [{path: 'a..b'}]}",
            "workloads.kinds[0].templates[0].path",
        ),
        (
            "{group: g, kind: Run, templates: [{path: 'a[0]'}]}",
            "workloads.kinds[0].templates[0].path",
        ),
        (
            "{group: g, kind: Run, templates: [{path: a}], framework: theano}",
            "workloads.kinds[0].framework",
        ),
        ("{group: g, kind: Run, templates: [{path: a}], steer: 1}", "workloads.kinds[0].steer"),
    ],
)
def test_settings_are_strict(kind: str, path: str) -> None:
    """Each mistake is named by its path."""
    with pytest.raises(SettingsError) as caught:
        parse_settings(f"workloads: {{kinds: [{kind}]}}")

    assert [problem.path for problem in caught.value.problems] == [path]


@pytest.mark.parametrize("is_small", [True, False])
async def test_the_webhook_reads_kinds_of_the_settings(is_small: bool) -> None:
    """On its loop and beside it."""
    obj = _run(template=template("nvidia-smi"))
    review = Review(
        uid="u",
        api_version="example.com/v2",
        kind="Run",
        resource="runs",
        operation=Operation.CREATE,
        namespace="team",
        name="r",
        object=obj,
    )
    reader = ReviewReader(kinds=_kinds("[{path: spec.template}]"))

    read = await reader.read(review, obj, classes=(), seconds=60, is_small=is_small)

    assert read is not None
    workload, _ = read
    assert [unit.container_path for unit in workload.units] == ["spec.template.spec.containers[1]"]


def test_explain_reads_kinds_of_the_settings(tmp_path: Path) -> None:
    """The same file as the webhook's."""
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(_run(template=template())), "utf-8")
    kinds = _kinds("[{path: spec.template}]")

    case = read_case([str(file)], nodes=None, gpu="t4", kinds=kinds)

    assert [len(workload.units) for workload in case.workloads] == [1]
