"""Argo: parameters through templates, steps and tasks; patches; conditions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.values import Document
from admission.workloads import read_workload
from admission.workloads.argo_values import UNKNOWN, filled, is_never
from tests.admission.workloads.objects import GPU, gpu_template, workflow


def _parameters(**values: object) -> dict[str, Any]:
    listed = [{"name": name, "value": value} for name, value in values.items()]
    return {"parameters": listed}


def _trainer(*args: str, gpus: object = 1, **fields: Any) -> dict[str, Any]:
    inputs = fields.pop("inputs", {"parameters": [{"name": "bs"}]})
    container = {"args": list(args), "resources": {"limits": {GPU: gpus}}}
    return {"name": "train", "inputs": inputs, "container": container, **fields}


def _steps(*steps: dict[str, Any], name: str = "main") -> dict[str, Any]:
    return {"name": name, "steps": [[step] for step in steps]}


def _step(template: str = "train", name: str = "s", **fields: Any) -> dict[str, Any]:
    return {"name": name, "template": template, **fields}


def test_parameters_go_through_several_levels() -> None:
    """From the workflow, through a task and a step, into the middle of a text."""
    obj = workflow(
        {
            "name": "main",
            "dag": {
                "tasks": [
                    _step("middle", arguments=_parameters(b="{{workflow.parameters.batch}}0"))
                ]
            },
        },
        {
            **_steps(_step(arguments=_parameters(bs="{{inputs.parameters.b}}")), name="middle"),
            "inputs": {"parameters": [{"name": "b"}]},
        },
        _trainer("--bs={{ inputs.parameters.bs }},{{workflow.parameters.batch}}"),
        arguments=_parameters(batch=8),
    )

    (unit,) = read_workload(obj).units

    assert unit.role == "train"
    assert unit.container_path == "spec.templates[2].container"
    assert unit.container_spec["args"] == ["--bs=80,8"]


@pytest.mark.parametrize(
    ("inputs", "arguments", "expected"),
    [
        ([{"name": "bs", "default": 4}], {}, "4"),
        ([{"name": "bs", "value": "4"}], {}, "4"),
        ([{"name": "bs", "value": "4"}], {"bs": 8}, "8"),
        ([{"name": "bs", "default": True}], {}, "true"),
        ([{"name": "bs", "default": 4.0}], {}, "4"),
        ([{"name": "bs", "default": [1, 2]}], {}, "[1,2]"),
        ([{"name": "bs"}], {}, "{{inputs.parameters.bs}}"),
        (
            [
                {
                    "name": "bs",
                    "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}},
                }
            ],
            {},
            "16",
        ),
    ],
)
def test_inputs_have_values_of_their_own(
    inputs: list[dict[str, Any]], arguments: dict[str, Any], expected: str
) -> None:
    """What is given by nobody stays as it is written, and so is unknown."""
    obj = workflow(
        _steps(_step(arguments=_parameters(**arguments))),
        _trainer("{{inputs.parameters.bs}}", inputs={"parameters": inputs}),
    )
    documents = {"configmap/c": Document(files={"k": "16"})}

    (unit,) = read_workload(obj, documents=documents).units

    assert unit.container_spec["args"] == [expected]


def test_config_maps_that_parameters_come_from_are_wanted() -> None:
    """Of the workflow's own namespace, until somebody has looked."""
    source = {"configMapKeyRef": {"name": "c", "key": "k"}, "default": "8"}
    obj = workflow(gpu_template(), arguments={"parameters": [{"name": "x", "valueFrom": source}]})

    assert read_workload(obj).wanted == ("configmap/c",)
    assert (
        read_workload(obj, documents={"configmap/c": Document(problem="is not there")}).wanted == ()
    )


def test_gpus_may_stand_in_a_patch() -> None:
    """A text, filled in and merged over the pod by the container's name."""
    patch = """
        nodeSelector: {a: b}
        containers:
          - name: main
            resources: {limits: {nvidia.com/gpu: "{{workflow.parameters.gpus}}"}}
    """
    trainer = {"name": "main", "container": {"image": "i"}, "podSpecPatch": patch}
    (unit,) = read_workload(workflow(trainer, arguments=_parameters(gpus="4"))).units

    assert (unit.gpus, unit.are_gpus_known) == (4, True)
    assert unit.container_spec["image"] == "i"
    assert unit.pod["nodeSelector"] == {"a": "b"}


