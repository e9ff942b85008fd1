"""What the tests run in a child process that was forked after the import of torch.

    document -> Trace | Refusal

Each function is called by name through `conftest.in_child`; nothing here runs in pytest's process.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from estimator.errors import EstimatorError, SpecError, UnsupportedJobError
from estimator.frontends import load
from estimator.spec import parse_spec
from estimator.trace import Trace
from estimator.traits import Traits

AMPERE = Traits(flash_attention=True, efficient_attention=True, native_bf16=True)
TURING = Traits(flash_attention=False, efficient_attention=True, native_bf16=False)
NO_KERNELS = Traits(flash_attention=False, efficient_attention=False, native_bf16=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error of the frontend, in plain values."""

    kind: str
    message: str
    code: str = ""
    path: str = ""
    hint: str = ""
    problems: tuple[tuple[str, str], ...] = ()


def trace(document: dict[str, Any], traits: Traits = AMPERE) -> Trace:
    """Return the trace of *document*."""
    return load("pytorch").trace_job(parse_spec(document), traits=traits)


def refusal(document: dict[str, Any]) -> Refusal | None:
    """Return the error *document* is refused with, or None."""
    try:
        trace(document)
    except SpecError as error:
        problems = tuple((problem.path, problem.message) for problem in error.problems)
        return Refusal(kind=error.kind, message=error.message, problems=problems)
    except UnsupportedJobError as error:
        return Refusal(
            kind=error.kind,
            message=error.message,
            code=error.code,
            path=error.path,
            hint=error.hint or "",
        )
    except EstimatorError as error:
        return Refusal(kind=error.kind, message=error.message, hint=error.hint or "")
    return None


def parameter_bytes(document: dict[str, Any]) -> tuple[int, int]:
    """Return bytes of the parameters and of the buffers of the real, weightless model."""
    import torch
    import torchvision

    with torch.device("meta"):
        model = torchvision.models.get_model(document["model"]["name"], weights=None)
    return (
        sum(p.numel() * p.element_size() for p in model.parameters()),
        sum(b.numel() * b.element_size() for b in model.buffers()),
    )


def threads_and_autograd() -> tuple[int, bool]:
    """Return the threads of the process we were forked from, and whether a backward runs here."""
    import torch

    threads = len(list(Path(f"/proc/{os.getppid()}/task").iterdir()))
    weight = torch.ones(2, requires_grad=True)
    (weight * weight).sum().backward()  # type: ignore[no-untyped-call]
    return threads, weight.grad is not None


def state_after_a_trace(document: dict[str, Any]) -> dict[str, bool]:
    """Return whether everything a trace changed in torch is as it was."""
    import torch
    from torch.nn import functional

    call, initialiser = torch.nn.Module.__call__, torch.nn.init.normal_
    trace(document)
    x = torch.ones(4, device="meta", requires_grad=True)
    y = functional.dropout(x, 0.5)
    return {
        "call": torch.nn.Module.__call__ is call,
        "initialiser": torch.nn.init.normal_ is initialiser,
        "dropout": y.grad_fn is not None and "NativeDropout" not in y.grad_fn.name(),
        "dtype": torch.get_default_dtype() is torch.float32,
        "collector": gc.isenabled(),
    }


def real_cpu_peak(widths: tuple[int, ...], batch: int, steps: int) -> int:
    """Return the most bytes torch's CPU allocator held in *steps* real training steps.

    Measured by torch's own profiler, which hooks the allocator: no code of ours watches.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        layers: list[nn.Module] = []
        for left, right in pairwise(widths):
            layers += [nn.Linear(left, right), nn.ReLU()]
        model = nn.Sequential(*layers[:-1])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
        outputs = loss = None
        for _ in range(steps):
            optimizer.zero_grad()
            x, y = torch.zeros(batch, widths[0]), torch.zeros(batch, dtype=torch.int64)
            outputs = model(x)
            loss = functional.cross_entropy(outputs, y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    held = most = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most
