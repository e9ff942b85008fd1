"""The kinds of the Prometheus operator that the chart may make an object of.

a Go module -> CustomResourceDefinitions with their whole schemas
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from tests import gobuild
from tests.chart.rendering import Document

MODULE = "github.com/prometheus-operator/prometheus-operator"
VERSION = "v0.85.0"
CHECKSUM = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
PLURALS = ("podmonitors", "prometheusrules", "servicemonitors")


def definitions() -> Iterator[Document]:
    """Return the definitions.

    Raises:
        BuildError: if the module cannot be had.
    """
    module = gobuild.downloaded(MODULE, version=VERSION, checksum=CHECKSUM)
    folder = module / "example" / "prometheus-operator-crd"
    for plural in PLURALS:
        path = folder / f"monitoring.coreos.com_{plural}.yaml"
        yield yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
