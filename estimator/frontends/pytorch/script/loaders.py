"""Data loaders of a script: in its own process, and not to the end of an evaluation.

    DataLoader -> the same data, without workers

Real data is read, as the script would. While batches are only evaluated, a loader ends after a
few: they are all alike, and what matters of them is seen.
Not modelled: outputs that are collected over a whole evaluation on the card (said in a note).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.script.watch import Watch

EVALUATED = 2
"""Batches of an evaluation that are run."""
_OFF = {
    "num_workers": 0,
    "pin_memory": False,
    "persistent_workers": False,
    "prefetch_factor": None,
    "multiprocessing_context": None,
    "timeout": 0,
}
_ORDER = tuple(signature(DataLoader.__init__).parameters)[1:]


@contextmanager
def loaders_of(watch: Watch, cut: Callable[[], None]) -> Iterator[None]:
    """Let loaders work in this process inside the block; *cut* hears of a shortened evaluation."""
    make: Any = DataLoader.__init__
    following: Any = _BaseDataLoaderIter.__next__

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, **{**dict(zip(_ORDER, args, strict=False)), **kwargs, **_OFF})

    def __next__(self: Any) -> Any:
        if self._num_yielded and watch.quiet_calls >= EVALUATED and not torch.is_grad_enabled():
            watch.quiet_calls = 0
            cut()
            raise StopIteration
        return following(self)

    with replaced((DataLoader, "__init__", made), (_BaseDataLoaderIter, "__next__", __next__)):
        yield
