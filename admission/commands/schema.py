"""`vramgate schema`: the JSON Schema of a document people or tools write or read.

name -> JSON Schema
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import click
import orjson
from pydantic import BaseModel

from admission.commands.fit_document import FitDocument
from admission.commands.options import Word
from admission.config import Settings
from estimator.result import Estimate
from estimator.spec import JobSpec
from estimator.tracefile.document import TraceDocument

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Document(StrEnum):
    """Which document."""

    JOBSPEC = "jobspec"
    ESTIMATE = "estimate"
    FIT = "fit"
    SETTINGS = "settings"
    TRACE = "trace"


_Mode = Literal["validation", "serialization"]
_MODELS: dict[Document, tuple[type[BaseModel], _Mode]] = {
    Document.JOBSPEC: (JobSpec, "validation"),
    Document.ESTIMATE: (Estimate, "serialization"),
    Document.FIT: (FitDocument, "serialization"),
    Document.SETTINGS: (Settings, "validation"),
    Document.TRACE: (TraceDocument, "validation"),
}


@click.command()
@click.argument("document", type=Word(Document), help="Which document.")
def command(document: Document) -> None:
    """Print the JSON Schema of a document."""
    print(orjson.dumps(schema_of(document), option=orjson.OPT_INDENT_2).decode())


def schema_of(document: Document) -> dict[str, Any]:
    """Return the JSON Schema of *document*: what we read, or what we write."""
    model, mode = _MODELS[document]
    return {"$schema": DIALECT, **model.model_json_schema(by_alias=True, mode=mode)}
