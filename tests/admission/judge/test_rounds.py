"""Reading in rounds: what is wanted is fetched, and the job is read again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from admission.capacity.named import declared_class
from admission.judge.rounds import MAX_DOCUMENTS, MAX_ROUNDS, in_rounds
from admission.judge.views import Views, read_views
from admission.values import Document, Documents, Workload
from admission.workloads import read_workload
from tests.admission.detect.jobs import container, job
from tests.builders import device

REF = "vramgate.dev/spec-ref"
SPEC = json.dumps(
    {
        "framework": "pytorch",
        "model": {"source": "huggingface", "name": "org/new"},
        "input": {"batchSize": 2, "sequenceLength": 8},
    }
)
CONFIG = json.dumps({"model_type": "gpt2", "torch_dtype": "float32"})
SHELF = {
    "configmap/specs": Document(files={"job": SPEC}),
    "hf://org/new@main": Document(files={"config.json": CONFIG}),
}


class Library:
    """Has some documents; notes what it is asked for."""

    def __init__(self, shelf: Documents) -> None:
        self.shelf = shelf
        self.asked: list[tuple[tuple[str, ...], str]] = []

    async def fetch(self, wanted: tuple[str, ...], namespace: str) -> Documents:
        """Return the documents, or that they are not there."""
        self.asked.append((wanted, namespace))
        absent = Document(problem="is not there")
        return {name: self.shelf.get(name, absent) for name in wanted}


async def read_with(library: Library) -> tuple[Workload, Views]:
    """Return the reading of a job whose spec is in a ConfigMap."""
    manifest = job(container("python", "x.py"), annotations={REF: "configmap/specs/job"})
    manifest["metadata"]["namespace"] = "team"

    async def read(documents: Documents) -> tuple[Workload, Views]:
        workload = read_workload(manifest, documents=documents)
        classes = (declared_class(device()),)
        return workload, read_views(workload, classes=classes, documents=documents)

    found = await in_rounds(read, library.fetch)
    assert found is not None
    return found


async def test_each_round_asks_for_what_the_last_one_found() -> None:
    """The annotation leads to a ConfigMap, which names a model, which is on the Hub."""
    library = Library(SHELF)
    _, (view,) = await read_with(library)

    assert library.asked == [(("configmap/specs",), "team"), (("hf://org/new@main",), "team")]
    assert view.reading.spec is not None
    assert view.reading.spec.model.config is not None
    assert view.reading.sources["model.config"] == "hf://org/new@main config.json"


async def test_what_is_not_there_is_asked_for_once() -> None:
    """The reading goes on without it, and names it."""
    library = Library({})
    _, (view,) = await read_with(library)

    assert len(library.asked) == 1
    assert any("is not there" in finding.reason for finding in view.reading.unknowns)


async def test_rounds_end() -> None:
    """A job that wants something new each time is read with what was had by then."""
    rounds = 0

    async def read(documents: Documents) -> tuple[Workload, Views]:
        nonlocal rounds
        rounds += 1
        reference = {REF: f"configmap/c{rounds}/k"}
        workload = read_workload(job(container(), annotations=reference), documents=documents)
        classes = (declared_class(device()),)
        return workload, read_views(workload, classes=classes, documents=documents)

    await in_rounds(read, Library({}).fetch)
    assert rounds == MAX_ROUNDS + 1


async def test_all_rounds_share_one_time() -> None:
    """What came in time counts, what is late says so, and nobody waits for it."""
    stuck = asyncio.Event()

    class Slow(Library):
        async def fetch(self, wanted: tuple[str, ...], namespace: str) -> Documents:
            if wanted[0].startswith("hf://"):
                await stuck.wait()
            return await super().fetch(wanted, namespace)

    manifest = job(container("python", "x.py"), annotations={REF: "configmap/specs/job"})

    async def read(documents: Documents) -> tuple[Workload, Views]:
        workload = read_workload(manifest, documents=documents)
        classes = (declared_class(device()),)
        return workload, read_views(workload, classes=classes, documents=documents)

    found = await in_rounds(read, Slow(SHELF).fetch, seconds=0.2)

    assert found is not None
    (view,) = found[1]
    assert view.reading.partial["model"]["name"] == "org/new"
    assert any("took longer than 0.2 s" in finding.reason for finding in view.reading.unknowns)


async def test_one_job_wants_so_many_documents() -> None:
    """The others are named as too many and asked of nobody."""
    library = Library({})
    names = tuple(f"configmap/m{number}" for number in range(3 * MAX_DOCUMENTS))
    seen: list[Documents] = []

    async def read(documents: Documents) -> tuple[Workload, Views]:
        seen.append(documents)
        workload = read_workload(job(container("python", "x.py")))
        return replace(workload, wanted=names), ()

    await in_rounds(read, library.fetch)

    assert len(library.asked) == MAX_DOCUMENTS
    assert "more than" in seen[-1][names[-1]].problem
