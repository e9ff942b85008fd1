"""Which release of a model library a job runs, and which that traces.

    runtime.libraries, frameworkVersion -> Release

Compare releases with shorter ones: (4, 46, 3) >= (4, 46).
"""

from __future__ import annotations

import re

from estimator.catalog.contemporaries import contemporary
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.versions import parse_version
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec

Release = tuple[int, ...]


def parse_release(text: str) -> Release | None:
    """Return the numbers *text* begins with (`1.0.25.dev0` -> (1, 0, 25)), or None."""
    match = re.match(r"\d+(?:\.\d+){1,2}", text)
    return tuple(int(part) for part in match[0].split(".")) if match else None


def release_of(spec: JobSpec, notebook: Notebook, library: str, *, installed: str) -> Release:
    """Return the release of *library* whose code the job runs.

    It is the one the spec names, else the one that goes with its PyTorch, else *installed*. What is
    not stated is noted.
    """
    stated = parse_release(spec.runtime.libraries.get(library, ""))
    if stated is not None:
        return stated
    torch = parse_version(spec.framework_version or "")
    text = contemporary(torch, library) if torch is not None else None
    text, reason = (
        (text, "absent: the newest while this PyTorch was the newest")
        if text is not None
        else (installed, "absent: the newest this estimator knows")
    )
    notebook.assume(AssumptionCode.FRAMEWORK_VERSION, f"runtime.libraries.{library}", text, reason)
    return numbers(text)


def numbers(text: str) -> Release:
    """Return the numbers of a version that is ours to know."""
    found = parse_release(text)
    assert found is not None
    return found
