"""What a script sees and does of a tensor beside operators: its device, moves, numbers.

    Tensor.to, .cuda, .cpu, .item, .numpy, .device, … -> the same on stand-ins

A stand-in of the card says `cuda:0`, one of the host `cpu`. Numbers nobody knows are 0.
Not modelled: `data_ptr()`, DLPack and other ways to the memory itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import nn

from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.script.recorder import ScriptRecorder

CARD = torch.device("cuda", 0)
HOST = torch.device("cpu")
aten = torch.ops.aten


@contextmanager
def tensors_of(recorder: ScriptRecorder) -> Iterator[None]:
    """Let tensors answer for the places that *recorder* knows, inside the block."""
    moves = _Moves(recorder)
    numbers = _Numbers(recorder)
    tensor, parameter = torch.Tensor, nn.Parameter
    made = ((name, _by_host(getattr(torch, name), moves)) for name in ("tensor", "as_tensor"))
    with replaced(
        (tensor, "device", property(moves.device_of)),
        (tensor, "is_cuda", property(moves.is_cuda)),
        (tensor, "get_device", lambda self: -1 if moves.device_of(self) == HOST else 0),
        (tensor, "to", _method(moves.to)),
        (tensor, "cuda", _method(moves.cuda)),
        (tensor, "cpu", _method(moves.cpu)),
        (tensor, "new_tensor", _method(moves.new_tensor)),
        (tensor, "isfinite", _method(numbers.isfinite)),
        (torch, "isfinite", numbers.isfinite),
        (tensor, "pin_memory", lambda self, *_: self),
        (tensor, "record_stream", lambda *_: None),
        (tensor, "item", _method(numbers.item)),
        (tensor, "tolist", _method(numbers.tolist)),
        (tensor, "numpy", _method(numbers.numpy)),
        (tensor, "__array__", _method(numbers.array)),
        (tensor, "__repr__", _method(numbers.text)),
        (tensor, "__format__", _method(numbers.formatted)),
        (parameter, "__new__", staticmethod(_method(moves.parameter))),
        (parameter, "__repr__", _method(numbers.text)),
        *((torch, name, function) for name, function in made),
    ):
        yield


class _Moves:
    """Where tensors are, and how they get elsewhere."""

    def __init__(self, recorder: ScriptRecorder) -> None:
        self.recorder = recorder
        self._to = torch.Tensor.to
        self._device: Any = torch.Tensor.device
        self._parameter = nn.Parameter.__new__
        self._is_cuda: Any = torch.Tensor.is_cuda

    def device_of(self, tensor: torch.Tensor) -> torch.device:
        """Return the device a script believes *tensor* to be on."""
        device: torch.device = self._device.__get__(tensor)
        if device.type != "meta" or self.recorder.num_inside:
            return device
        return CARD if self.recorder.is_on_card(tensor) else HOST

    def is_cuda(self, tensor: torch.Tensor) -> bool:
        """Return whether a script believes *tensor* to be on the card."""
        return self.device_of(tensor).type == "cuda"

    def to(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """Return *tensor* moved and converted, as `Tensor.to` does."""
        if self.recorder.num_inside:
            return self._to(tensor, *args, **kwargs)
        device, dtype, waits, layout, copy = self._parsed(args, dict(kwargs))
        if device is None or device.type == self.device_of(tensor).type:
            same = {} if layout is None else {"memory_format": layout}
            return self._to(tensor, dtype=dtype or tensor.dtype, copy=copy, **same)
        words: dict[str, Any] = {"dtype": dtype or tensor.dtype, "non_blocking": waits}
        if layout is not None and layout is not torch.preserve_format:
            words["memory_format"] = layout
        return aten._to_copy.default(tensor, device=device, **words)

    def cuda(self, tensor: torch.Tensor, *_: Any, **keywords: Any) -> Any:
        """Return *tensor* on the card."""
        layout = keywords.get("memory_format")
        return self.to(tensor, CARD, **({} if layout is None else {"memory_format": layout}))

    def cpu(self, tensor: torch.Tensor, *_: Any, **__: Any) -> Any:
        """Return *tensor* on the host."""
        return self.to(tensor, HOST)

    def new_tensor(self, tensor: torch.Tensor, data: Any, **keywords: Any) -> Any:
        """Return a tensor of *data* where *tensor* is."""
        words = {"dtype": tensor.dtype, "device": self.device_of(tensor), **keywords}
        return torch.tensor(data, **words)

    def parameter(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a parameter; one with data becomes a stand-in of the host, without memory."""
        rest = list(args)
        data = rest.pop(0) if rest else kwargs.pop("data", None)
        if type(data) is torch.Tensor and not data.is_meta and not self.recorder.num_inside:
            data = self.recorder.host_stand_in(data)
        return self._parameter(cls, data, *rest, **kwargs)

    def _parsed(self, args: tuple[Any, ...], words: dict[str, Any]) -> tuple[Any, ...]:
        """Return device, dtype, non_blocking, memory format and copy of a call of `Tensor.to`.

        The first argument is a device, a dtype or a tensor; flags follow.
        """
        device, dtype = words.get("device"), words.get("dtype")
        flags: list[bool] = []
        for value in (*args, words.get("other")):
            if isinstance(value, torch.Tensor):
                device, dtype = self.device_of(value), value.dtype
            elif isinstance(value, torch.dtype):
                dtype = value
            elif isinstance(value, bool):
                flags.append(value)
            elif value is not None:
                device = value
        waits = words.get("non_blocking", bool(flags) and flags[0])
        copy = words.get("copy", len(flags) > 1 and flags[1])
        if isinstance(device, int):
            device = CARD
        device = None if device is None else torch.device(device)
        if device is not None and device.type == "meta":
            device = HOST
        return device, dtype, waits, words.get("memory_format"), copy


