"""The least that lets an API server store a kind that it does not bring.

    API version, kind -> CustomResourceDefinition

Nothing of an object's content is checked, and its status is part of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.chart import cert_manager, prometheus_operator
from tests.chart.rendering import Document
from tests.chart.samples import BUILT_IN, SAMPLES
from tests.e2e.rest import plural

OLDER = {("kubeflow.org", "MPIJob"): ("v2beta1", "v1alpha1")}
"""Versions beside the one that samples are written in."""


def definitions() -> Iterable[Document]:
    """Return the definitions of all kinds of samples, and of what the chart makes."""
    kinds = [(each.api_version, each.kind) for each in SAMPLES if each.group not in BUILT_IN]
    for api_version, kind in kinds:
        yield definition(api_version, kind)
    yield from cert_manager.definitions()
    yield from prometheus_operator.definitions()


def definition(api_version: str, kind: str) -> Document:
    """Return the definition of *kind*."""
    group, _, version = api_version.rpartition("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = (version, *OLDER.get((group, kind), ()))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural(kind)}.{group}",
            # Groups below k8s.io are guarded; this says that we know.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural(kind), "singular": kind.lower()},
            "versions": [
                {
                    "name": each,
                    "served": True,
                    "storage": each == version,
                    "schema": {"openAPIV3Schema": schema},
                }
                for each in versions
            ],
        },
    }
