"""The frontends: one package a framework, each the only importer of it.

    framework name -> Frontend

A frontend is imported by name on demand, so that a process pays only for what it traces.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from estimator.errors import UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import Framework, JobSpec
from estimator.trace import Trace
from estimator.traits import Traits


class Frontend(Protocol):
    """What every frontend package offers."""

    FRAMEWORK: str

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the trace of *spec* on any card with *traits*."""
        ...


FRONTENDS = {
    Framework.PYTORCH: "estimator.frontends.pytorch",
    Framework.TENSORFLOW: "estimator.frontends.tensorflow",
    Framework.MXNET: "estimator.frontends.mxnet",
    Framework.JAX: "estimator.frontends.jax",
}
"""Framework -> package. A framework that is absent here has no frontend yet."""

EXTRAS = {
    Framework.PYTORCH: "torch",
    Framework.TENSORFLOW: "tensorflow",
    Framework.JAX: "jax",
}
"""Framework -> the extra of the `vramgate` package that installs it."""


def load(framework: str) -> Frontend:
    """Return the frontend of *framework*, importing its framework.

    Raises:
        UnsupportedJobError: if there is no such frontend or its framework is not installed.
    """
    package = FRONTENDS.get(Framework(framework)) if framework in set(Framework) else None
    if package is None:
        known = ", ".join(FRONTENDS)
        raise UnsupportedJobError(
            f"framework: '{framework}' is not modelled; known: {known}",
            code=UnknownCode.FRAMEWORK,
            path="framework",
        )
    try:
        return cast(Frontend, import_module(package))  # a module that fits the Protocol
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "estimator":
            raise
        raise UnsupportedJobError(
            f"framework: '{framework}' needs the package '{error.name}', which is not installed",
            code=UnknownCode.FRAMEWORK,
            path="framework",
            hint=install_hint(Framework(framework)),
        ) from error


def install_hint(framework: Framework) -> str:
    """Return how whoever runs us gets *framework*: who submits a job rarely can."""
    extra = EXTRAS[framework]
    return f"an image with it (EXTRA={extra} or frameworks), or pip install 'vramgate[{extra}]'"
