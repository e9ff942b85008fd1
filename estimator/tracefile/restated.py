"""A JobSpec that names a Trace file: what it may say about the job in it.

    Recording, JobSpec with source `trace` -> Recording

A trace is one job at one size. Only what a replay reads may differ from what was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from estimator.errors import Problem, SpecError
from estimator.spec import JobSpec, parse_spec
from estimator.tracefile.recording import Recording

REPLAYED = frozenset(
    {"env", "driver", "cudnn", "allocatorCapBytes", "dataLoaderCudaWorkers", "extraBytes"}
)
"""Keys of `runtime` that no frontend reads."""


def restated(recording: Recording, stated: JobSpec) -> Recording:
    """Return *recording* under the run time that *stated* asks for.

    `model.revision`, where it is given, is the digest the content must have.

    Raises:
        SpecError: for every value that is not the recorded one.
    """
    written = stated.document()
    model = written.pop("model")
    runtime = written.get("runtime", {})
    changes = {key: runtime.pop(key) for key in sorted(REPLAYED & runtime.keys())}
    problems = list(_differences(written, recording.spec.normalised(), ""))
    revision = recording.spec.model.revision
    for key in sorted(model.keys() - {"source", "name", "revision"}):
        problems.append(Problem(path=f"model.{key}", message="not a key of 'trace' models"))
    if model.get("revision") not in (None, revision):
        problems.append(Problem(path="model.revision", message=f"the file is {revision}"))
    if problems:
        raise SpecError(
            problems,
            hint="a Trace file is one job at one size: write another with `vramgate trace`",
        )
    document = recording.spec.document()
    document["runtime"] = {**document.get("runtime", {}), **changes}
    return replace(recording, spec=parse_spec(document))


def _differences(stated: Mapping[str, Any], recorded: Any, prefix: str) -> Iterator[Problem]:
    """Yield a problem for each value of *stated* that *recorded* does not have."""
    for key, value in stated.items():
        path = f"{prefix}{key}"
        found = recorded.get(key) if isinstance(recorded, Mapping) else None
        if isinstance(value, Mapping):
            yield from _differences(value, found, f"{path}.")
        elif value != found:
            yield Problem(
                path=path, message=f"{value!r:.60} is not what was recorded: {found!r:.60}"
            )
