"""The special sizes of MXNet's reshapes.

shape of the data, sizes asked for -> new shape
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from estimator.frontends.mxnet.graph import Shape
from estimator.frontends.mxnet.operators.base import Call


def new_shape(call: Call, wanted: Sequence[int], *, reverse: bool = False) -> Shape:
    """Return the shape of `Reshape`.

    0 keeps a size, -1 is the rest, -2 keeps all that follow, -3 joins two, -4 splits one in two.
    Source: apache/mxnet@1.9.1 `src/operator/tensor/matrix_op-inl.h` (`InferReshapeShape`).
    """
    words = {0: "keep", -1: "rest", -2: "all", -3: "join", -4: "split"}
    return _walk(call, wanted, words, reverse=reverse)


def numpy_shape(call: Call, wanted: Sequence[int]) -> Shape:
    """Return the shape of `npx.reshape`.

    -1 is the rest, -2 keeps a size, -3 drops a one, -4 keeps all, -5 joins two, -6 splits one.
    Source: apache/mxnet@1.9.1 `src/operator/numpy/np_matrix_op.cc` (`NumpyXReshapeInferShape`).
    """
    words = {-1: "rest", -2: "keep", -3: "drop", -4: "all", -5: "join", -6: "split"}
    return _walk(call, wanted, words, reverse=call.attributes.flag("reverse"))


def old_target_shape(call: Call) -> Shape:
    """Return the shape of a `Reshape` written with `target_shape`, where 0 is the rest."""
    target = list(call.attributes.integers("target_shape"))
    first = 1 if call.attributes.flag("keep_highest") else 0
    if first:
        target[0] = call.data[0]
    open_places = [place for place in range(first, len(target)) if target[place] == 0]
    if len(open_places) == 1:
        place = open_places[0]
        target[place] = 1
        target[place] = prod(call.data) // max(1, prod(target))
    return tuple(target)


def _walk(call: Call, wanted: Sequence[int], words: dict[int, str], *, reverse: bool) -> Shape:
    data = list(call.data)
    sizes = list(wanted)
    if reverse:
        data.reverse()
        sizes.reverse()
    walk = _Walk(call, data, sizes, words)
    shape = walk.shape()
    return tuple(reversed(shape)) if reverse else tuple(shape)


class _Walk:
    """One reshape, size by size."""

    def __init__(
        self, call: Call, data: list[int], sizes: list[int], words: dict[int, str]
    ) -> None:
        self.call = call
        self.data = data
        self.sizes = sizes
        self.words = words
        self.source = 0
        self.found: list[int] = []
        self.rest: int | None = None

    def shape(self) -> list[int]:
        """Return the new shape.

        Raises:
            SpecError: if the sizes do not go with the data.
        """
        pending = iter(self.sizes)
        for size in pending:
            self._one(size, pending)
        if self.rest is not None:
            known = prod(size for place, size in enumerate(self.found) if place != self.rest)
            self.found[self.rest] = prod(self.data) // known if known else 0
        if prod(self.found) != prod(self.data):
            raise self._wrong()
        return self.found

    def _one(self, size: int, pending: Iterator[int]) -> None:
        word = self.words.get(size)
        if word is None:
            if size < 0:
                raise self._wrong()
            self.found.append(size)
            self.source += 1
        elif word == "rest":
            self.rest = len(self.found)
            self.found.append(1)
            self.source += 1
        elif word == "keep":
            self.found.append(self._take())
        elif word == "drop":
            self._take()
        elif word == "all":
            self.found.extend(self.data[self.source :])
            self.source = len(self.data)
        elif word == "join":
            self.found.append(self._take() * self._take())
        else:
            self.found.extend(self._split(pending))

    def _take(self) -> int:
        if self.source >= len(self.data):
            raise self._wrong()
        self.source += 1
        return self.data[self.source - 1]

    def _split(self, pending: Iterator[int]) -> tuple[int, int]:
        left, right = next(pending, None), next(pending, None)
        whole = self._take()
        if left is None or right is None or not left or not right or left == right == -1:
            raise self._wrong()
        return (whole // right if left == -1 else left, whole // left if right == -1 else right)

    def _wrong(self) -> Exception:
        return self.call.wrong(f"data of {self.call.data} cannot take the shape {self.sizes}")
