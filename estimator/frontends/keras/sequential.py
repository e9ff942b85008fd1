"""Sequential models put together once, however many layers they have.

    configuration -> keras.Sequential

Keras builds such a model anew with each layer that its configuration adds, all layers before it
included: a thousand layers are half a million calls. Built once, the model is the same.

Source: keras 3.15.1 src/models/sequential.py (`from_config`, `add`, `_maybe_rebuild`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras


@contextmanager
def built_once() -> Iterator[None]:
    """Let every Sequential that is read from a configuration be built when it has all its layers.

    Not for threads: while it lasts, Keras' class is another one.
    """
    sequential: Any = keras.Sequential
    own = {name: vars(sequential)[name] for name in ("add", "from_config")}

    def add(self: Any, layer: Any, rebuild: bool = True) -> None:  # noqa: ARG001
        own["add"](self, layer, rebuild=False)

    def from_config(cls: Any, config: Any, custom_objects: Any = None) -> Any:
        model = own["from_config"].__func__(cls, config, custom_objects)
        if model._functional is None and model._layers:
            model._maybe_rebuild()
        return model

    sequential.add, sequential.from_config = add, classmethod(from_config)
    try:
        yield
    finally:
        for name, value in own.items():
            setattr(sequential, name, value)