class _Numbers:
    """Values that a script reads of stand-ins."""

    def __init__(self, recorder: ScriptRecorder) -> None:
        self.recorder = recorder
        tensor = torch.Tensor
        self._item: Any = tensor.item
        self._tolist: Any = tensor.tolist
        self._numpy: Any = tensor.numpy
        self._isfinite = torch.isfinite
        self._text: Callable[..., str] = tensor.__repr__
        self._format: Callable[..., str] = tensor.__format__
        self._array: Any = tensor.__array__

    def real(self, tensor: torch.Tensor, what: str) -> torch.Tensor:
        """Return a tensor of the host with the values of *tensor*, or zeros."""
        constant = self.recorder.contents.constants.get(tensor)
        if constant is not None:
            known: torch.Tensor = constant.detach()
            return known
        values = self.recorder.contents.values(tensor) if tensor.dim() == 1 else None
        self.recorder.num_inside += 1
        try:
            with torch.utils._python_dispatch._disable_current_modes():
                if values is not None:
                    return torch.tensor(values, dtype=tensor.dtype, device="cpu")
                self.recorder.was_read(what)
                return torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
        finally:
            self.recorder.num_inside -= 1

    def item(self, tensor: torch.Tensor) -> Any:
        """Return the one number of *tensor*."""
        if not tensor.is_meta:
            return self._item(tensor)
        if tensor.numel() != 1:
            message = f"a Tensor with {tensor.numel()} elements cannot be converted to Scalar"
            raise RuntimeError(message)
        return aten._local_scalar_dense.default(tensor)

    def tolist(self, tensor: torch.Tensor) -> Any:
        """Return the numbers of *tensor*, nested."""
        return self._tolist(self.real(tensor, "Tensor.tolist") if tensor.is_meta else tensor)

    def isfinite(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return which elements are numbers: all of them, as nothing overflows in a trace."""
        result = self._isfinite(tensor)
        if tensor.is_meta:
            self.recorder.contents.note_true(result)
        return result

    def numpy(self, tensor: torch.Tensor, **words: Any) -> Any:
        """Return the numbers of *tensor* as an array; of one on the card it is an error."""
        if not tensor.is_meta:
            return self._numpy(tensor, **words)
        if self.recorder.is_on_card(tensor):
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        return self._numpy(self.real(tensor, "Tensor.numpy"))

    def array(self, tensor: torch.Tensor, dtype: Any = None) -> Any:
        """Return what numpy makes of *tensor*."""
        if not tensor.is_meta:
            return self._array(tensor) if dtype is None else self._array(tensor, dtype)
        made = self.numpy(tensor)
        return made if dtype is None else numpy.asarray(made, dtype=dtype)

    def text(self, tensor: torch.Tensor, **words: Any) -> str:
        """Return *tensor* as text: without values, and reading none."""
        if not tensor.is_meta:
            return self._text(tensor, **words)
        place = "cuda:0" if self.recorder.is_on_card(tensor) else "cpu"
        return f"tensor(..., device='{place}', size={tuple(tensor.shape)}, dtype={tensor.dtype})"

    def formatted(self, tensor: torch.Tensor, specification: str) -> str:
        """Return *tensor* as an f-string writes it."""
        if not tensor.is_meta:
            return self._format(tensor, specification)
        if tensor.dim():
            return format(self.text(tensor), specification)
        return format(self.item(tensor), specification)


def _method(bound: Callable[..., Any]) -> Any:
    """Return *bound* as a function that a class binds to its own instances."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return bound(self, *args, **kwargs)

    return method


def _by_host(own: Any, moves: _Moves) -> Any:
    """Return *own*, which makes a tensor of numbers, with a stop on the host."""

    def made(data: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.pop("device", None)
        device = None if device is None else torch.device(device)
        if moves.recorder.num_inside or device is None or device.type == "cpu":
            return own(data, *args, **kwargs, **({} if device is None else {"device": device}))
        if isinstance(data, torch.Tensor):
            return moves.to(data, device, **kwargs)
        grad = kwargs.pop("requires_grad", False)
        tensor = moves.to(own(data, *args, device="cpu", **kwargs), device)
        return tensor.requires_grad_() if grad else tensor

    return made
