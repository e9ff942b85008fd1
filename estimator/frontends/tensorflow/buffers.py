"""Buffers with reference counts: TensorFlow frees memory when its last reader is done.

bytes -> Buffer -> allocations and frees of a Trace
"""

from __future__ import annotations

from collections.abc import Iterable

from estimator.trace import Role, TraceBuilder


class Buffer:
    """A stretch of device memory, alive while something refers to it."""

    __slots__ = ("nbytes", "refs", "tensor")

    def __init__(self, tensor: int, nbytes: int) -> None:
        self.tensor = tensor
        """Its number in the trace."""
        self.nbytes = nbytes
        self.refs = 0


class TensorList:
    """A list of buffers: what loops collect. It lies on the host; what is in it may not."""

    __slots__ = ("items", "refs")

    def __init__(self, items: Iterable[Value]) -> None:
        self.items: list[Value] = list(items)
        self.refs = 0


class Variable:
    """What a resource handle leads to. Assignments give it other buffers."""

    __slots__ = ("buffer", "refs", "role")

    def __init__(self, role: Role) -> None:
        self.buffer: Buffer | None = None
        """None: it lies on the host."""
        self.role = role
        self.refs = 1
        """The program's own: a variable does not die with its last reader."""


Value = Buffer | TensorList | Variable | None
"""None: on the host, or nothing at all."""


class Memory:
    """Counts references and writes what they mean for memory into a trace."""

    def __init__(self, builder: TraceBuilder) -> None:
        self.builder = builder

    def new(self, nbytes: int, role: Role) -> Buffer:
        """Return a new buffer nobody refers to yet."""
        return Buffer(self.builder.alloc(nbytes, role), nbytes)

    def hold(self, value: Value, times: int = 1) -> None:
        """Count *times* more references to *value*."""
        if value is not None:
            value.refs += times

    def drop(self, value: Value) -> None:
        """Take one reference back; the last one frees."""
        if value is None:
            return
        value.refs -= 1
        if value.refs == 0:
            self.end(value)

    def discard(self, value: Value) -> None:
        """Free *value* if nobody refers to it."""
        if value is not None and value.refs == 0:
            self.end(value)

    def end(self, value: Buffer | TensorList | Variable) -> None:
        """Free a buffer, or what a list alone held."""
        if isinstance(value, Buffer):
            self.builder.free(value.tensor)
        elif isinstance(value, TensorList):
            for item in value.items:
                self.drop(item)

    def give(self, variable: Variable, buffer: Buffer) -> None:
        """Let *variable* hold *buffer* instead of what it held."""
        old = variable.buffer
        self.hold(buffer)
        self.builder.set_role(buffer.tensor, variable.role)
        variable.buffer = buffer
        self.drop(old)
