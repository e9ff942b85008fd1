"""A job whose owner refers to a Trace file: its memory was traced before, elsewhere.

    Annotation, Unit -> Reading

The owner's word beats what the command line says; nothing of it is compared.
"""

from __future__ import annotations

from functools import lru_cache

from admission.codes import ReasonCode
from admission.detect.annotation import SPEC, Annotation
from admission.values import Finding, Reading, Unit
from estimator.errors import EstimatorError, SpecError
from estimator.spec import parse_spec
from estimator.tracefile import Recording, read_recording, restated

MAX_PROBLEMS = 20


def recorded_reading(annotation: Annotation, unit: Unit) -> Reading:
    """Return the reading of a job that *annotation* gives a Trace file for."""
    found = _recording(annotation.content)
    problems = found if isinstance(found, tuple) else ()
    if isinstance(found, Recording):
        try:
            recording = _restated(found, annotation)
        except EstimatorError as error:
            problems = _problems(error)
    if problems:
        return Reading(
            unknowns=tuple(
                Finding(
                    code=ReasonCode.INVALID_SPEC,
                    path=annotation.content_path or unit.container_path,
                    reason=problem,
                    hint="write the file with `vramgate trace … --write FILE.trace.gz`, and put it "
                    "into a ConfigMap with `kubectl create configmap NAME --from-file=FILE`",
                )
                for problem in problems
            )
        )
    return Reading(
        spec=recording.spec,
        recording=recording,
        sources={"model.source": annotation.content_path, **annotation.sources},
        partial=recording.spec.document(),
    )


@lru_cache(maxsize=2)
def _recording(content: bytes) -> Recording | tuple[str, ...]:
    """Return the recording in *content*, or what is wrong with it.

    Remembered: all units of a workload, in each round, may refer to one file that takes 0.3 s.
    """
    try:
        return read_recording(content)
    except EstimatorError as error:
        return _problems(error)


def _problems(error: EstimatorError) -> tuple[str, ...]:
    if isinstance(error, SpecError):
        return tuple(str(problem) for problem in error.problems[:MAX_PROBLEMS])
    return (error.message,)


def _restated(recording: Recording, annotation: Annotation) -> Recording:
    """Return *recording* under what the annotation `vramgate.dev/spec` adds.

    Raises:
        SpecError: if that is not what was recorded.
    """
    stated = dict(annotation.document)
    if not stated:
        return recording
    spec = recording.spec.document()
    named = {"source": "trace", "name": recording.spec.model.name or SPEC}
    document: dict[str, object] = {key: spec[key] for key in ("framework", "input")}
    return restated(recording, parse_spec({**document, **stated, "model": named}))
