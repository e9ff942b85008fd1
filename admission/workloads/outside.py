"""Other objects that an object refers to, as they were fetched.

reference, documents -> Json
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.errors import RequestError
from admission.values import Documents, Finding, Json
from admission.workloads.fields import mapping
from estimator.documents import read_document
from estimator.errors import SpecError


def body_of(reference: str, documents: Documents) -> Json | None:
    """Return the object that *reference* names; None if there is none to be read.

    Raises:
        RequestError: if what was fetched is no object.
    """
    document = documents.get(reference)
    if document is None or document.problem:
        return None
    try:
        return mapping(read_document(document.files.get("", "")), reference)
    except SpecError as error:
        raise RequestError(f"{reference}: {error.problems[0].message}") from error


def absence(reference: str, documents: Documents, *, path: str) -> Finding:
    """Return the finding that says why what *path* refers to could not be read."""
    document = documents.get(reference)
    why = document.problem if document is not None else ""
    kind, _, name = reference.partition("/")
    return Finding(
        code=ReasonCode.DOCUMENT,
        path=path,
        reason=f"{kind} {name} {why or 'was not read'}",
        hint=f"`vramgate explain` reads it from a file beside this one: "
        f"kubectl get {kind} {name} -o yaml",
    )
