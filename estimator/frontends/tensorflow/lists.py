"""Lists of tensors, which loops collect into and read from.

Node, inputs -> outputs

A list refers to buffers: what is pushed stays alive. A list nobody else refers to is changed in
place; else its references are copied. Reading an element gives the buffer itself. A tensor
that becomes a list is copied slice by slice.

Source: tensorflow 2.21 include/tensorflow/core/kernels/list_kernels.h (`TensorListFromTensor`).
Recalled: list_kernels.cc (`TensorListPushBack`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from estimator.frontends.tensorflow.buffers import Buffer, Memory, TensorList, Value
from estimator.frontends.tensorflow.graph import Node, TensorType
from estimator.frontends.tensorflow.hosted import Known
from estimator.trace import Role

MAX_LENGTH = 1 << 16

Fresh = Callable[[TensorType], Value]
"""Makes a buffer for one output."""


class Lists:
    """Runs the operators of lists."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def run(
        self,
        node: Node,
        inputs: Sequence[Value],
        known: Sequence[Known],
        kinds: Sequence[TensorType],
        fresh: Fresh,
        role: Role,
    ) -> list[Value]:
        """Return the outputs of *node*."""
        first = inputs[0] if inputs and isinstance(inputs[0], TensorList) else TensorList(())
        match node.operator:
            case "EmptyTensorList":
                return [TensorList(())]
            case "TensorListReserve":
                return [TensorList([None] * _number(known[1], 0))]
            case "TensorListResize":
                length = _number(known[1], len(first.items))
                changed = self._own(first)
                for item in changed.items[length:]:
                    self.memory.drop(item)
                changed.items = (changed.items + [None] * length)[:length]
                return [changed]
            case "TensorListFromTensor" | "TensorListSplit":
                return [self._cut(kinds[0], role)]
            case "TensorListPushBack":
                changed = self._own(first)
                self.memory.hold(inputs[1])
                changed.items.append(inputs[1])
                return [changed]
            case "TensorListPopBack":
                changed = self._own(first)
                popped = changed.items.pop() if changed.items else None
                return [changed, self._handed_out(popped, node, 1, fresh)]
            case "TensorListSetItem":
                changed = self._own(first)
                place = _number(known[1], 0)
                if place >= len(changed.items):
                    changed.items += [None] * (min(place, MAX_LENGTH) + 1 - len(changed.items))
                self.memory.hold(inputs[2])
                self.memory.drop(changed.items[place])
                changed.items[place] = inputs[2]
                return [changed]
            case "TensorListGetItem":
                place = _number(known[1], 0)
                item = first.items[place] if place < len(first.items) else None
                return [item if item is not None else fresh(node.outputs[0])]
            case "TensorListLength" | "TensorListElementShape":
                return [None]
            case _:  # TensorListStack, TensorListGather, TensorListConcatV2
                return [fresh(each) for each in node.outputs]

    def _own(self, one: TensorList) -> TensorList:
        """Return *one* itself if the operator is its last reader, else a copy."""
        if one.refs <= 1:
            return one
        for item in one.items:
            self.memory.hold(item)
        return TensorList(one.items)

    def _handed_out(self, item: Value, node: Node, output: int, fresh: Fresh) -> Value:
        """Return an item that has just left its list, without the list's reference."""
        if item is None:
            return fresh(node.outputs[output])
        item.refs -= 1
        return item

    def _cut(self, whole: TensorType, role: Role) -> TensorList:
        """Return a list of copies of the slices of a tensor."""
        if not whole.shape or not whole.nbytes or whole.shape[0] > MAX_LENGTH:
            return TensorList(())
        items: list[Value] = []
        for _ in range(whole.shape[0]):
            item: Buffer = self.memory.new(whole.nbytes // whole.shape[0], role)
            self.memory.hold(item)
            items.append(item)
        return TensorList(items)


def _number(known: Known, otherwise: int) -> int:
    return otherwise if known is None else min(int(known), MAX_LENGTH)