def test_gpus_of_a_patch_may_be_open() -> None:
    """The unit is there all the same."""
    patch = "containers: [{name: main, resources: {limits: {nvidia.com/gpu: '{{x}}'}}}]"

    (unit,) = read_workload(
        workflow({"name": "main", "container": {}, "podSpecPatch": patch})
    ).units

    assert (unit.gpus, unit.are_gpus_known) == (1, False)


def test_broken_patch_is_a_problem() -> None:
    """What it would have changed is not known."""
    workload = read_workload(workflow(gpu_template(podSpecPatch="{a: [")))

    (problem,) = workload.problems
    assert (problem.code, problem.path) == (
        ReasonCode.TEMPLATE,
        "spec.templates[0].podSpecPatch",
    )


@pytest.mark.parametrize(
    ("when", "number"),
    [
        ("{{workflow.parameters.on}} == true", 0),
        ("'{{workflow.parameters.on}}' != 'false'", 0),
        ("{{workflow.parameters.on}} == true || {{workflow.parameters.no}} == true", 1),
        ("{{workflow.parameters.on}} == true && {{workflow.parameters.no}} == true", 0),
        ("{{workflow.parameters.on}} == false", 1),
        ("{{steps.a.outputs.result}} == x", 1),
        ("false", 0),
        ("", 1),
    ],
)
def test_steps_that_surely_do_not_run_are_left_out(when: str, number: int) -> None:
    """What depends on something unknown may run."""
    obj = workflow(_steps(_step(when=when)), _trainer(), arguments=_parameters(on=False))

    assert len(read_workload(obj).units) == number


@pytest.mark.parametrize("condition", [None, 3, "a > b", "(a == b)", "{{x}} == y"])
def test_conditions_that_are_not_understood_may_be_true(condition: object) -> None:
    """Leaving a step out needs certainty."""
    assert not is_never(condition)


@pytest.mark.parametrize(
    ("fields", "args"),
    [
        ({"withItems": [8, {"n": 1}]}, ["8", '{"n":1}']),
        ({"withParam": "[1, 2]"}, ["1", "2"]),
        ({"withParam": "{{steps.a.outputs.result}}"}, ["{{item}}"]),
        ({"withSequence": {"count": "2"}}, ["0", "1"]),
        ({"withSequence": {"count": "{{n}}"}}, ["{{item}}"]),
        ({"withItems": "{{workflow.parameters.x}}"}, ["{{item}}"]),
    ],
)
def test_a_step_is_repeated_for_its_items(fields: dict[str, Any], args: list[str]) -> None:
    """Each that differs is a unit of its own; a list only known at run time is one."""
    obj = workflow(
        _steps(_step(arguments=_parameters(bs="{{item}}"), **fields)),
        _trainer("{{inputs.parameters.bs}}"),
    )

    units = read_workload(obj).units

    assert [unit.container_spec["args"] for unit in units] == [[one] for one in args]


def test_equal_pods_are_replicas_and_others_are_told_apart_by_their_step() -> None:
    """Five runs of the same, and one with another batch size."""
    obj = workflow(
        _steps(
            _step(name="sweep", withItems=[1, 2, 3], arguments=_parameters(bs=4)),
            _step(name="big", arguments=_parameters(bs=64)),
        ),
        _trainer("{{inputs.parameters.bs}}"),
    )

    units = read_workload(obj).units

    assert [(unit.role, unit.replicas) for unit in units] == [
        ("train (sweep)", 3),
        ("train (big)", 1),
    ]


def test_scripts_and_container_sets_are_pods_too() -> None:
    """A script's source is what its shell runs."""
    gpus = {"limits": {GPU: 1}}
    script = {"command": ["bash"], "source": "python x.py", "resources": gpus}
    group = {"containers": [{"name": "a"}, {"name": "b", "resources": gpus}]}
    obj = workflow(
        _steps(_step("one"), _step("two")),
        {"name": "one", "script": script},
        {"name": "two", "containerSet": group},
    )

    one, two = read_workload(obj).units

    assert one.container_spec["command"] == ["bash", "-c", "python x.py"]
    assert one.container_path == "spec.templates[1].script"
    assert two.container_path == "spec.templates[2].containerSet.containers[1]"


