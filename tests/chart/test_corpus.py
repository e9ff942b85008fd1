"""The conditions against the reader, on every manifest of the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.codes import ReasonCode
from admission.workloads import kind_of, read_workload
from tests.chart.recorder import Recorder
from tests.chart.rendering import REPOSITORY, Document
from tests.chart.samples import NAMESPACE
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

CORPUS = sorted((REPOSITORY / "tests" / "corpus").glob("*.yaml"))


def objects(path: Path) -> list[Document]:
    """Return the objects of *path* that the webhooks' rules name."""
    found: list[Any] = list(yaml.safe_load_all(path.read_text()))
    kinds = [(each, kind_of(each)) for each in found if isinstance(each, dict)]
    return [each for each, kind in kinds if kind is not None and not kind.explain_only]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_manifest_is_sent_if_there_is_something_to_judge(
    api: ApiServer, sent: Recorder, path: Path
) -> None:
    """The conditions keep from Vramgate what its reader finds no GPU in, and nothing else."""
    for document in objects(path):
        document["metadata"]["namespace"] = NAMESPACE
        skip = read_workload(document).skip
        sent.forget()

        answer = api.create(document, dry_run=True)

        assert bool(sent.seen) == (skip is not ReasonCode.NO_GPU), answer.message
