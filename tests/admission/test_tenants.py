"""What one tenant writes changes nothing for another: digests, annotations, references."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

import estimator
from admission.estimates import EstimatePool
from admission.learning.floors import Learnt
from admission.learning.lesson import LEARNT, RETRY
from admission.sources.cluster_objects import ClusterObjects
from admission.sources.references import ReferenceProblem, parse_reference
from admission.values import Document
from admission.workloads import read_workload
from estimator.device import Device
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec, parse_spec
from estimator.spec.jobspec import STATED
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.admission.detect.jobs import container, job, read
from tests.builders import device, estimate

MINIMAL: dict[str, Any] = {
    "framework": "pytorch",
    "model": {"source": "huggingface", "name": "gpt2", "task": "causal-lm"},
    "input": {"batchSize": 4, "sequenceLength": 128},
}
SPEC = "vramgate.dev/spec"
CAMEL = re.compile(r"_(\w)")


def with_part(part: str, **values: Any) -> dict[str, Any]:
    """Return the minimal spec with *values* in *part*, which stands there in any case."""
    beside: Mapping[str, Any] = {
        "quantization": {"bits": 8, "scheme": "int8"},
        "adapter": {"type": "lora"},
    }
    return {**MINIMAL, part: {**beside.get(part, {}), **values}}


def _default(part: str, name: str) -> Any:
    """Return the default of a key as people write it; None for one that has none."""
    document = parse_spec(with_part(part)).normalised()
    return document[part].get(CAMEL.sub(lambda match: match[1].upper(), name))


CASES = [(part, name) for part, names in STATED.items() for name in names]


@pytest.mark.parametrize(("part", "name"), [each for each in CASES if _default(*each) is not None])
def test_a_default_that_is_stated_is_another_job_where_trainers_choose(
    part: str, name: str
) -> None:
    """Else who states it answers for everybody who leaves it to the framework."""
    key = CAMEL.sub(lambda match: match[1].upper(), name)
    absent = parse_spec(with_part(part))
    stated = parse_spec(with_part(part, **{key: _default(part, name)}))

    assert stated.normalised() == absent.normalised()
    assert stated.digest() != absent.digest()


def test_no_part_of_the_estimator_asks_what_was_stated_behind_the_digest() -> None:
    """Whatever is found by digest may depend on nothing that the digest does not see."""
    asked = re.compile(r"((?:\"\w+\"[, ]*)+|\{[^}]*\})\s*(?:not in|in|&)\s*[\w.]*model_fields_set")
    known = {name for names in STATED.values() for name in names} | {"data_parallel"}
    found = set()
    for path in Path(estimator.__path__[0]).rglob("*.py"):
        for match in asked.finditer(path.read_text("utf-8")):
            found |= set(re.findall(r'"(\w+)"', match[1])) - {"r"}

    assert {"keep_outputs", "use_cache", "zero"} <= found
    assert found <= known


def test_nobody_speaks_for_a_recorded_job_without_its_trace() -> None:
    """Its digest may be stated by anybody: a failure under it would be remembered for its owner."""
    model = {"source": "trace", "name": "theirs", "revision": "sha256:" + "a" * 64}
    text = orjson.dumps({**MINIMAL, "model": model}).decode()

    reading = read(job(container("python", "train.py"), annotations={SPEC: text}))

    assert reading.spec is None
    assert "'trace' is not accepted" in " ".join(each.reason for each in reading.unknowns)


class Workers:
    """Answer by what the spec says, as trainers do that choose unless they are told."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device."""
        spec = spec_of(job)
        keeps = "keep_outputs" in spec.training.model_fields_set
        need = GIB * (1 if keeps else 2)
        return tuple(estimate(least=need, card=card, spec=spec) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return nothing."""
        del spec, devices
        return ()


async def test_the_answer_to_one_spec_is_nobody_elses() -> None:
    """Two jobs that differ in what is stated alone are asked for apart."""
    pool = EstimatePool(Workers())
    mine = parse_spec(with_part("training", keepOutputs=True))
    theirs = parse_spec(MINIMAL)

    (first,) = await pool.estimate(mine, [device()])
    (second,) = await pool.estimate(theirs, [device()])

    assert (first.least.device_bytes, second.least.device_bytes) == (GIB, 2 * GIB)


@pytest.mark.parametrize(
    "reference",
    [
        "configmap/../secrets/key",
        "configmap/other/../../secrets/a",
        "configmap/a%2F..%2Fsecrets",
        "secret/a",
        "configmap/A",
        "configmap/",
        "configmap/a\u202eb",
        "configmap/a\nb",
        "configmap/a?fieldSelector=x",
    ],
)
def test_a_reference_leads_to_no_other_resource(reference: str) -> None:
    """No other namespace, no Secret: a name is a name and nothing else."""
    with pytest.raises(ReferenceProblem):
        parse_reference(reference)


def test_a_spec_ref_names_no_namespace() -> None:
    """`configmap/OTHER-NAMESPACE/NAME/KEY` is the key `NAME/KEY` of a ConfigMap of one's own."""
    theirs = Document(files={"spec.yaml": orjson.dumps(MINIMAL).decode()})
    annotations = {"vramgate.dev/spec-ref": "configmap/other/name/spec.yaml"}

    reading = read(
        job(container("python", "train.py"), annotations=annotations),
        documents={"configmap/other": theirs, "configmap/name": theirs},
    )

    assert reading.spec is None
    assert "has no key name/spec.yaml" in " ".join(each.reason for each in reading.unknowns)


class Asked:
    """An API client that keeps the paths it is asked for."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def param_serialize(self, method: str, path: str, **_: Any) -> tuple[str, ...]:
        """Keep the path."""
        del method
        self.paths.append(path)
        raise OSError

    def call_api(self, *_: Any, **__: Any) -> Any:
        """Answer nothing."""
        raise OSError


def test_a_config_map_is_asked_for_in_the_namespace_of_the_request() -> None:
    """Whatever the object says of itself."""
    client: Any = Asked()

    ClusterObjects(client).fetch(parse_reference("configmap/a"), namespace="team")

    assert client.paths == ["/api/v1/namespaces/team/configmaps/a"]


def test_what_an_annotation_says_was_learnt_is_of_its_own_object_alone() -> None:
    """A peak or a death that somebody wrote down raises what that object needs, and no other's."""
    lesson = {"container": "train", "card": "T4", "gaveBytes": 1, "when": "", "fingerprint": "x"}
    annotations = {RETRY: str(1 << 40), LEARNT: orjson.dumps(lesson).decode()}
    learnt = Learnt()
    body = container("python", "train.py")

    learnt.floors(read_workload(job(body, annotations=annotations)))

    assert learnt.floors(read_workload(job(body))) == (None,)