def test_a_pod_has_what_the_workflow_says_of_all() -> None:
    """Volumes add up, a template's own selector takes the place of the workflow's."""
    obj = workflow(
        gpu_template(nodeSelector={"own": "x"}, volumes=[{"name": "b"}]),
        nodeSelector={"all": "x"},
        tolerations=[{"key": "{{workflow.parameters.k}}"}],
        volumes=[{"name": "a"}],
        podMetadata={"annotations": {"note": "{{workflow.parameters.k}}"}},
        arguments=_parameters(k="v"),
    )

    (unit,) = read_workload(obj).units

    assert unit.pod["nodeSelector"] == {"own": "x"}
    assert unit.pod["tolerations"] == [{"key": "v"}]
    assert [volume["name"] for volume in unit.pod["volumes"]] == ["a", "b"]
    assert unit.pod_metadata == {"annotations": {"note": "v"}}


def test_templates_of_other_workflows_are_looked_up() -> None:
    """Among the manifests; what is not there is left to the check of its pods."""
    step = {"name": "s", "templateRef": {"name": "lib", "template": "main"}}
    obj = workflow(_steps(step))
    body = {"spec": {"templates": [gpu_template()]}}
    documents = {"workflowtemplate/lib": Document(files={"": json.dumps(body)})}

    (unit,) = read_workload(obj, documents=documents).units

    assert unit.container_path == "workflowtemplate/lib: spec.templates[0].container"
    assert read_workload(obj).skip is ReasonCode.NO_GPU


def test_a_workflow_may_be_another_object_as_a_whole() -> None:
    """Its own arguments are put over that one's."""
    text = (
        '{"spec": {"entrypoint": "m", "arguments": {"parameters": [{"name": "x", "value": "1"}]},'
        '"templates": [{"name": "m", "container": {"args": ["{{workflow.parameters.x}}"],'
        '"resources": {"limits": {"nvidia.com/gpu": 1}}}}]}}'
    )
    obj = workflow(workflowTemplateRef={"name": "lib"}, arguments=_parameters(x="2"))
    del obj["spec"]["entrypoint"], obj["spec"]["templates"]
    documents = {"workflowtemplate/lib": Document(files={"": text})}

    (unit,) = read_workload(obj, documents=documents).units

    assert unit.container_spec["args"] == ["2"]
    assert read_workload(obj).skip is ReasonCode.DOCUMENT


def test_templates_that_call_each_other_end() -> None:
    """However they are tied together."""
    loop = _steps(_step("main"), _step("main"), _step("train"))

    assert len(read_workload(workflow(loop, _trainer())).units) == 1


def test_expressions_stay_one_word() -> None:
    """Their quotes would fall apart in a shell; plain references stay as they are."""
    value = "a-{{=sprig.replace('/', '_', x)}} {{inputs.parameters.y}} {{workflow.name}}"

    assert filled(value, {"inputs.parameters.y": "1"}) == f"a-{UNKNOWN} 1 {{{{workflow.name}}}}"


def test_texts_do_not_grow_without_end() -> None:
    """A parameter that repeats another cannot make us write for ever."""
    long = {"x": "a" * 60_000}

    assert len(filled("{{x}}{{x}}{{x}}", long)) <= 1 << 16


def test_odd_texts_are_walked_once() -> None:
    """Braces that never close and conditions of blanks: work that grew with the square or cube."""
    assert filled("{{" + " " * 200_000, {}) == ("{{" + " " * 200_000)[:65_536]
    assert filled("{{" + " a" * 30_000, {}) == "{{" + " a" * 30_000
    assert not is_never(" " * 30_000 + "a" + " " * 30_000)
    assert is_never(" a  == b ")


def test_large_parameters_are_left_out_before_they_are_put_in() -> None:
    """A megabyte at fifty places of a hundred words would be five gigabytes."""
    text = "{{inputs.parameters.a}}" * 50
    assert filled([text] * 100, {"inputs.parameters.a": "x" * 1_000_000}) == [text] * 100


def test_templates_that_are_called_often_have_one_limit() -> None:
    """Two hundred calls of a template of a megabyte: the rest is named, not read."""
    step = _step("train")
    calls = [{**step, "name": f"s{number}"} for number in range(200)]
    body = {**_trainer("python", "x.py"), "metadata": {"annotations": {"a": "{{x}}" * 200_000}}}
    read = read_workload(workflow(_steps(*calls), body))
    assert any("too much text" in problem.reason for problem in read.problems)
