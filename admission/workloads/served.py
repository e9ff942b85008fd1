"""Deployment, StatefulSet (apps) and Notebook (kubeflow.org): pods that run until told to stop.

Serving or interactive as a rule, so they are counted and nothing is said about them.
"""

from __future__ import annotations

from admission.values import Documents, Json
from admission.workloads.fields import amount, at
from admission.workloads.kind import Pods
from admission.workloads.units import template_of


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the template of role `main`."""
    spec = at(obj, "", "spec")
    replicas = amount(spec.get("replicas"), "spec.replicas")
    template = template_of(spec.get("template"), "spec.template", role="main", replicas=replicas)
    return Pods(templates=(template,))
