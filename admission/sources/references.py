"""References to documents, checked before anybody is asked.

    text -> Reference, or why it is none

They come from manifests: names are those Kubernetes and the Hub accept, nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

MAX_LENGTH = 1024
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""A DNS subdomain name, as Kubernetes checks it."""
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,127}", re.ASCII)


class Origin(StrEnum):
    """Where documents come from."""

    CONFIG_MAP = "configmap"
    TRAINING_RUNTIME = "trainingruntime"
    CLUSTER_TRAINING_RUNTIME = "clustertrainingruntime"
    RESOURCE_CLAIM = "resourceclaim"
    RESOURCE_CLAIM_TEMPLATE = "resourceclaimtemplate"
    HUB = "hf"
    URL = "https"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One document."""

    origin: Origin
    name: str
    """Of the object, the model (`ORG/MODEL`), or the whole URL."""
    revision: str = "main"
    """Of a model."""


class ReferenceProblem(ValueError):
    """What is wrong with a reference; completes `REFERENCE …`."""


def parse_reference(text: str) -> Reference:
    """Return the reference in *text*.

    Raises:
        ReferenceProblem: if it is none.
    """
    if len(text) > MAX_LENGTH:
        raise ReferenceProblem(f"is longer than {MAX_LENGTH} characters")
    if text.startswith("hf://"):
        return _model(text.removeprefix("hf://"))
    if text.startswith("https://"):
        return _url(text)
    kind, slash, name = text.partition("/")
    if not slash or kind not in CLUSTER:
        raise ReferenceProblem("is none of configmap/NAME, hf://ORG/MODEL and https://…")
    if not _NAME.fullmatch(name) or ".." in name:
        raise ReferenceProblem("is no name that Kubernetes accepts")
    return Reference(origin=Origin(kind), name=name)


def is_remote(text: str) -> bool:
    """Return whether the document is outside the cluster: on the Hub or some host."""
    return text.startswith(("hf://", "https://"))


CLUSTER = (
    Origin.CONFIG_MAP,
    Origin.TRAINING_RUNTIME,
    Origin.CLUSTER_TRAINING_RUNTIME,
    Origin.RESOURCE_CLAIM,
    Origin.RESOURCE_CLAIM_TEMPLATE,
)
"""Objects of the cluster."""


def _model(text: str) -> Reference:
    name, at, revision = text.partition("@")
    revision = revision if at else "main"
    if not _REPOSITORY.fullmatch(name) or ".." in name:
        raise ReferenceProblem("is no model of the Hugging Face Hub")
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise ReferenceProblem("names no revision that the Hub accepts")
    return Reference(origin=Origin.HUB, name=name, revision=revision)


def _url(text: str) -> Reference:
    try:
        parts = urlsplit(text)
        is_plain = parts.hostname and parts.username is None and parts.password is None
        _ = parts.port
    except ValueError as error:
        raise ReferenceProblem("is no URL") from error
    if not is_plain or not text.isascii() or any(char.isspace() for char in text):
        raise ReferenceProblem("is no plain https URL")
    return Reference(origin=Origin.URL, name=text)
