"""`torch.cuda` as a script finds it on a machine with the asked card.

    Shown -> functions of torch.cuda that answer for it

What cannot be asked without a driver is answered; what would run on the card does nothing.
Not modelled: CUDA graphs captured by hand, memory that other processes hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.script.recorder import ScriptRecorder
from estimator.frontends.pytorch.script.tensors import CARD
from estimator.units import GIB

TOLD_BYTES = 80 * GIB
"""What a script that asks is told of a card without a known size."""
MULTIPROCESSORS = 108


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a script is told of the card."""

    name: str
    compute_capability: tuple[int, int]
    usable_bytes: int | None
    """None: not known."""
    multiprocessors: int | None = None


class _Number:
    """A stream or an event: a number, and nothing that happens."""

    streams = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = CARD
        self.cuda_stream = self.stream_id = self.number = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: name == "query"

    def elapsed_time(self, _: Any) -> float:
        """Return milliseconds between two events: some number."""
        return 1.0


class _Stream(_Number):
    """A stream of its own number."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        _Number.streams = min(_Number.streams + 1, 100)
        self.cuda_stream = self.stream_id = self.number = _Number.streams

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


@contextmanager
def card_present(
    shown: Shown, recorder: ScriptRecorder, asked: Callable[[str], None]
) -> Iterator[None]:
    """Let `torch.cuda` answer as if *shown* were there; *asked* hears of what depends on it."""
    card = _Card(shown, recorder, asked)
    cuda: Any = torch.cuda
    with ExitStack() as stack:
        changes = [(cuda, name, value) for name, value in card.answers().items()]
        changes += [(cuda.memory, name, value) for name, value in card.answers().items()]
        changes += [(cuda.random, name, value) for name, value in card.answers().items()]
        changes += [(torch.accelerator, name, value) for name, value in _accelerator().items()]
        known = [(owner, name, value) for owner, name, value in changes if hasattr(owner, name)]
        stack.enter_context(replaced(*known))
        stack.enter_context(replaced((torch, "Generator", _Generator)))
        yield


_MAKE: Any = torch.Generator.__new__


class _Generator(torch.Generator):
    """A generator of the host, whichever device it is asked for."""

    def __new__(cls, device: Any = "cpu") -> Any:  # noqa: ARG004 (theirs)
        return _MAKE(cls, device="cpu")


class _Card:
    """The answers of one card."""

    def __init__(
        self, shown: Shown, recorder: ScriptRecorder, asked: Callable[[str], None]
    ) -> None:
        self.shown = shown
        self.recorder = recorder
        self.asked = asked
        self.usable = shown.usable_bytes or TOLD_BYTES
        self.stream = _Number()

    def answers(self) -> dict[str, Any]:
        """Return the functions of `torch.cuda` by name."""
        capability = self.shown.compute_capability
        state = torch.zeros(16, dtype=torch.uint8)
        nothing = _nothing
        return {
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "init": nothing,
            "_lazy_init": nothing,
            "_lazy_call": nothing,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": nothing,
            "_exchange_device": lambda _: 0,
            "_maybe_exchange_device": lambda _: 0,
            "get_device_name": lambda *_: self.shown.name,
            "get_device_capability": lambda *_: capability,
            "get_device_properties": lambda *_: self.properties(),
            "is_bf16_supported": lambda *_, **__: True,
            "get_arch_list": lambda: [f"sm_{capability[0]}{capability[1]}"],
            "synchronize": nothing,
            "ipc_collect": nothing,
            "manual_seed": nothing,
            "manual_seed_all": nothing,
            "seed": nothing,
            "seed_all": nothing,
            "initial_seed": lambda: 0,
            "get_rng_state": lambda *_: state,
            "get_rng_state_all": lambda: [state],
            "set_rng_state": nothing,
            "set_rng_state_all": nothing,
            "Stream": _Stream,
            "Event": _Number,
            "current_stream": lambda *_: self.stream,
            "default_stream": lambda *_: self.stream,
            "stream": self.on_stream,
            "set_stream": nothing,
            "is_current_stream_capturing": lambda: False,
            "empty_cache": self.empty_cache,
            **self.memory(),
        }

    def memory(self) -> dict[str, Any]:
        """Return what answers for the memory in use: what is alive."""
        alive = self.alive
        names = ("allocated", "reserved")
        asked = {f"{most}memory_{name}": alive for name in names for most in ("", "max_")}
        return {
            **asked,
            "mem_get_info": self.mem_get_info,
            "memory_stats": lambda *_: _Zeros(),
            "memory_summary": lambda *_, **__: "",
            "memory_snapshot": lambda *_: [],
            "reset_peak_memory_stats": _nothing,
            "reset_max_memory_allocated": _nothing,
            "reset_accumulated_memory_stats": _nothing,
            "set_per_process_memory_fraction": self.cap,
        }

    def properties(self) -> Any:
        """Return what `torch.cuda.get_device_properties` says."""
        capability = self.shown.compute_capability
        self.asked("get_device_properties")
        return SimpleNamespace(
            name=self.shown.name,
            major=capability[0],
            minor=capability[1],
            total_memory=self.usable,
            multi_processor_count=self.shown.multiprocessors or MULTIPROCESSORS,
            warp_size=32,
            is_integrated=0,
        )

    def alive(self, *_: Any) -> int:
        """Return the bytes alive on the card now."""
        return sum(life.nbytes for life in self.recorder.live.values())

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        """Return free and total bytes."""
        self.asked("mem_get_info")
        return max(0, self.usable - self.alive()), self.usable

    def cap(self, fraction: float, *_: Any) -> None:
        """Note that the job caps its allocator."""
        self.asked(f"set_per_process_memory_fraction({fraction})")

    def empty_cache(self) -> None:
        """Record that the job hands cached memory back."""
        self.recorder.builder.empty_cache()

    def on_stream(self, stream: Any) -> Any:
        """Return a context whose allocations come from the memory of *stream*."""
        number = getattr(stream, "number", 0)
        return self.recorder.on_stream(number) if number else nullcontext()


class _Zeros(dict[str, int]):
    """Statistics nobody keeps."""

    def __missing__(self, _: str) -> int:
        return 0


def _accelerator() -> dict[str, Any]:
    """Return the answers of `torch.accelerator`."""
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": _nothing,
        "set_device_idx": _nothing,
        "current_stream": lambda *_: _Number(),
        "set_stream": _nothing,
        "synchronize": _nothing,
    }


def _nothing(*_: Any, **__: Any) -> None:
    return None
