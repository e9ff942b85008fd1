"""What one compiled graph makes of a model's norms, gated products and loss.

    model -> the same with layers and loss replaced

Norms and gated products are one kernel each, with the gradients in the places of what they were
made from (`donated_buffer`): as Liger's kernels, whose stand-ins these are. So the graph holds no
cast of a norm's input and no activation beside the product.

Cross entropy over all logits: Inductor fuses the cast to fp32, the log-softmax and the selection
into reductions: what stays for backward are the logits in their own dtype and two fp32 values a
token, and backward writes the gradient of the logits in that dtype in one pass. Eagerly it is 12
bytes a logit more where the logits live on, 8 where the loop lets go of them.
Source: pytorch 2.15.0 `_functorch/partitioners.py` (`min_cut_rematerialization_partition`: what may
be fused is computed again rather than kept), `_inductor/scheduler.py`. transformers' models compute
their loss inside, so a compiled model has it in its graph; pytorch/torchtitan@00a388d9
`torchtitan/components/loss.py` compiles it by itself ("loss" of `compile.components`).
In torchtitan the loss was outside of what is compiled from e8977b00 (December 2024) to d1f62be7
(February 2025), between PyTorch 2.6 and 2.7: FSDP2 of that PyTorch is taken as torchtitan's (no
other trainer had it that compiled, assumed), and its loss as eager.
Not modelled: fusion of anything else, norm outputs and products that are computed again rather
than kept where there are no checkpoints; `most` and `least` hold what a formula's margin does.
"""

from __future__ import annotations

from typing import Any

import torch

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.lean.liger import with_liger
from estimator.frontends.pytorch.versions import Version
from estimator.notes import AssumptionCode
from estimator.spec import JobPhase, JobSpec
from estimator.spec.vocabulary import Implementation, LossKind

PATH = "training.compile"
LOSS_COMPILED_SINCE: Version = (2, 7)


def with_compiled_parts(spec: JobSpec, model: Any, notebook: Notebook, version: Version) -> None:
    """Give *model* what a compiler makes of it, if the job of *spec* trains compiled."""
    training = spec.training
    if not training.compile.enabled or spec.phase is not JobPhase.TRAIN:
        return
    with_liger(model)
    if training.loss is not LossKind.DEFAULT or training.label_smoothing:
        return
    if is_loss_outside(spec, version):
        notebook.assume(
            AssumptionCode.DEFAULT,
            PATH,
            "the loss is not compiled",
            "FSDP2 before PyTorch 2.7 is taken as torchtitan's, whose loss was eager then",
        )
        return
    with_compiled_loss(model, notebook)


def is_loss_outside(spec: JobSpec, version: Version) -> bool:
    """Return whether the loss of *spec* is eager, beside what is compiled."""
    is_second = spec.parallelism.implementation is Implementation.FSDP2
    return is_second and version < LOSS_COMPILED_SINCE


def with_compiled_loss(model: Any, notebook: Notebook) -> bool:
    """Give a causal language model the loss of a compiled graph; return whether it is one."""
    if not type(model).__name__.endswith("ForCausalLM") or not hasattr(model, "loss_function"):
        return False

    def loss(logits: Any, labels: Any, *_: Any, **__: Any) -> torch.Tensor:
        shifted = torch.nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
        out: torch.Tensor = CompiledLoss.apply(logits, shifted)
        return out

    model.loss_function = loss
    notebook.assume(
        AssumptionCode.DEFAULT,
        PATH,
        "the loss is compiled too",
        "computed outside of what is compiled, its logits take 12 bytes each more",
    )
    return True


class CompiledLoss(torch.autograd.Function):
    """Log-softmax and negative log-likelihood in one pass each way."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Keep the logits, and the largest and the normaliser of each token."""
        largest = torch.empty(labels.shape, dtype=torch.float32, device=logits.device)
        ctx.save_for_backward(logits, labels, largest, torch.empty_like(largest))
        return torch.empty((), dtype=torch.float32, device=logits.device)

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor) -> Any:
        """Write the gradient of the logits."""
        return torch.empty_like(ctx.saved_tensors[0]), None
