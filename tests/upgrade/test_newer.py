"""What a later release wrote is refused in words, or left alone: never read as if it were ours."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from admission.config import load_settings
from admission.controller.learning import Learning
from admission.errors import SettingsError
from admission.learning import residuals_text
from admission.learning.deaths import KEY, read_deaths
from admission.learning.measured import Measured
from admission.learning.version import VERSION, is_later
from estimator.errors import SpecError
from estimator.spec import parse_spec
from estimator.tracefile import read_recording
from tests.admission.controller.cluster import Cluster
from tests.upgrade.jobs import JOBS
from tests.upgrade.samples import DEATH, GROUP, SAMPLE, releases

NAMESPACE = "vramgate-system"
LEARNED = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vramgate-learned"
KEPT = releases()[-1]


def problems(document: dict[str, Any]) -> str:
    """Return why a JobSpec is refused."""
    with pytest.raises(SpecError) as caught:
        parse_spec(document)
    return str(caught.value)


@pytest.mark.parametrize("key", [KEY, residuals_text.KEY])
def test_what_a_later_release_learned_is_not_read(key: str) -> None:
    """Its numbers may mean something else."""
    later = {**orjson.loads(KEPT.json("learned.json")[key]), "version": VERSION + 1}
    text = orjson.dumps(later).decode()

    assert is_later(text)
    assert not read_deaths(text)
    assert not residuals_text.read(text)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"version": "2"}', '{"version": true}'])
def test_nonsense_is_of_no_release(text: str) -> None:
    """It is written over."""
    assert not is_later(text)


def test_what_a_later_release_learned_is_left_where_it_is() -> None:
    """An upgrade that was rolled back finds it again when it is tried anew; it is told once."""
    cluster: Any = Cluster()
    later = '{"version": 2, "anything": [1]}'
    data = {KEY: later, residuals_text.KEY: later, "theirs": "x"}
    cluster.put(LEARNED, {"metadata": {"name": "vramgate-learned"}, "data": data})
    learning = Learning(cluster, namespace=NAMESPACE)

    with structlog.testing.capture_logs() as lines:
        for _ in range(2):
            learning.learn(DEATH)
            learning.remember(Measured(group=GROUP, sample=SAMPLE))

    assert cluster.read(LEARNED).document["data"] == data
    assert [(line["event"], line["key"]) for line in lines] == [
        ("learned by a later version", KEY),
        ("learned by a later version", residuals_text.KEY),
    ]


def test_job_spec_of_a_later_version_is_refused_by_its_version() -> None:
    """The version that is accepted is named."""
    said = problems({**JOBS[0], "apiVersion": "vramgate.dev/v2"})

    assert "apiVersion" in said
    assert "vramgate.dev/v1" in said


def test_field_of_a_later_release_is_refused_by_its_path() -> None:
    """An unknown key may be a memory saver that we do not know, or a typing error."""
    said = problems({**JOBS[0], "training": {**JOBS[0]["training"], "holography": True}})

    assert said.startswith("training.holography: ")


@pytest.mark.parametrize(
    ("changes", "path"), [({"apiVersion": "vramgate.dev/v2"}, "apiVersion"), ({"more": 1}, "more")]
)
def test_trace_file_of_a_later_release_is_refused(changes: dict[str, Any], path: str) -> None:
    """By its version, or by the part of it that is not known."""
    document = orjson.loads(gzip.decompress(KEPT.trace())) | changes
    with pytest.raises(SpecError) as caught:
        read_recording(gzip.compress(orjson.dumps(document), mtime=0))

    assert path in str(caught.value)


def test_setting_of_a_later_release_is_refused_by_its_path(tmp_path: Path) -> None:
    """A chart that is newer than the image says so at the start, not by a default."""
    path = tmp_path / "settings.yaml"
    path.write_text("policy: {mode: warn, holography: true}\nnewSection: {}\n")

    with pytest.raises(SettingsError) as caught:
        load_settings(path)

    assert {problem.path for problem in caught.value.problems} == {
        "policy.holography",
        "newSection",
    }
