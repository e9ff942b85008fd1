"""NVIDIA's management library as bytes have it: errors, absurd values, names that are no UTF-8.

    Choices -> what `pynvml` loads in place of libnvidia-ml.so.1

It answers whatever is asked: a number, a name, a structure of any bytes. Not modelled: a library
that writes beyond the memory it is given, or says that there are millions of processes, for which
the binding makes room before we see any of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml

from tests.fuzz.choices import Choices

MAX_PROCESSES = 8
_ERRORS = (*range(0, 27), 999, -1, 12345)
_NUMBERS = (0, 1, 2, 8, 0xFFFFFFFF, 1 << 31, 255, 3)


class FakeLibrary:
    """Stands in for the loaded library; functions are made as they are asked for."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml") or self._choices.chance(23):
            raise AttributeError(name)  # an old driver

        def answer(*arguments: Any) -> Any:
            return self._answer(name, arguments)

        return answer

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "nvmlErrorString":
            return self._choices.rest(8)
        is_list = "RunningProcesses" in name
        error = self._choices.pick(_ERRORS) if self._choices.chance(7) else 0
        if is_list and arguments[-1] is None and not error:
            arguments[1]._obj.value = self._choices.below(MAX_PROCESSES)
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        for argument in arguments:
            self._fill(argument, is_list=is_list)
        return error

    def _fill(self, argument: Any, *, is_list: bool) -> None:
        """Write any answer into what is to hold it."""
        place = getattr(argument, "_obj", argument)
        if isinstance(place, ctypes.c_uint) and place is not argument:
            if is_list:
                place.value = min(place.value, self._choices.below(MAX_PROCESSES))
            else:
                place.value = self._choices.pick(_NUMBERS)
        elif isinstance(place, ctypes.Array | ctypes.Structure):
            content = self._choices.rest(min(64, ctypes.sizeof(place)))
            ctypes.memmove(ctypes.addressof(place), content, len(content))


def load(choices: Choices) -> None:
    """Have `pynvml` ask the library that *choices* makes."""
    pynvml.nvmlLib = FakeLibrary(choices)
    pynvml._nvmlGetFunctionPointer_cache.clear()
    pynvml.NVMLError._errcode_to_string.clear()
