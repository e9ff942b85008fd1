"""Samples of what other releases read or wrote, kept as files: one folder a release.

today's code -> files; a folder -> what is in it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import yaml

from admission import peaks
from admission.config import Settings
from admission.controller.acts import Cause
from admission.controller.moving import MOVING, Moving, Step
from admission.floor import Floor
from admission.learning import residuals_text
from admission.learning.deaths import KEY, Death, text_of
from admission.learning.lesson import Lesson
from admission.learning.residuals import Group, Sample
from admission.steer.terms import RECORD, Terms
from admission.version import package_version
from estimator.spec import parse_spec
from estimator.trace import EventKind, Role
from estimator.tracefile import Recording
from tests.admission.test_metrics_reference import documented
from tests.builders import estimate
from tests.estimator.test_trace_file import recording_of
from tests.upgrade.jobs import JOBS

FOLDER = Path(__file__).parent
MOMENT = datetime(2026, 6, 1, 8, tzinfo=UTC)
FLOOR = Floor(
    container="train", nbytes=15 << 30, gave=14 << 30, card="Tesla-T4", when=MOMENT.isoformat()
)
DEATH = Death(
    namespace="team", names=("Job.batch/train", "Job.batch/t-*"), fingerprint="a..b.", floor=FLOOR
)
GROUP = Group(framework="pytorch", method="trace", product="Tesla-T4", version="2.6")
SAMPLE = Sample(namespace="team", spec="sha256:0", ratio=1.25, day=20605)
PEAKS = {("train", "GPU-1"): 12 << 30, ("train", "GPU-2"): 11 << 30}
MOVE = Moving(
    step=Step.SUSPENDED, cause=Cause.OUT_OF_MEMORY, since=MOMENT, count=2, pods=("uid-1",)
)
TERMS = Terms(
    required=({"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["16000"]},),
    preferred=({"weight": 50, "preference": {"matchExpressions": []}},),
    selector={"pool": "a100"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What one release wrote."""

    folder: Path

    def text(self, name: str) -> str:
        """Return a file."""
        return (self.folder / name).read_text(encoding="utf-8")

    def json(self, name: str) -> Any:
        """Return a file of JSON."""
        return orjson.loads(self.text(name))

    def jobs(self) -> tuple[Mapping[str, Any], ...]:
        """Return the JobSpecs."""
        return tuple(yaml.safe_load_all(self.text("jobs.yaml")))

    def trace(self) -> bytes:
        """Return the Trace file."""
        return (self.folder / "job.trace").read_bytes()


def releases() -> tuple[Samples, ...]:
    """Return what is kept of each release."""
    folders = sorted(path for path in FOLDER.iterdir() if (path / "jobs.yaml").is_file())
    return tuple(Samples(folder=path) for path in folders)


def write(parent: Path = FOLDER) -> Path:
    """Write what today's code writes into a new folder of *parent*, named by the version.

    Raises:
        FileExistsError: if there is one: samples of a release never change.
    """
    folder = parent / package_version()
    folder.mkdir()
    learned = {
        KEY: text_of((DEATH,)),
        residuals_text.KEY: residuals_text.written({GROUP: (SAMPLE,)}),
    }
    annotations = {
        **Lesson(floor=FLOOR, fingerprint="a..b.").annotations(),
        RECORD: TERMS.text(),
        MOVING: MOVE.text(),
        peaks.ANNOTATION: peaks.written(PEAKS),
    }
    shown = documented("Shown by serve") | documented("Not shown by serve")
    metrics = {name: sorted(labels) for name, labels in sorted(shown.items())}
    _dump(folder / "estimate.json", estimate(least=10, enough=12, activations=5).document())
    _dump(folder / "learned.json", learned)
    _dump(folder / "annotations.json", annotations)
    _dump(folder / "metrics.json", metrics)
    recording = recording_of()
    (folder / "job.trace").write_bytes(recording.content)
    _dump(folder / "trace.json", events_of(recording))
    (folder / "jobs.yaml").write_text(yaml.safe_dump_all(JOBS, sort_keys=False))
    _dump(folder / "jobs.json", [parse_spec(job).document() for job in JOBS])
    settings = Settings().model_dump(mode="json", by_alias=True, exclude_none=True)
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    return folder


def events_of(recording: Recording) -> dict[str, Any]:
    """Return what is in a trace, by names: the file has numbers of its own for them."""
    trace = recording.trace
    return {
        "sizes": [int(each) for each in trace.sizes],
        "roles": [list(Role)[role].name for role in trace.roles],
        "kinds": [EventKind(kind).name for kind in trace.kinds],
    }


def _dump(path: Path, document: object) -> None:
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    path.write_bytes(orjson.dumps(document, option=options))
