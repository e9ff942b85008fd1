"""Which part of a step a script is in, told by what it calls.

    module calls, backward, optimizer steps -> phases and roles of the recorder, the cut

A step ends with the optimizer's. Once every optimizer that steps has made as many as are to be
seen, the script is cut. One without an optimizer is cut once a model was called as often, and once
more, with inputs of equal shapes: then nothing grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim import optimizer as torch_optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.script.recorder import ScriptRecorder
from estimator.frontends.pytorch.script.stops import Enough, Extent
from estimator.trace import Phase, Role

Shapes = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """What a model was called with."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Watch:
    """What has been seen of a script's steps."""

    def __init__(
        self, recorder: ScriptRecorder, extent: Extent, *, at_call: Callable[[], None]
    ) -> None:
        self.recorder = recorder
        self.extent = extent
        self.at_call = at_call
        """Called before each call of a model, to see what changed meanwhile."""
        self.optimizers: WeakSet[Any] = WeakSet()
        self.stepped: dict[int, int] = {}
        """Optimizer, by id -> steps it made."""
        self.optimizer: str | None = None
        """The class of the one that stepped first."""
        self.num_weights = 0
        """Elements of the weights of every model that was called."""
        self.weight: tuple[int, torch.dtype] = (0, torch.float32)
        """Elements and dtype of the largest weight."""
        self.inputs: tuple[Fed, ...] = ()
        """What it was called with, the first time in training if there is any."""
        self.num_backward = 0
        self.num_calls = 0
        self.in_backward = 0
        self.quiet_calls = 0
        """Calls without gradients in a row."""
        self._depth = 0
        self._generating = 0
        self._paths: dict[int, str] = {}
        self._parameters: Any = WeakTensorKeyDictionary()
        self._repeated: tuple[Shapes | None, int] = (None, 0)
        self._generations: tuple[Shapes | None, int] = (None, 0)
        self._was_training = False

    @property
    def steps(self) -> int:
        """Return the steps that are done."""
        return min(self.stepped.values(), default=0)

    # --- calls of models -------------------------------------------------------------------------

    def called(self, own: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any) -> Any:
        """Call *module* by its *own* way, as a part of what runs or as the model of the script."""
        if self._depth or self.in_backward:
            return self._within(own, module, args, kwargs)
        if next(module.parameters(), None) is None:
            return own(module, *args, **kwargs)
        self._begin(module, args, kwargs)
        self._depth += 1
        try:
            return self._within(own, module, args, kwargs)
        finally:
            self._depth -= 1
            self._end(self._repeated[1])

    def _within(self, own: Any, module: nn.Module, args: Any, kwargs: Any) -> Any:
        path = self._paths.get(id(module))
        if path is None:
            return own(module, *args, **kwargs)
        before = self.recorder.modules.visit(path)
        try:
            return own(module, *args, **kwargs)
        finally:
            self.recorder.modules.visit(before)

    def _begin(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        recorder, trains = self.recorder, torch.is_grad_enabled()
        self.at_call()
        self._know(module)
        tensors = tuple(_tensors_in((args, kwargs)))
        recorder.set_role((each for each in tensors if recorder.is_on_card(each)), Role.INPUT)
        self._know_roles(module)
        if not self.num_calls or (trains and not self._was_training):
            # Facts only: a tensor that is held here would live longer than in the job.
            fed = tuple(Fed(shape=tuple(each.shape), dtype=each.dtype) for each in tensors)
            self.inputs, self._was_training = fed, trains
        phase = Phase.FORWARD if trains or module.training else Phase.EVALUATION
        if recorder.phase is not phase:
            recorder.enter(phase, step=self.steps + 1)
        self.num_calls += 1
        self.quiet_calls = 0 if trains else self.quiet_calls + 1
        shapes = (id(module), *(tuple(each.shape) for each in tensors))
        last, times = self._repeated
        self._repeated = (shapes, times + 1 if shapes == last else 1)

    def _end(self, times: int) -> None:
        """Cut a script without an optimizer once calls repeat."""
        if self.optimizers or self._generating or self.num_backward:
            return
        if times > self.extent.steps:
            self.recorder.promote(Role.ACTIVATION)
            self._cut()

    def _know(self, module: nn.Module) -> None:
        """Remember the paths of a model that is called for the first time."""
        if id(module) in self._paths:
            return
        # Inside a wrapper, a model's own paths are what its author knows.
        inner: Any = module
        while isinstance(getattr(inner, "module", None), nn.Module):
            inner = inner.module
        self._paths[id(module)] = ""
        self._paths |= {id(each): path for path, each in inner.named_modules()}

    def _know_roles(self, module: nn.Module) -> None:
        recorder = self.recorder
        weights = [each for each in (*module.parameters(), *module.buffers()) if each.is_meta]
        recorder.set_role((each for each in weights if recorder.is_on_card(each)), Role.PARAMETER)
        for each in module.parameters():
            if each not in self._parameters:
                self._parameters[each] = True
                self.num_weights += each.numel()
                self.weight = max(self.weight, (each.numel(), each.dtype), key=lambda it: it[0])

    def generated(self, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a generation: its calls are one, of a model whose inputs grow."""
        self._generating += 1
        try:
            result = own(*args, **kwargs)
        finally:
            self._generating -= 1
        shapes = ("generate", *(tuple(each.shape) for each in _tensors_in((args, kwargs))))
        self._generations = (
            shapes,
            self._generations[1] + 1 if shapes == self._generations[0] else 1,
        )
        self._end(self._generations[1])
        return result

    # --- backward and the optimizer --------------------------------------------------------------

    def backward(self, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a backward pass; one inside another is a part of it."""
        if self.in_backward:
            return own(*args, **kwargs)
        recorder, step = self.recorder, self.steps + 1
        recorder.promote(Role.ACTIVATION)
        recorder.enter(Phase.BACKWARD, step=step)
        self.in_backward += 1
        self.num_backward += 1
        try:
            return own(*args, **kwargs)
        finally:
            self.in_backward -= 1
            grads = [each.grad for each in self._parameters if each.requires_grad]
            recorder.set_role((each for each in grads if each is not None), Role.GRADIENT)
            recorder.enter(Phase.OPTIMIZER, step=step)

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """Enter the optimizer's step."""
        if self.recorder.phase is not Phase.OPTIMIZER:
            self.recorder.enter(Phase.OPTIMIZER, step=self.steps + 1)
        if self.optimizer is None:
            self.optimizer = type(optimizer).__name__

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """Count the step, and cut the script after the last that is to be seen."""
        states = [value for each in optimizer.state.values() for value in _tensors_in(each)]
        recorder = self.recorder
        recorder.set_role((each for each in states if recorder.is_on_card(each)), Role.OPTIMIZER)
        self.stepped[id(optimizer)] = self.stepped.get(id(optimizer), 0) + 1
        if self.steps >= self.extent.steps:
            self._cut()

    def _cut(self) -> None:
        """End the script here: what dies while it unwinds dies with the process."""
        self.recorder.close()
        self.recorder.is_aside = True
        raise Enough


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let *watch* hear of modules, backward passes and optimizers inside the block."""
    call: Callable[..., Any] = nn.Module._call_impl
    backward, grad, make = torch.autograd.backward, torch.autograd.grad, Optimizer.__init__

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return watch.called(call, self, args, kwargs)

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        watch.optimizers.add(self)

    before = torch_optimizer.register_optimizer_step_pre_hook(watch.before_step)
    after = torch_optimizer.register_optimizer_step_post_hook(watch.after_step)
    with replaced(
        (nn.Module, "__call__", __call__),
        (torch.autograd, "backward", lambda *a, **k: watch.backward(backward, *a, **k)),
        (torch.autograd, "grad", lambda *a, **k: watch.backward(grad, *a, **k)),
        (Optimizer, "__init__", made),
    ):
        try:
            yield
        finally:
            before.remove()
            after.remove()


def _tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested lists and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 6:
        items = value.values() if hasattr(value, "values") and hasattr(value, "keys") else value
        if isinstance(value, (list, tuple)) or items is not value:
            for item in items:
                yield from _tensors_in(item, depth + 1)
