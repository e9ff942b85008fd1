"""The loss of a transformers model.

outputs -> scalar
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.heads import Head
from estimator.frontends.pytorch.build.job import Batch
from estimator.notes import AssumptionCode, UnknownCode

EMBEDDINGS = ("pooler_output", "last_hidden_state", "image_embeds", "logits")


def loss_of(head: Head, notebook: Notebook) -> Callable[[Any, Batch], torch.Tensor]:
    """Return the function that takes the loss out of a model's outputs.

    Models compute it themselves from `labels`; a bare encoder is taken to be trained on the mean
    of its embeddings.
    """

    def loss(outputs: Any, _: Batch) -> torch.Tensor:
        own = getattr(outputs, "loss", None)
        if isinstance(own, torch.Tensor):
            return own
        for name in EMBEDDINGS:
            value = getattr(outputs, name, None)
            if isinstance(value, torch.Tensor) and value.requires_grad:
                notebook.assume(
                    AssumptionCode.DEFAULT,
                    "model.task",
                    f"mean of {name}",
                    f"{head} has no loss of its own",
                )
                return value.float().mean()
        raise UnsupportedJobError(
            f"model.task: '{head}' of this model has no loss to train on",
            code=UnknownCode.TASK,
            path="model.task",
        )

    return loss
