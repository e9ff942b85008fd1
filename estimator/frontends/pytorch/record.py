"""Watch storages come and go while a model runs, and write them down as a trace.

    operator calls on stand-ins -> TraceBuilder

Storages count, not tensors: views are free. A tensor's role is set when it is known: an activation
is what the forward pass leaves alive, a gradient what backward puts in `.grad`, optimizer state
what `step()` leaves alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch

from estimator.frontends.pytorch.kernels import KernelRules
from estimator.frontends.pytorch.modules import ModuleLog
from estimator.frontends.pytorch.operators import Operator
from estimator.frontends.pytorch.outcome import HostTensor, Outcome, key_of, outcome_of
from estimator.frontends.pytorch.standin import StandIn
from estimator.trace import Kernel, Phase, Role, TraceBuilder

_UNSEEN = object()


class Life(ref[Any]):
    """A weak reference to a storage that knows the tensor id it was recorded under."""

    __slots__ = ("key", "nbytes", "tensor")

    key: int
    nbytes: int
    tensor: int


class Recorder(StandIn):  # type: ignore[no-untyped-call]
    """Records what operators allocate, what dies, and which library kernels run."""

    def __init__(self, builder: TraceBuilder, kernels: KernelRules, *, sums_in_place: bool) -> None:
        super().__init__()
        self.builder = builder
        self.kernels = kernels
        self.sums_in_place = sums_in_place
        self.live: dict[int, Life] = {}
        self.step = 0
        self.phase = Phase.LOAD
        self.role = Role.TEMPORARY
        self.stream = 0
        self.is_aside = False
        self.modules = ModuleLog()
        self._sum: tuple[Life, Operator, tuple[int, int]] | None = None
        self._died_callback = self._died

    # --- what the phases say -------------------------------------------------------------------

    def enter(self, phase: Phase, *, step: int) -> None:
        """Start *phase* of *step*."""
        self._settle()
        self.phase, self.step = phase, step
        self.modules.leave()
        if phase is Phase.FORWARD:
            self.modules.clear()
        self.builder.at(step=step, phase=phase, operator="", module="")

    def close(self) -> None:
        """End the record: what dies from now on dies with the process, not with the job."""
        self._settle()
        self.live.clear()

    @contextmanager
    def making(self, role: Role) -> Iterator[None]:
        """Give *role* to everything that is allocated in this block."""
        before, self.role = self.role, role
        try:
            yield
        finally:
            self._settle()
            self.role = before

    @contextmanager
    def on_stream(self, stream: int) -> Iterator[None]:
        """Allocate everything of this block from the memory of *stream*."""
        self._settle()
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self._settle()
            self.stream = before

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Record nothing that this block allocates or calls: its memory is there already."""
        self._settle()
        before, self.is_aside = self.is_aside, True
        try:
            yield
        finally:
            self.is_aside = before

    def adopt(self, tensors: Iterable[tuple[str, torch.Tensor]], role: Role) -> None:
        """Record tensors that exist already, such as a model's parameters, as allocated now."""
        for name, tensor in tensors:
            storage = tensor.untyped_storage()
            if storage._cdata not in self.live:
                module = name.rpartition(".")[0]
                self.builder.at(step=self.step, phase=self.phase, operator="", module=module)
                self._note(storage, storage.nbytes(), role)

    def set_role(self, tensors: Iterable[torch.Tensor], role: Role) -> None:
        """Give *role* to the storages of *tensors*."""
        self._settle()
        for tensor in tensors:
            life = self.live.get(tensor.untyped_storage()._cdata)
            if life is not None:
                self.builder.set_role(life.tensor, role)

    def promote(self, role: Role) -> None:
        """Give *role* to every temporary that is still alive."""
        self._settle()
        roles = self.builder.roles
        for life in self.live.values():
            if roles[life.tensor] == Role.TEMPORARY:
                roles[life.tensor] = role

    def known(self) -> int:
        """Return a mark: tensors recorded later have larger ids."""
        self._settle()
        return len(self.builder.sizes)

    def promote_new(self, mark: int, role: Role) -> None:
        """Give *role* to every tensor that is alive and was recorded after *mark*."""
        self._settle()
        for life in self.live.values():
            if life.tensor >= mark:
                self.builder.set_role(life.tensor, role)

    def communication(self, sizes: Iterable[int]) -> None:
        """Record buffers that live as long as the job."""
        for nbytes in sizes:
            self.builder.alloc(nbytes, Role.COMMUNICATION)

    # --- what the operators do -----------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.num_operators += 1
        result = self._watch(func, args, kwargs)
        if self.contents.constants:
            self.contents.compute(func, args, kwargs, result)
        return result

    def _watch(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run *func* and record what it allocates."""
        if self._sum is not None:
            self._settle()
        operator = self.operators.get(func) or self.learn(func)
        if self.is_aside:
            return self.run(func, operator, args, kwargs or {})
        if operator.may_leave and kwargs and _is_host(kwargs.get("device")):
            return self.run(func, operator, args, kwargs)
        if operator.fresh and not operator.is_factory:
            return self._run_fresh(func, operator, args, kwargs)
        result = self.run(func, operator, args, kwargs or {})
        if not operator.aliases:
            self._note_result(operator, result)
        elif func in self.kernels.rules:
            self._note_kernel(func, operator, None, args, result)
        return result

    def _run_fresh(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Run an operator that makes new memory; its shape rule runs once for equal arguments."""
        try:
            key = (
                key_of(args) if not kwargs else (key_of(args), *kwargs, key_of([*kwargs.values()]))
            )
            if operator.depends_on_values:
                key = (key, self.contents.signature(args))
            outcome = operator.memory.get(key, _UNSEEN)
        except (HostTensor, TypeError):
            result = self.run(func, operator, args, kwargs or {})
            self._note_result(operator, result)
            return result
        if outcome is _UNSEEN:
            return self._run_unseen(func, operator, key, args, kwargs or {})
        if outcome is None:
            result = self.run(func, operator, args, kwargs or {})
            self._note_result(operator, result)
        else:
            result = outcome.make()
            if operator.is_followed:
                self.contents.follow(func, args, result)
            self._note_outcome(operator, outcome, result, args, kwargs)
        self._note_kernel(func, operator, key, args, result)
        return result

    def _run_unseen(self, func: Any, operator: Operator, key: Any, args: Any, kwargs: Any) -> Any:
        result = self.run(func, operator, args, kwargs)
        outcome = outcome_of(result)
        if outcome is not None and self._is_new(result):
            operator.memory[key] = outcome
            self._note_outcome(operator, outcome, result, args, kwargs)
        else:
            operator.memory[key] = None
            self._note_result(operator, result)
        self._note_kernel(func, operator, key, args, result)
        return result

    def _is_new(self, result: Any) -> bool:
        values = [result] if isinstance(result, torch.Tensor) else result
        keys = [v.untyped_storage()._cdata for v in values if isinstance(v, torch.Tensor)]
        return len(set(keys)) == len(keys) and not any(key in self.live for key in keys)

    def _note_outcome(
        self, operator: Operator, outcome: Outcome, result: Any, args: Any, kwargs: Any
    ) -> None:
        """Record the tensors of *result*, whose sizes *outcome* knows."""
        if outcome.kind is None:
            part = outcome.parts[0]
            if part is None or not part[1]:
                return
            if operator.is_sum and self._may_be_in_place(args, kwargs):
                self._hold_sum(operator, result, part[1], args)
                return
            self._place(operator)
            self._note(result.untyped_storage(), part[1], self._role())
            return
        self._place(operator)
        role = self._role()
        for part, tensor in zip(outcome.parts, result, strict=True):
            if part is not None and part[1]:
                self._note(tensor.untyped_storage(), part[1], role)

    def _note_result(self, operator: Operator, result: Any) -> None:
        """Record every tensor of *result* that is not known yet."""
        values = result if isinstance(result, (tuple, list)) else (result,)
        for value in values:
            if isinstance(value, (tuple, list)):
                self._note_result(operator, value)
            elif isinstance(value, torch.Tensor) and value.is_meta:
                storage = value.untyped_storage()
                if storage._cdata not in self.live and storage.nbytes():
                    self._place(operator)
                    self._note(storage, storage.nbytes(), self._role())

    def _note_kernel(self, func: Any, operator: Operator, key: Any, args: Any, result: Any) -> None:
        if func in self.kernels.rules:
            kernel: Kernel | None = self.kernels.kernel_of(
                func, operator.name, key, args, result, self.phase
            )
            if kernel is not None:
                self._settle()
                self._place(operator)
                self.builder.kernel(kernel)

    def _note(self, storage: Any, nbytes: int, role: Role) -> Life:
        life = Life(storage, self._died_callback)
        life.key = storage._cdata
        life.nbytes = nbytes
        life.tensor = self.builder.alloc(nbytes, role, stream=self.stream)
        self.live[life.key] = life
        return life

    def _died(self, life: Life) -> None:
        if self.live.get(life.key) is life:
            del self.live[life.key]
            held = self._sum
            if held is not None:
                if life is held[0]:
                    self._sum = None
                    return
                if life.tensor in held[2] and life.nbytes == held[0].nbytes:
                    held[0].tensor = life.tensor
                    self._sum = None
                    return
            self.builder.free(life.tensor)

    # --- sums of gradients ---------------------------------------------------------------------

    def _may_be_in_place(self, args: Any, kwargs: Any) -> bool:
        if (
            not self.sums_in_place
            or self.phase is not Phase.BACKWARD
            or kwargs
            or torch.is_grad_enabled()
        ):
            return False
        left, right = args
        return (
            isinstance(left, torch.Tensor)
            and isinstance(right, torch.Tensor)
            and left.shape == right.shape
            and left.dtype == right.dtype
        )

    def _hold_sum(self, operator: Operator, result: Any, nbytes: int, args: Any) -> None:
        """Wait with a sum of gradients: if an addend dies next, the engine added in place.

        Source: torch/csrc/autograd/input_buffer.cpp (`can_accumulate_inplace`). A dispatch mode
        makes the engine add out of place, which a run without one does not do.
        """
        lives = [self.live.get(value.untyped_storage()._cdata) for value in args]
        addends = tuple(life.tensor for life in lives if life is not None)
        if len(addends) != 2:
            self._place(operator)
            self._note(result.untyped_storage(), nbytes, self._role())
            return
        storage = result.untyped_storage()
        life = Life(storage, self._died_callback)
        life.key, life.nbytes, life.tensor = storage._cdata, nbytes, -1
        self.live[life.key] = life
        self._sum = (life, operator, (addends[0], addends[1]))

    def _settle(self) -> None:
        """Record a held sum as new memory: no addend died."""
        if self._sum is not None:
            life, operator, _ = self._sum
            self._sum = None
            self._place(operator)
            life.tensor = self.builder.alloc(life.nbytes, self._role(), stream=self.stream)

    # --- where it happens ----------------------------------------------------------------------

    def _role(self) -> Role:
        if self.role is Role.TEMPORARY and self.phase is Phase.BACKWARD:
            return Role.ACTIVATION if torch.is_grad_enabled() else Role.TEMPORARY
        return self.role

    def _place(self, operator: Operator) -> None:
        if self.phase is Phase.BACKWARD and not torch.is_grad_enabled():
            module = self.modules.of_backward()
        else:
            module = self.modules.current
        self.builder.at(step=self.step, phase=self.phase, operator=operator.name, module=module)


def _is_host(device: Any) -> bool:
    """Return whether *device* is named and is not the card: what is made there costs nothing."""
    return device is not None and device.type != "meta"
