"""The recorder for a script: some stand-ins lie on the card, others on the host.

    operator calls -> events of those tensors that lie on the card

A stand-in is a tensor of the `meta` device. Which memory it stands for is kept beside it: the
card, unless its storage is known as one of the host. Tensors that hold data are on the host too.
What stays on the host is not recorded; what is only data runs as it is.

Numbers that were sent to the card are known up to `KNOWN` elements; every other number that a
script reads from it is 0, and where it was read is noted.
Not modelled: errors a card would raise for tensors on different devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch

from estimator.frontends.pytorch.kernels import KernelRules
from estimator.frontends.pytorch.operators import Operator
from estimator.frontends.pytorch.outcome import META
from estimator.frontends.pytorch.record import Recorder
from estimator.frontends.pytorch.standin import StandIn
from estimator.trace import Phase, Role, TraceBuilder

KNOWN = 1 << 17
"""Elements up to which data that is sent to the card stays known: a batch's mask or labels."""
LARGE = 1 << 24
"""Elements from which a tensor made on the host has no memory: a model's weight, not its data."""
_CUDA = "cuda"
aten = torch.ops.aten


class ScriptRecorder(Recorder):
    """Records what a script puts on the card."""

    def __init__(
        self,
        builder: TraceBuilder,
        kernels: KernelRules,
        *,
        sums_in_place: bool,
        was_read: Callable[[str], None],
    ) -> None:
        super().__init__(builder, kernels, sums_in_place=sums_in_place)
        self.contents.largest = KNOWN
        self.was_read = was_read
        self.num_inside = 0
        """Over 0 while an operator runs: then tensors say where they really are."""
        self._host: dict[int, ref[Any]] = {}

    def __enter__(self) -> Any:
        """Run operators from now on; what Python code sees of tensors is for `tensors.py`."""
        return super(StandIn, self).__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *raised: Any) -> None:
        """Stop."""
        super(StandIn, self).__exit__(*raised)  # type: ignore[no-untyped-call]

    # --- where tensors are -----------------------------------------------------------------------

    def is_on_card(self, tensor: torch.Tensor) -> bool:
        """Return whether *tensor* stands for one on the card."""
        return tensor.is_meta and tensor.untyped_storage()._cdata not in self._host

    def keep_on_host(self, value: Any) -> Any:
        """Let the stand-ins in *value* stand for tensors of the host, and return it."""
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if value.is_meta and storage._cdata not in self._host:
                key, host = storage._cdata, self._host
                host[key] = ref(storage, lambda _: host.pop(key, None))
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.keep_on_host(item)
        return value

    def host_stand_in(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a stand-in of the host that looks like *tensor*."""
        with self.inside():
            made = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=META
            )
        result: torch.Tensor = self.keep_on_host(made)
        return result

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let operators of this block pass unrecorded, and tensors say where they really are."""
        self.num_inside += 1
        try:
            with torch.utils._python_dispatch._disable_current_modes():
                yield
        finally:
            self.num_inside -= 1

    # --- what the operators do -----------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.num_operators += 1
        self.num_inside += 1
        try:
            return self._on_its_device(func, types, args, kwargs or {})
        finally:
            self.num_inside -= 1

    def _on_its_device(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        device = kwargs.get("device")
        wants_card = device is not None and device.type == _CUDA
        has_card, has_stand_in = self._places(args, kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if has_stand_in and func._schema.is_mutable and not _is_stand_in(args):
            return args[0] if args else None  # data that is overwritten by what has no values
        # Autograd itself asks for `meta`: where its arguments are.
        if wants_card or (has_card and (device is None or device.type == "meta")):
            if wants_card:
                kwargs = {**kwargs, "device": META}
                kwargs.pop("generator", None)
            return self._on_card(func, types, args, kwargs, is_sent=wants_card and not has_card)
        if has_stand_in or (device is not None and device.type == "meta"):
            if device is not None:
                kwargs = {**kwargs, "device": META}
            return self._on_host(func, args, kwargs)
        if _num_elements(args) >= LARGE and self._operator(func).is_factory:
            return self.keep_on_host(func(*args, **{**kwargs, "device": META}))
        return func(*args, **kwargs)

    def _on_card(self, func: Any, types: Any, args: Any, kwargs: Any, *, is_sent: bool) -> Any:
        before = self.role
        is_sent = is_sent and func is aten._to_copy.default and self.phase is not Phase.BACKWARD
        if is_sent and before is Role.TEMPORARY:
            self.role = Role.INPUT
        try:
            result = super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            self.role = before
        self.num_operators -= 1  # counted by both
        return result

    def _on_host(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run *func* for its shapes alone: nothing of it is on the card."""
        operator = self._operator(func)
        if operator.is_factory:
            result = func(*args, **kwargs)
        else:
            result = self.run(func, operator, args, kwargs)
        if self.contents.constants:
            self.contents.compute(func, args, kwargs, result)
        return result if operator.is_read else self._left(result)

    def _left(self, result: Any) -> Any:
        """Return *result* as tensors of the host, unless it is memory of the card."""
        values = result if isinstance(result, (list, tuple)) else (result,)
        for value in values:
            is_stand_in = isinstance(value, torch.Tensor) and value.is_meta
            if is_stand_in and value.untyped_storage()._cdata not in self.live:
                self.keep_on_host(value)
        return result

    def make(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Return what a factory makes on the card."""
        result = func(*args, **kwargs)
        if func is aten.full.default and result.numel() == 1:
            # A number the script chose, such as a loss scale.
            self.contents.keep(result, func(*args, **{**kwargs, "device": torch.device("cpu")}))
        if operator.is_followed:
            self.contents.follow(func, args, result)
        return result

    def read(self, operator: Operator, args: Any) -> Any:
        """Return what is known of a stand-in, else 0, and note where it was read."""
        if operator.name == "aten.equal":
            return False
        values = self.contents.values(args[0])
        if values is not None:
            return bool(values[0]) if args[0].dtype is torch.bool else values[0]
        self.was_read(operator.name)
        return torch.zeros((), dtype=args[0].dtype).item()

    def _operator(self, func: Any) -> Operator:
        return self.operators.get(func) or self.learn(func)

    def _places(self, args: Any, kwargs: Any) -> tuple[bool, bool]:
        """Return whether a tensor among the arguments is on the card, and whether one stands in."""
        has_stand_in = False
        stack = [*args, *kwargs.values()] if kwargs else list(args)
        while stack:
            value = stack.pop()
            if isinstance(value, torch.Tensor):
                if value.is_meta:
                    if value.untyped_storage()._cdata not in self._host:
                        return True, True
                    has_stand_in = True
            elif isinstance(value, (list, tuple)):
                stack.extend(value)
        return False, has_stand_in


def _is_stand_in(args: Any) -> bool:
    """Return whether what an operator writes to, its first argument, is a stand-in."""
    first = args[0] if args else None
    if isinstance(first, (list, tuple)):
        first = next((value for value in first if isinstance(value, torch.Tensor)), None)
    return not isinstance(first, torch.Tensor) or first.is_meta


def _num_elements(args: Any) -> int:
    """Return how many elements a factory called with *args* makes, 0 where that is not said."""
    size = args[0] if args else None
    if not isinstance(size, (list, tuple)):
        return 0
    count = 1
    for length in size:
        if not isinstance(length, int):
            return 0
        count *= length
    return count
