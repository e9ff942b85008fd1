"""What was read once is remembered, and only for what reads the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.capacity.classes import classes_of
from admission.errors import RequestError
from admission.judge.views import Views, read_views
from admission.readings import RememberedViews
from admission.steer.notes import NOTES
from admission.steer.terms import RECORD
from admission.values import NO_DOCUMENTS, Document, Documents
from admission.workloads import read_workload
from tests.admission.steer.scene import A10, T4, nodes
from tests.admission.test_handler import job
from tests.builders import GPU

CORPUS = Path(__file__).parents[1] / "corpus"
CLASSES = classes_of(nodes((T4, A10)))
ELSEWHERE = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": f"{GPU}.memory", "operator": "Gt", "values": ["20000"]}]}
]}}  # fmt: skip

Object = dict[str, Any]


def known(
    memory: RememberedViews, obj: Mapping[str, Any], *, documents: Documents = NO_DOCUMENTS
) -> Views | None:
    """Return what is remembered of *obj*."""
    return memory.known(read_workload(obj), classes=CLASSES, documents=documents)


def read(
    memory: RememberedViews, obj: Mapping[str, Any], *, documents: Documents = NO_DOCUMENTS
) -> Views:
    """Read *obj* and remember it."""
    workload = read_workload(obj)
    views = read_views(workload, classes=CLASSES, documents=documents)
    memory.keep(workload, views, classes=CLASSES, documents=documents)
    return views


def anew(obj: Mapping[str, Any]) -> Views:
    """Return what reading *obj* gives."""
    return read_views(read_workload(obj), classes=CLASSES)


def named_otherwise(obj: Object) -> Object:
    """Return *obj* as the next of its kind: another name, and what goes with one."""
    metadata = {
        **(obj.get("metadata") or {}),
        "name": "another",
        "uid": "0815",
        "labels": {"job-name": "another"},
        "managedFields": [{"manager": "kubectl"}],
    }
    return {**obj, "metadata": metadata}


def steered(part: Any) -> Any:
    """Return *part* with everything that `/mutate` may write, in each pod template."""
    if isinstance(part, list):
        return [steered(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {key: steered(value) for key, value in part.items()}
    pod = found.get("spec")
    if isinstance(pod, dict) and isinstance(pod.get("containers"), list):
        metadata = found.get("metadata") or {}
        notes = dict.fromkeys((*NOTES, RECORD), "{}")
        annotations = {**(metadata.get("annotations") or {}), **notes}
        labels = {**(metadata.get("labels") or {}), "controller-uid": "0815"}
        found["metadata"] = {**metadata, "annotations": annotations, "labels": labels}
        containers = [
            {**item, "terminationMessagePolicy": "FallbackToLogsOnError"}
            for item in pod["containers"]
        ]
        found["spec"] = {**pod, "containers": containers, "affinity": {"nodeAffinity": ELSEWHERE}}
    return found


def corpus() -> Iterator[tuple[str, Object]]:
    """Yield the objects of the corpus that can be read."""
    for path in sorted(CORPUS.glob("*.yaml")):
        for obj in yaml.safe_load_all(path.read_text()):
            try:
                if isinstance(obj, dict) and read_workload(obj).units:
                    yield path.stem, obj
            except RequestError:
                continue


def test_whatever_is_remembered_is_what_would_be_read() -> None:
    """Over the whole corpus: of the next object of its kind, and of the steered one."""
    num_known = 0
    for name, obj in corpus():
        memory = RememberedViews()
        read(memory, obj)
        for other in (named_otherwise(obj), steered(obj), steered(named_otherwise(obj))):
            views = known(memory, other)

            assert views is None or views == anew(other), name
            num_known += views is not None
    assert num_known > 100


def test_a_steered_object_is_known_and_reaches_less() -> None:
    """`/validate` sees what `/mutate` read, with our terms; a T4 is closed to it."""
    memory = RememberedViews()
    before = read(memory, job())

    views = known(memory, steered(job()))

    assert views is not None
    assert views[0].reading is before[0].reading
    assert len(before[0].reach.reachable) == 2
    assert [found.product for found in views[0].reach.reachable] == ["NVIDIA-A10"]


def _changed(**container: object) -> Object:
    obj = job()
    obj["spec"]["template"]["spec"]["containers"][0] |= container
    return obj


@pytest.mark.parametrize(
    "other",
    [
        _changed(command=["python", "other.py"]),
        _changed(args=["--batch-size", "16"]),
        _changed(image="example.com/train:2"),
        _changed(env=[{"name": "BATCH", "value": "9"}]),
        _changed(resources={"limits": {GPU: "2"}}),
        job(batch_size=9),
        job(annotations={"vramgate.dev/spec-ref": "configmap/other"}),
        {**job(), "metadata": {**job()["metadata"], "namespace": "others"}},
    ],
)
def test_whatever_is_read_makes_another_job(other: Object) -> None:
    """And another namespace: nobody finds what somebody else has sent."""
    memory = RememberedViews()
    read(memory, job())

    assert known(memory, job()) is not None
    assert known(memory, other) is None


def test_documents_are_part_of_a_reading() -> None:
    """The same job with another text in its ConfigMap is another job."""
    memory = RememberedViews()
    one = {"configmap/launch": Document(files={"run.sh": "python train.py"})}
    other = {"configmap/launch": Document(files={"run.sh": "python other.py"})}
    read(memory, job(), documents=one)

    assert known(memory, job(), documents=deepcopy(one)) is not None
    assert known(memory, job(), documents=other) is None
    assert known(memory, job()) is None


def test_other_nodes_are_reached_anew() -> None:
    """What was read stays; where it may go does not."""
    memory = RememberedViews()
    read(memory, job())
    fewer = classes_of(nodes((A10,)))

    views = memory.known(read_workload(job()), classes=fewer, documents=NO_DOCUMENTS)

    assert views == read_views(read_workload(job()), classes=fewer)


def test_malformed_terms_are_refused_although_the_rest_is_known() -> None:
    """Where the pods go is no part of what was read."""
    memory = RememberedViews()
    read(memory, job())
    malformed = job()
    malformed["spec"]["template"]["spec"]["affinity"] = "anywhere"

    with pytest.raises(RequestError, match="affinity"):
        known(memory, malformed)


def test_the_oldest_is_forgotten() -> None:
    """There is room for so many and no more."""
    memory = RememberedViews(entries=2)
    for batch_size in (1, 2, 3):
        read(memory, job(batch_size=batch_size))

    assert known(memory, job(batch_size=1)) is None
    assert known(memory, job(batch_size=3)) is not None


def test_what_is_large_is_not_kept() -> None:
    """A model written out in an annotation is read again each time."""
    memory = RememberedViews()
    spec = {"framework": "pytorch", "model": {"source": "huggingface", "name": "own/model",
            "config": {"id2label": {str(n): "x" * 40 for n in range(1000)}}},
            "input": {"batchSize": 1}}  # fmt: skip
    read(memory, job(spec=spec))

    assert known(memory, job(spec=spec)) is None
