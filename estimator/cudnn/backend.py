"""cuDNN's backend interface: descriptors with attributes. All ctypes on cuDNN is here.

    folder -> Backend -> Descriptors

Knows no convolution. Only in the cuDNN process: the library aborts where cublasLt is missing.
Source of the calls: `cudnn_graph.h` of cuDNN 9.26.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from estimator.cudnn import names
from estimator.cudnn.folders import FILE

OLDEST = 90800
"""cuDNN 9.8: the first with device-property descriptors."""
MAX_NOTES = 16
MAX_MESSAGE = 200


class LibraryError(Exception):
    """cuDNN cannot be loaded, or refused a call."""


class Backend:
    """A loaded cuDNN."""

    def __init__(self, folder: Path) -> None:
        """Load the library in *folder*.

        Raises:
            LibraryError: if there is none, or one that cannot be asked without a card.
        """
        try:
            self.calls = ctypes.CDLL(str(folder / FILE), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise LibraryError(f"{FILE} does not load: {_line(str(error))}") from error
        _declare(self.calls)
        self.version = int(self.calls.cudnnGetVersion())
        self.cuda = int(self.calls.cudnnGetCudartVersion()) // 1000
        if self.version < OLDEST:
            raise LibraryError(f"cuDNN {self.version} cannot be asked, {OLDEST} and newer can")

    def new(self, kind: int, stack: ExitStack) -> Descriptor:
        """Return a new descriptor of *kind* that ends with *stack*."""
        descriptor = Descriptor(self, kind)
        stack.callback(descriptor.destroy)
        return descriptor

    def check(self, status: int) -> None:
        """Raise what cuDNN says if *status* is an error."""
        if status == 0:
            return
        text = ctypes.create_string_buffer(4 * MAX_MESSAGE)
        self.calls.cudnnGetLastErrorString(text, len(text))
        name = self.calls.cudnnGetErrorString(status).decode(errors="replace")
        raise LibraryError(_line(f"{name} {text.value.decode(errors='replace')}"))


class Descriptor:
    """A descriptor. Every method raises `LibraryError` if cuDNN refuses."""

    def __init__(self, backend: Backend, kind: int) -> None:
        self._backend = backend
        self.pointer = ctypes.c_void_p()
        create = backend.calls.cudnnBackendCreateDescriptor
        backend.check(create(kind, ctypes.byref(self.pointer)))

    def destroy(self) -> None:
        """Give the descriptor back."""
        self._backend.calls.cudnnBackendDestroyDescriptor(self.pointer)

    def finalize(self) -> None:
        """Have cuDNN check what was set."""
        self._backend.check(self._backend.calls.cudnnBackendFinalize(self.pointer))

    def set_integers(self, attribute: int, values: Sequence[int]) -> None:
        """Set 64-bit integers."""
        self._set(attribute, names.TYPE_INT64, (ctypes.c_int64 * len(values))(*values))

    def set_float(self, attribute: int, value: float) -> None:
        """Set a 32-bit float."""
        self._set(attribute, names.TYPE_FLOAT, (ctypes.c_float * 1)(value))

    def set_enum(self, attribute: int, kind: int, value: int) -> None:
        """Set a value of the enumeration *kind*."""
        self._set(attribute, kind, (ctypes.c_int * 1)(value))

    def set_text(self, attribute: int, text: bytes) -> None:
        """Set characters."""
        self._set(attribute, names.TYPE_CHAR, ctypes.create_string_buffer(text, len(text)))

    def set_descriptor(self, attribute: int, descriptor: Descriptor) -> None:
        """Set another descriptor."""
        pointers = (ctypes.c_void_p * 1)(descriptor.pointer.value)
        self._set(attribute, names.TYPE_BACKEND_DESCRIPTOR, pointers)

    def count(self, attribute: int) -> int:
        """Return how many descriptors *attribute* has."""
        return self._get(attribute, names.TYPE_BACKEND_DESCRIPTOR, 0, None)

    def get_descriptors(self, attribute: int, into: Sequence[Descriptor]) -> int:
        """Fill the descriptors *into* and return how many were."""
        pointers = (ctypes.c_void_p * len(into))(*(each.pointer.value for each in into))
        return self._get(attribute, names.TYPE_BACKEND_DESCRIPTOR, len(into), pointers)

    def get_integer(self, attribute: int) -> int:
        """Return a 64-bit integer."""
        value = ctypes.c_int64()
        self._get(attribute, names.TYPE_INT64, 1, ctypes.byref(value))
        return value.value

    def get_notes(self, attribute: int) -> tuple[int, ...]:
        """Return numerical notes."""
        notes = (ctypes.c_int * MAX_NOTES)()
        found = self._get(attribute, names.TYPE_NUMERICAL_NOTE, MAX_NOTES, notes)
        return tuple(notes[:found])

    def _set(self, attribute: int, kind: int, values: ctypes.Array[Any]) -> None:
        call = self._backend.calls.cudnnBackendSetAttribute
        self._backend.check(call(self.pointer, attribute, kind, len(values), values))

    def _get(self, attribute: int, kind: int, size: int, into: object) -> int:
        found = ctypes.c_int64()
        call = self._backend.calls.cudnnBackendGetAttribute
        status = call(self.pointer, attribute, kind, size, ctypes.byref(found), into)
        self._backend.check(status)
        return found.value


def _declare(calls: ctypes.CDLL) -> None:
    """State the types of the calls, so that no pointer is cut to 32 bits."""
    pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    attribute: list[Any] = [pointer, integer, integer, size]
    calls.cudnnGetVersion.restype = ctypes.c_size_t
    calls.cudnnGetCudartVersion.restype = ctypes.c_size_t
    calls.cudnnGetErrorString.restype = ctypes.c_char_p
    calls.cudnnGetLastErrorString.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    calls.cudnnGetLastErrorString.restype = None
    calls.cudnnBackendCreateDescriptor.argtypes = [integer, ctypes.POINTER(pointer)]
    calls.cudnnBackendDestroyDescriptor.argtypes = [pointer]
    calls.cudnnBackendFinalize.argtypes = [pointer]
    calls.cudnnBackendSetAttribute.argtypes = [*attribute, pointer]
    calls.cudnnBackendGetAttribute.argtypes = [*attribute, ctypes.POINTER(size), pointer]


def _line(text: str) -> str:
    """Return *text* in one line, not too long."""
    return " ".join(text.split())[:MAX_MESSAGE]
