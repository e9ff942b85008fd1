"""What a person gives as a job: a JobSpec, a Trace file, or a JobSpec that names a Trace file.

    bytes -> JobSpec | Recording

For commands only: the webhook opens no path a spec names.
"""

from __future__ import annotations

from pathlib import Path

from admission.manifests import is_manifest
from admission.plaintext import plain
from estimator.documents import read_document, read_documents
from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import JobSpec, ModelSource, parse_spec
from estimator.tracefile import MAX_CONTENT, Recording, is_trace_file, read_recording, restated


def read_job(content: bytes) -> JobSpec | Recording:
    """Return the job in *content*, the bytes of a file.

    Raises:
        EstimatorError: if it cannot be read.
    """
    if is_trace_file(content):
        return read_recording(content)
    return followed(parse_spec(job_document(content.decode(errors="replace"))))


def followed(spec: JobSpec) -> JobSpec | Recording:
    """Return *spec*, or the recording it names: `model: {source: trace, name: PATH}`.

    A path is from the current folder. A spec that names no Trace file is returned as it is.

    Raises:
        SpecError: if the file cannot be read, or is of another job than *spec* states.
        UnsupportedJobError: if a URL is named.
    """
    if spec.model.source is not ModelSource.TRACE:
        return spec
    name = spec.model.name
    if "://" in name:
        raise UnsupportedJobError(
            f"model.name: '{plain(name)}' is a URL, which is not read yet",
            code=UnknownCode.MODEL,
            path="model.name",
            hint="download the Trace file and name its path",
        )
    try:
        with Path(name).open("rb") as file:
            content = file.read(MAX_CONTENT + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no path"
        raise _problem(f"{plain(name)}: {reason}") from error
    try:
        recording = read_recording(content)
    except SpecError as error:
        raise _problem(
            *(f"{plain(name)}: {plain(str(each), limit=500)}" for each in error.problems)
        ) from error
    return restated(recording, spec)


def job_document(text: str) -> object:
    """Return the one document of *text*.

    Raises:
        SpecError: if it cannot be read, or is a manifest and no JobSpec.
    """
    documents = list(read_documents(text, aliases=True))
    if any(is_manifest(document) for document in documents):
        message = "this is a Kubernetes manifest: use `vramgate explain`"
        raise SpecError([Problem(path="", message=message)])
    return read_document(text)


def _problem(*messages: str) -> SpecError:
    return SpecError([Problem(path="model.name", message=message) for message in messages])
