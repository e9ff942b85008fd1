"""Objects of the cluster: what is asked for, before anybody is asked."""

from __future__ import annotations

from typing import Any

import pytest

from admission.sources.cluster_objects import ClusterObjects
from admission.sources.references import parse_reference


class Refusing:
    """An API client that nobody may call."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


@pytest.mark.parametrize(
    "namespace", ["a/secrets/b?", "../x", "a/../b", "UPPER", "a.b", "a b", "x" * 64, "-a", "a\n"]
)
def test_namespace_is_no_path(namespace: str) -> None:
    """It is text of the object under review: it leads to no other resource, no Secret."""
    objects = ClusterObjects(Refusing())
    found = objects.fetch(parse_reference("configmap/a"), namespace=namespace)
    assert "is no namespace" in found.problem
