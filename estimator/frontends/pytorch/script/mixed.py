"""`torch.autocast("cuda")` of a script, on stand-ins.

    with torch.autocast(...) -> the rules of `cuda_rules.autocast`, region by region

Torch's own autocast does nothing for tensors of `meta`; its state is kept beside ours, as
checkpointing and libraries ask for it. Casts of weights are kept until the outermost region ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.amp.autocast_mode import autocast

from estimator.frontends.pytorch.cuda_rules.autocast import Autocast, bodies_visible
from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.versions import Version


class Regions:
    """The autocast regions that are open, and the dtypes that any had."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.seen: dict[torch.dtype, None] = {}
        self.open: list[torch.dtype | None] = []
        self._mode: _Mode | None = None

    def enter(self, dtype: torch.dtype | None) -> None:
        """Open a region in *dtype*; None: one in which nothing is cast."""
        if dtype is not None:
            self.seen[dtype] = None
        self.open.append(dtype)
        if self._mode is None:
            self._mode = _Mode(self)
            self._mode.__enter__()  # type: ignore[no-untyped-call]

    def leave(self) -> None:
        """Close the innermost region."""
        self.open.pop()
        if not self.open and self._mode is not None:
            mode, self._mode = self._mode, None
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]


class _Mode(Autocast):
    """Casts as the innermost open region does."""

    def __init__(self, regions: Regions) -> None:
        super().__init__(torch.float16, regions.version)
        self._regions = regions

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        dtype = self._regions.open[-1] if self._regions.open else None
        if dtype is None:
            return func(*args, **kwargs) if kwargs else func(*args)
        if dtype is not self.dtype:
            self.dtype = dtype
            self._casts.clear()
        return super().__torch_function__(func, types, args, kwargs)


@contextmanager
def autocast_of(regions: Regions) -> Iterator[None]:
    """Let `torch.autocast` open and close *regions* inside the block."""
    enter: Any = autocast.__enter__
    leave: Any = autocast.__exit__

    def __enter__(self: Any) -> Any:
        made = enter(self)
        if self.device == "cuda":
            regions.enter(self.fast_dtype if self._enabled else None)
        return made

    def __exit__(self: Any, *raised: Any) -> Any:
        if self.device == "cuda":
            regions.leave()
        return leave(self, *raised)

    with (
        bodies_visible(),
        replaced((autocast, "__enter__", __enter__), (autocast, "__exit__", __exit__)),
    ):
        yield
