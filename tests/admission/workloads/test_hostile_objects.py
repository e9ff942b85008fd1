"""Whatever is sent, reading ends in a workload or a RequestError."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from admission.detect import read_unit
from admission.detect.words import words
from admission.errors import RequestError
from admission.values import NO_DOCUMENTS, Document, Documents, Workload
from admission.workloads import KINDS, read_workload
from tests.admission.workloads.objects import OBJECTS, RUNTIME, trainjob

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20)
)
KEYS = st.sampled_from(
    words(
        "spec template metadata annotations containers initContainers resources limits requests "
        "nvidia.com/gpu name image command args env value valueFrom envFrom claims resourceClaims "
        "restartPolicy jobTemplate pytorchReplicaSpecs Worker replicas parallelism status "
        "conditions ownerReferences controller vramgate.dev/spec workingDir mpiReplicaSpecs "
        "replicatedJobs tasks plugins svc pytorch rayClusterSpec entrypoint runtimeEnvYAML "
        "templates steps dag arguments parameters inputs podSpecPatch script containerSet tuning "
        "preset resource instanceType trainer runtimeRef leaderWorkerTemplate size replicaSpecs"
    )
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)
WORDS = st.lists(
    st.sampled_from(
        [
            *words("bash sh -c python python3 -m torchrun accelerate launch deepspeed train.py"),
            *words("run_clm.py main.py --model -b 64 --nproc_per_node=2 --batch-size= -a"),
            *words("${X} $(X) {{x}} --deepspeed --fsdp"),
            "--model_name_or_path=org/x",
            "--per_device_train_batch_size",
            'python main.py -a resnet50 -b 64 && X=$(ls) python train.py "$@" \'',
            'A=$A$A; A+=(x "${A[@]}"); if x; then eval "$A"; fi <<E\n',
        ]
    )
    | st.text(max_size=30),
    max_size=12,
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """Return a well-formed Job with odd words in it."""
    container = {
        "name": "c",
        "image": draw(st.text(max_size=20)),
        "command": draw(WORDS),
        "args": draw(WORDS),
        "env": [{"name": "X", "value": draw(st.text(max_size=20))}],
        "resources": {"limits": {"nvidia.com/gpu": draw(st.integers(1, 8))}},
    }
    annotations = {"vramgate.dev/spec": draw(st.text(max_size=80) | st.just("{model: {name: 3}}"))}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x", "annotations": annotations},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def _read_all(obj: object, documents: Documents = NO_DOCUMENTS) -> Workload | None:
    try:
        workload = read_workload(obj, documents=documents)
        readings = [
            read_unit(unit, workload=workload, documents=documents) for unit in workload.units
        ]
    except RequestError:
        return None
    for reading in readings:
        answers = (reading.spec is not None, reading.skip is not None, bool(reading.unknowns))
        assert sum(answers) == 1
    return workload


@settings(max_examples=300, deadline=None)
@given(obj=JSON, kind=st.sampled_from(sorted(KINDS)))
def test_any_json_is_a_workload_or_a_request_error(obj: object, kind: tuple[str, str]) -> None:
    """No other exception leaves, for any object of any kind."""
    group, name = kind
    api_version = f"{group}/v1" if group else "v1"
    if isinstance(obj, dict):
        obj = {**obj, "apiVersion": api_version, "kind": name}

    _read_all(obj)


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of everything in *value*."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _put(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    """Return *value* with *new* at *path*."""
    if not path:
        return new
    key, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _put(value[key], tuple(rest), new)
    return copy


@st.composite
def damaged(draw: st.DrawFn, obj: dict[str, Any]) -> Any:
    """Return *obj* with something else in one or two of its places."""
    for _ in range(draw(st.integers(1, 2))):
        places = [path for path in _places(obj) if path[0] not in ("apiVersion", "kind")]
        obj = _put(obj, draw(st.sampled_from(places)), draw(JSON))
    return obj


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(OBJECTS)).flatmap(lambda kind: damaged(OBJECTS[kind])))
def test_objects_with_something_odd_in_them_are_read_or_refused(obj: dict[str, Any]) -> None:
    """Whatever kind, whatever place."""
    _read_all(obj)


@settings(max_examples=100, deadline=None)
@given(damaged(RUNTIME), damaged(trainjob({"numNodes": 2, "command": ["tune", "run"]})))
def test_runtimes_with_something_odd_in_them_are_read_or_refused(
    runtime: dict[str, Any], obj: dict[str, Any]
) -> None:
    """A TrainJob of a broken runtime is no fault of ours."""
    documents = {"clustertrainingruntime/torch": Document(files={"": json.dumps(runtime)})}

    _read_all(obj, documents)


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_anything_may_be_given_as_a_runtime(body: object) -> None:
    """It came from outside."""
    documents = {"clustertrainingruntime/torch": Document(files={"": json.dumps(body)})}

    _read_all(trainjob(), documents)


@settings(max_examples=300, deadline=None)
@given(
    container=st.dictionaries(KEYS, JSON, max_size=6),
    metadata=JSON,
    resources=st.sampled_from(
        [{"limits": {"nvidia.com/gpu": 1}}, {"requests": {"amd.com/gpu": 1}}]
    ),
)
def test_any_container_is_read_or_refused(
    container: dict[str, Any], metadata: object, resources: dict[str, Any]
) -> None:
    """No other exception leaves when a GPU container's fields are anything."""
    pod = {"containers": [{**container, "resources": resources}]}

    _read_all({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})


@settings(max_examples=300, deadline=None)
@given(jobs())
def test_any_command_line_gives_exactly_one_answer(obj: dict[str, Any]) -> None:
    """A job that the API server accepts is a spec, a skip or unknown, never an error."""
    assert _read_all(obj) is not None
