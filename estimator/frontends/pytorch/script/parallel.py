"""What a script wraps its model in: one rank of several, compilers, what has no stand-in.

    init_process_group, DistributedDataParallel, torch.compile, … -> one process that plays a rank

The world is that of `WORLD_SIZE`, or one rank. Collectives return what they were given.
Not modelled: what `torch.compile` fuses (the script runs operator by operator, and says so).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import _disable_current_modes

from estimator.frontends.pytorch.parallel import BucketViews, bucket_sizes
from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.script.recorder import ScriptRecorder
from estimator.frontends.pytorch.script.weights import CannotFakeError
from estimator.trace import Role
from estimator.units import MIB

Note = Callable[[str, str], None]
_SPEC = "write a JobSpec with `parallelism`: `vramgate estimate` models it"
_REFUSED: tuple[tuple[str, str, str, str], ...] = (
    ("torch.distributed.fsdp", "FullyShardedDataParallel", "FSDP", _SPEC),
    ("torch.distributed.fsdp", "fully_shard", "fully_shard", _SPEC),
    ("torch.cuda", "graph", "a CUDA graph captured by hand", "trace without it"),
    ("torch.utils.cpp_extension", "load", "a CUDA extension built now", "trace without it"),
    ("torch.utils.cpp_extension", "load_inline", "a CUDA extension built now", "trace without it"),
)
"""Module, name, what it is to people, what to do instead."""


@contextmanager
def ranks_of(recorder: ScriptRecorder, note: Note) -> Iterator[None]:
    """Let this process play one rank inside the block; *note* hears of what is not as it runs."""
    changes: list[tuple[Any, str, Any]] = [
        (distributed, "init_process_group", _group),
        (torch, "compile", _same_of("torch.compile", note)),
        (nn.Module, "compile", lambda *_, **__: note(*_UNCOMPILED)),
        (torch.jit, "script", _same_of("torch.jit.script", note)),
        (torch.jit, "trace", _same_of("torch.jit.trace", note)),
        # One card is there: then it is the module it wraps.
        (nn.DataParallel, "forward", lambda self, *a, **k: self.module(*a, **k)),
        *_wrapper(recorder),
    ]
    for module, name, what, hint in _REFUSED:
        found = import_module(module)
        if hasattr(found, name):
            value = getattr(found, name)
            place = (value, "__init__") if isinstance(value, type) else (found, name)
            changes.append((*place, _refusal(what, hint)))
    with ExitStack() as stack:
        stack.enter_context(replaced(*changes))
        yield
    if distributed.is_initialized():
        distributed.destroy_process_group()


_UNCOMPILED = ("torch.compile", "taken as eager: what it fuses is not modelled")


def _group(*_: Any, **words: Any) -> None:
    """Start a process group whose other ranks are not there."""
    rank = int(os.environ.get("RANK", words.get("rank", 0) or 0))
    world = int(os.environ.get("WORLD_SIZE", words.get("world_size", 1) or 1))
    with _disable_current_modes():
        _INIT(
            backend="fake",
            rank=max(0, rank),
            world_size=max(1, world),
            store=FakeStore(),
        )


_INIT: Any = distributed.init_process_group


def _same_of(name: str, note: Note) -> Any:
    """Return what gives back the model or function it is given, as a call and as a decorator."""

    def same(model: Any = None, *_: Any, **__: Any) -> Any:
        note(name, _UNCOMPILED[1])
        return model if model is not None else lambda function: function

    return same


def _refusal(what: str, hint: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise CannotFakeError(f"{what} has no stand-in", hint)

    return refuse


def _wrapper(recorder: ScriptRecorder) -> list[tuple[Any, str, Any]]:
    """Return the changes that make DistributedDataParallel a wrapper with its buckets."""

    def made(self: Any, module: nn.Module, *_: Any, **words: Any) -> None:
        nn.Module.__init__(self)
        self.module = module
        self.device = torch.device("cuda", 0)
        self.require_backward_grad_sync = True
        parameters = [each for each in module.parameters() if each.requires_grad]
        if words.get("gradient_as_bucket_view"):
            with recorder.making(Role.GRADIENT):
                self._views = BucketViews(parameters)
        else:
            size = int((words.get("bucket_cap_mb") or 25) * MIB)
            recorder.communication(bucket_sizes(parameters, size))

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    wrapper = DistributedDataParallel
    return [
        (wrapper, "__init__", made),
        (wrapper, "forward", forward),
        (wrapper, "no_sync", lambda _: nullcontext()),
        (wrapper, "join", lambda *_, **__: nullcontext()),
        (wrapper, "_set_static_graph", lambda _: None),
        (wrapper, "register_comm_hook", lambda *_, **__: None),
        (wrapper, "train", nn.Module.train),
    ]
