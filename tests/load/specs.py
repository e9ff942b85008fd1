"""Specs that nobody has seen before, and objects that carry them.

    number -> JobSpec document, no two alike -> object with the annotation

MXNet's frontend needs no framework: a short run estimates with it alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import orjson

from tests.admission.workloads.objects import OBJECTS

NAMESPACES: Mapping[str, Mapping[str, str]] = {
    **{f"team-{number}": {} for number in range(6)},
    "strict": {"vramgate.dev/mode": "enforce"},
    "watched": {"vramgate.dev/mode": "warn", "vramgate.dev/steer": "off"},
    "silent": {"vramgate.dev/mode": "off"},
}
"""Namespaces and their labels."""
SPEC = "vramgate.dev/spec"
MXNET_MODELS = ("alexnet", "squeezenet1.0", "resnet18_v1", "mobilenet0.25")
TORCH_MODELS = ("resnet18", "mobilenet_v3_small")
HEAVY_MODEL = "resnet152_v1"
"""Takes a worker long enough that it can be found at work."""
BATCHES = 400
"""Sizes of a batch that are gone through before a model has other classes: a job at a further
batch is not traced again."""
LAUNCH = "launch"
"""How the names of ConfigMaps begin."""
CONFIG_MAPS = 100_000_000
"""Numbers of the specs in ConfigMaps begin here."""
CARRIERS = ("Job", "Pod", "PyTorchJob", "CronJob", "JobSet", "RayJob")
"""Kinds that unseen specs come in."""


def mxnet_spec(*, model: str = "alexnet", batch: int = 8, num_labels: int = 1000) -> dict[str, Any]:
    """Return the JobSpec of a training step of one of MXNet's models."""
    return {
        "framework": "mxnet",
        "model": {"source": "mxnet", "name": model, "numLabels": num_labels},
        "input": {"batchSize": batch, "imageSize": [3, 224, 224]},
    }


def torch_spec(*, model: str, batch: int, num_labels: int = 1000) -> dict[str, Any]:
    """Return the JobSpec of a training step of one of torchvision's models."""
    return {
        "framework": "pytorch",
        "model": {"source": "torchvision", "name": model, "numLabels": num_labels},
        "input": {"batchSize": batch, "imageSize": [3, 224, 224]},
    }


def unseen_spec(number: int, *, uses_torch: bool) -> dict[str, Any]:
    """Return a spec with a digest of its own: *number* counts up through a run."""
    rank, place = divmod(number, len(MXNET_MODELS))
    more, batch = divmod(rank, BATCHES)
    if uses_torch and place == 0:
        model = TORCH_MODELS[more % len(TORCH_MODELS)]
        return torch_spec(model=model, batch=1 + batch, num_labels=2 + more)
    return mxnet_spec(model=MXNET_MODELS[place], batch=1 + batch, num_labels=2 + more)


def heavy_spec(number: int) -> dict[str, Any]:
    """Return a spec that takes a worker long, with a digest of its own."""
    return mxnet_spec(model=HEAVY_MODEL, batch=4, num_labels=2000 + number)


def annotated(
    kind: str, spec: Mapping[str, Any] | None, *, name: str, namespace: str
) -> dict[str, Any]:
    """Return an object of *kind* whose owner says what it trains."""
    made = copy.deepcopy(OBJECTS[kind])
    metadata = {**made.get("metadata", {}), "name": name, "namespace": namespace}
    if spec is not None:
        metadata["annotations"] = {SPEC: orjson.dumps(spec).decode()}
    return {**made, "metadata": metadata}


def carrier(number: int, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with *spec*, its kind and namespace in turn by *number*."""
    kind = CARRIERS[number % len(CARRIERS)]
    namespace = list(NAMESPACES)[number % len(NAMESPACES)]
    return annotated(kind, spec, name=f"unseen-{number}", namespace=namespace)


def scripted(number: int, *, namespace: str) -> dict[str, Any]:
    """Return a Job whose spec is in a ConfigMap, the one with this *number*."""
    name = f"{LAUNCH}-{number}"
    made = annotated("Job", None, name=f"job-{name}", namespace=namespace)
    made["metadata"]["annotations"] = {"vramgate.dev/spec-ref": f"configmap/{name}/spec.json"}
    return made


def from_hub(name: str, *, namespace: str) -> dict[str, Any]:
    """Return a Job that trains the model *name* of the Hub."""
    spec = {
        "framework": "pytorch",
        "model": {"source": "huggingface", "name": name, "task": "causal-lm"},
        "input": {"batchSize": 1, "sequenceLength": 64},
    }
    return annotated("Job", spec, name="hub", namespace=namespace)


def config_map(name: str) -> str | None:
    """Return the spec that the ConfigMap *name* holds: its number says which, or none is there."""
    stem, _, number = name.rpartition("-")
    if stem != LAUNCH:
        return None
    return orjson.dumps(unseen_spec(CONFIG_MAPS + int(number), uses_torch=False)).decode()
