"""What the tests run in a child process that was forked after the import of torch.

    document -> Trace | Refusal

Each function is called by name through `conftest.in_child`; nothing here runs in pytest's process.
"""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from estimator.errors import EstimatorError, SpecError, UnsupportedJobError
from estimator.frontends import load
from estimator.spec import parse_spec
from estimator.trace import Role, Trace
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


def routed(tokens: int, experts: int, choices: int) -> list[int]:
    """Return how many rows each expert is given by the loop that many models are written as."""
    import torch

    from estimator.frontends.pytorch.standin import StandIn

    given: list[int] = []
    with StandIn():
        chosen = torch.empty(tokens, choices, dtype=torch.int64, device="meta")
        mask = torch.nn.functional.one_hot(chosen, num_classes=experts).permute(2, 1, 0)
        for expert in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
            rows = torch.where(mask[int(expert.item())])[1]
            given.append(rows.numel())
    return given


def read_back() -> tuple[int, list[list[int]], str]:
    """Return a product and a list of numbers sent to the card, and what reading a batch raises."""
    import torch

    from estimator.frontends.pytorch.standin import StandIn

    with StandIn():
        grid = torch.tensor([[1, 2, 3]], device="meta")
        product = int(grid.prod(dim=-1).sum().item())
        try:
            torch.empty(2, device="meta").max().item()
        except UnsupportedJobError as error:
            return product, grid.tolist(), error.kind
    return product, grid.tolist(), "nothing"


def recurrent_events(kind: str, layers: int, bidirectional: bool) -> list[int]:
    """Return what the forward pass of a recurrent layer allocates in its one call, in order."""
    import torch

    from estimator.frontends.pytorch.cuda_rules.dispatcher import cuda_kernels
    from estimator.frontends.pytorch.kernels import KernelRules, MathSettings
    from estimator.frontends.pytorch.record import Recorder
    from estimator.trace import TraceBuilder

    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    recorder = Recorder(builder, KernelRules(MathSettings()), sums_in_place=True)
    with torch.device("meta"):
        layer = getattr(torch.nn, kind)(
            8, 16, num_layers=layers, bidirectional=bidirectional, batch_first=True
        )
        batch = torch.empty(3, 5, 8)
    with cuda_kernels(AMPERE, (2, 15)), recorder:
        recorder.adopt([*layer.named_parameters(), ("batch", batch)], Role.PARAMETER)
        before = len(builder.sizes)
        output, states = layer(batch)
        made = [*builder.sizes[before:]]
        output.sum().backward()
    del states
    return made[-4 if kind == "LSTM" else -3 :]


def is_loaded(module: str) -> bool:
    """Return whether a process that traces for the webhook has imported *module*."""
    return module in sys.modules


ROWS, COLUMNS = 8, 64
HELD = frozenset({"relu", "hardtanh_", "rms_norm"})
"""Operators whose result a caller holds when their tensors are counted."""


def _run(operator: str, x: Any) -> Any:
    """Return *operator* of a tensor that nobody else holds."""
    import torch
    from torch.nn import functional

    match operator:
        case "relu":
            return torch.relu(x)
        case "softplus":
            return functional.softplus(x)
        case "mean":
            return x.mean(-1)
        case "stack":
            return torch.stack((x, x * 2)).sum()
        case "hardtanh_":
            return functional.hardtanh(x, inplace=True)
        case "log_softmax":
            return x.log_softmax(-1)
        case "softmax":
            return x.softmax(-1)
        case "rms_norm":
            weight = torch.ones(COLUMNS, device="meta", requires_grad=True)
            return functional.rms_norm(x, (COLUMNS,), weight)
        case _:
            raise AssertionError(operator)


def num_kept(operator: str, version: str) -> int:
    """Return how many tensors of the input's size are alive after *operator* of *version*."""
    import weakref

    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from estimator.frontends.pytorch.cuda_rules.dispatcher import cuda_kernels
    from estimator.frontends.pytorch.versions import parse_version

    alive: dict[int, Any] = {}

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            for each in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(each, torch.Tensor) and each.numel() == ROWS * COLUMNS:
                    storage = each.untyped_storage()
                    alive[storage._cdata] = weakref.ref(storage)
            return result

    parsed = parse_version(version)
    assert parsed is not None
    leaf = torch.empty(ROWS, COLUMNS, device="meta", requires_grad=True)
    with cuda_kernels(AMPERE, parsed), Watch():  # type: ignore[no-untyped-call]
        result = _run(operator, leaf * 1)
        if operator not in HELD:
            result = result.sum()
        gc.collect()
        count = sum(reference() is not None for reference in alive.values())
    del result
    return count


def gradient_fits(operator: str, version: str) -> bool:
    """Return whether *operator* of *version* gives its input a gradient of its shape and dtype."""
    import torch

    from estimator.frontends.pytorch.cuda_rules.dispatcher import cuda_kernels
    from estimator.frontends.pytorch.versions import parse_version

    parsed = parse_version(version)
    assert parsed is not None
    for dtype in (torch.float32, torch.float16):
        leaf = torch.empty(ROWS, COLUMNS, dtype=dtype, device="meta", requires_grad=True)
        with cuda_kernels(AMPERE, parsed):
            _run(operator, leaf * 1).sum().backward()
        if leaf.grad is None or leaf.grad.shape != leaf.shape or leaf.grad.dtype is not dtype:
            return False
    return True


def least_and_weights(document: dict[str, Any]) -> tuple[int, int]:
    """Return the least an estimate says the allocator has to hold, and the bytes of the weights."""
    from estimator.catalog import resolve_device
    from estimator.pipeline import estimate

    (found,) = estimate(parse_spec(document), [resolve_device("t4")])
    return found.least.reserved_bytes, found.breakdown.parameters


POINTS = (100, 250)


def hidden_bytes(operator: str) -> int:
    """Return what a real CPU run of *operator* holds at most beside its result.

    Measured by torch's own profiler, which hooks the allocator. For operators without a kernel of
    CUDA's own, whose body is the same on every device.
    """
    import torch

    x, y = torch.zeros(POINTS), torch.zeros(POINTS)
    arguments = {"logsumexp": (x, [-1]), "_safe_softmax": (x, -1)}.get(operator, (x, y))
    function = getattr(torch.ops.aten, operator)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        result = function(*arguments)
    held = most = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    del result
    return most - held


def taken_apart_on_meta() -> set[str]:
    """Return operators with a CUDA kernel that the dispatcher takes apart for stand-ins."""
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return {
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and has(name, "CompositeImplicitAutograd")
        and has(name, "CUDA")
        and not has(name, "Meta")
    }


def last_batches(document: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    """Return last batch, reserved, more allocated and handed over, as the bench measures them."""
    rows = import_module("tests.bench.rules_last_batch").growths(parse_spec(document))
    return [(row.last, row.reserved, row.more_allocated, row.handed) for row in rows]


def weights_of(name: str) -> int:
    """Return the elements of the weights of the catalog's model *name* as it is built."""
    from estimator.catalog.models import known_model
    from tests.bench.catalog import counted

    known = known_model(name)
    assert known is not None
    return counted(known)
