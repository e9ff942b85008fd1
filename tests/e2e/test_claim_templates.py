"""A claim template with the selector that `explain` writes, on a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.steer.claims import claim_templates
from admission.values import Document
from estimator.units import GIB
from tests.admission.steer.test_claims import claimed, taking
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "request_",
    [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}},
        {"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.nvidia.com"}]},
    ],
    ids=["exactly", "alternatives"],
)
def test_written_selector_compiles(api: ApiServer, request_: dict[str, Any]) -> None:
    """The API server checks its CEL, and knows every field."""
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"namespace": "default", "name": "one-gpu"},
        "spec": {"spec": {"devices": {"requests": [request_]}}},
    }
    documents = {"resourceclaimtemplate/one-gpu": Document(files={"": json.dumps(body)})}
    unit = taking(claimed(16 * GIB, 24 * GIB, need=20 * GIB))

    (changed,) = claim_templates([unit], documents)

    answer = api.create(dict(changed), dry_run=True, strict=True)
    assert (answer.status, answer.warnings) == (201, ()), answer.message
