"""Changes to torch and the zoos that hold only while a trace is made.

    (nothing) -> initialisers that do nothing, module calls that say where they are

Everything is put back when the block ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, masking_utils

from estimator.frontends.pytorch.record import Recorder
from estimator.trace import COMPANION, Phase


def _pass_through(tensor: Any = None, *_: Any, **__: Any) -> Any:
    return tensor


@contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Set attributes (owner, name, value) inside the block, and put the old ones back."""
    saved = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in reversed(saved):
            setattr(owner, name, value)


@contextmanager
def no_initialisation() -> Iterator[None]:
    """Let initialisers return their tensor as it is: there are no values to set."""
    names = [n for n in dir(nn.init) if n.endswith("_") and not n.startswith("_")]
    changes: list[tuple[Any, str, Any]] = [(nn.init, name, _pass_through) for name in names]
    changes.append((PreTrainedModel, "initialize_weights", lambda _: None))
    with replaced(*changes):
        yield


@contextmanager
def module_paths(
    recorder: Recorder,
    model: nn.Module,
    recompute: Callable[[], AbstractContextManager[None]],
    *,
    companions: Sequence[nn.Module] = (),
) -> Iterator[None]:
    """Let every call of a submodule of *model*, and of *companions*, tell *recorder* its path.

    A module that is called during backward is computed again by checkpointing: *recompute* gives
    the state of its forward pass back, as `torch.utils.checkpoint` does.
    """
    paths = {id(module): name for name, module in model.named_modules()}
    for index, companion in enumerate(companions):
        modules = companion.named_modules(prefix=f"{COMPANION}{index}")
        paths |= {id(module): name for name, module in modules}
    visit = recorder.modules.visit
    call: Callable[..., Any] = nn.Module._call_impl

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        path = paths.get(id(self))
        if path is None:
            return call(self, *args, **kwargs)
        before = visit(path)
        try:
            if not before and recorder.phase is Phase.BACKWARD:
                with recompute():
                    return call(self, *args, **kwargs)
            return call(self, *args, **kwargs)
        finally:
            visit(before)

    with replaced((nn.Module, "__call__", __call__)):
        yield


@contextmanager
def no_packed_sequences() -> Iterator[None]:
    """Let transformers find what it finds in plain position ids: no packed sequences, no mask.

    Source: transformers 5.24.0 `masking_utils.py` (`find_packed_sequence_indices`), which reads
    values; a mask built for nothing would turn grouped-query attention off.
    """
    with replaced((masking_utils, "find_packed_sequence_indices", lambda *_, **__: None)):
        yield


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make *dtype* the default inside the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def fused_on_stand_ins() -> Callable[[], list[str]]:
    """Return what torch.optim asks for the devices fused optimizers run on."""
    return lambda: ["cuda", "meta"]
