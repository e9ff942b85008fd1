"""Render the chart with the real helm.

    values -> Kubernetes objects, or helm's message

Never talks to a cluster: what `helm template` writes is all there is.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.chart.helm.build import build
from tests.e2e.controlplane.build import KUBERNETES_VERSION

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts" / "vramgate"
NAMESPACE = "vramgate-system"
RELEASE = "vramgate"

Values = Mapping[str, Any]
Document = dict[str, Any]


class RenderError(Exception):
    """helm refused the values; the message is helm's."""


def rendered(values: Values | None = None, *, release: str = RELEASE) -> str:
    """Return what `helm template` writes for *values*.

    Raises:
        RenderError: if helm refuses them.
    """
    return _rendered(json.dumps(values or {}), release)


def documents(values: Values | None = None, *, release: str = RELEASE) -> tuple[Document, ...]:
    """Return the objects that `helm template` writes for *values*.

    Raises:
        RenderError: if helm refuses them.
    """
    return parsed(rendered(values, release=release))


def parsed(text: str) -> tuple[Document, ...]:
    """Return the objects in *text*."""
    return tuple(document for document in yaml.safe_load_all(text) if document)


def of_kind(found: tuple[Document, ...], kind: str) -> Document:
    """Return the one object of *kind*."""
    (document,) = all_of_kind(found, kind)
    return document


def all_of_kind(found: tuple[Document, ...], kind: str) -> tuple[Document, ...]:
    """Return the objects of *kind*."""
    return tuple(document for document in found if document["kind"] == kind)


@cache
def _rendered(values: str, release: str) -> str:
    """Return what helm writes; the same values are rendered once."""
    argv = ("template", release, str(CHART), "--kube-version", KUBERNETES_VERSION)
    return helm(*argv, "--namespace", NAMESPACE, values=values)


def helm(*arguments: str, values: str | None) -> str:
    """Return what helm prints for *arguments*, given *values* (JSON), if it takes any.

    Raises:
        RenderError: if it fails.
    """
    argv = [str(_program()), *arguments, *(() if values is None else ("--values", "-"))]
    with tempfile.TemporaryDirectory() as home:
        # No plugin, repository, proxy or environment of whoever runs this.
        environment = {"PATH": os.environ["PATH"], "HOME": home, "HELM_NO_PLUGINS": "1"}
        done = subprocess.run(
            argv, input=values, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise RenderError(done.stderr)
    return done.stdout


@cache
def _program() -> Path:
    return build()
