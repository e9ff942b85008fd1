"""Linear layers that multiply in float8, as torchao trains them.

    Built, Float8 -> Built; layer names -> what a sharded job gathers in one byte

Weights, their gradients and what autograd keeps stay in the job's own precision: input, weight and
gradient are cast for each product and the casts die with it. Each cast takes a byte an element;
without a compiler also the absolute values its scale is found from, then two copies in fp32. The
second operand of a product has to be column by column, so backward copies casts once more.
With `allGather` FSDP2 gathers weights that are float8 already, which no product casts again.

Recipes: `tensorwise` and `rowwise` cast everything; backward's two products share a cast of the
gradient if there is one scale. `rowwise_with_gw_hp` makes the weight's gradient in full precision.
Source: pytorch/ao@7ca1bfbe `torchao/float8/float8_linear.py` (`matmul_with_hp_or_float8_args`),
@074fdd4e `float8_training_tensor.py` (`_ToFloat8ConstrFunc`), @0a4b91d4 `fsdp_utils.py`
(`fsdp_pre_all_gather`), `float8_ops.py` (`preprocess_addmm`). Layers whose sides 16 does not divide
stay as they are, as does the last one: torchtitan's filter and the `filter_fqns` of its recipes.
Not modelled: scales (4 bytes each), delayed scaling, mx and nv formats, releases before December
2024 that kept float8 inputs for backward, cards before compute capability 8.9, where torchtitan
trains without float8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.dtypes import AUTOCAST
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec
from estimator.trace import GATHERED_FLOAT8

PATH = "training.float8"
TENSORWISE, ROWWISE, WIDE_GRADIENT = "tensorwise", "rowwise", "rowwise_with_gw_hp"
RECIPES = (TENSORWISE, ROWWISE, WIDE_GRADIENT)
DIVISOR = 16
VALUES, GRADIENTS = torch.float8_e4m3fn, torch.float8_e5m2


def with_float8(spec: JobSpec, built: Built, notebook: Notebook) -> Built:
    """Return *built* with its linear layers in float8, or as it is if it does not train so.

    Raises:
        UnsupportedJobError: for other recipes, and models without a layer to convert.
    """
    float8 = spec.training.float8
    if float8 is None or spec.phase is not JobPhase.TRAIN:
        return built
    if float8.recipe not in RECIPES:
        raise _unsupported(
            f"'{float8.recipe}' is not modelled; known: {', '.join(RECIPES)}", f"{PATH}.recipe"
        )
    if float8.all_gather and float8.recipe != TENSORWISE:
        raise _unsupported(
            f"torchao gathers float8 with '{TENSORWISE}' scales only", f"{PATH}.allGather"
        )
    layers = [
        (path, module) for path, module in built.model.named_modules() if type(module) is nn.Linear
    ]
    changed = [each for each in layers[:-1] if _divides(each[1])]
    if not changed:
        raise _unsupported("the model has no linear layer to multiply in float8", PATH)
    how = Casting(
        recipe=float8.recipe,
        is_gathered=float8.all_gather,
        is_fused=spec.training.compile.enabled,
        autocast=AUTOCAST.get(spec.training.precision),
    )
    for path, module in changed:
        parent, _, name = path.rpartition(".")
        setattr(built.model.get_submodule(parent), name, Float8Linear(module, how))
    notebook.assume(
        AssumptionCode.DEFAULT,
        PATH,
        f"{len(changed)} of {len(layers)} linear layers",
        "all but the last one and those whose sides 16 does not divide, as torchtitan's recipes do",
    )
    return built


def gathered_names(model: nn.Module) -> str:
    """Return the names of the layers whose weights are gathered in float8, comma between them."""
    paths = (
        path
        for path, module in model.named_modules()
        if isinstance(module, Float8Linear) and module.how.is_gathered
    )
    return ",".join(sorted({path.rpartition(".")[2] for path in paths}))


def facts_of(model: nn.Module) -> dict[str, str]:
    """Return what a trace of *model* has to tell those that shard it."""
    names = gathered_names(model)
    return {GATHERED_FLOAT8: names} if names else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Casting:
    """When and how a layer casts."""

    recipe: str
    is_gathered: bool
    """Whether the weight is float8 already when it is used."""
    is_fused: bool
    """Whether a compiler makes each cast in one pass."""
    autocast: torch.dtype | None
    """The lower dtype of the job's autocast region."""


class Float8Linear(nn.Linear):
    """torchao's `Float8Linear`, with the weight and the bias of a plain layer."""

    def __init__(self, layer: nn.Linear, how: Casting) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product, in the dtype of an autocast region if there is one."""
        if self.how.autocast is not None:
            x = x.to(self.how.autocast)
        out: torch.Tensor = Float8Product.apply(x, self.weight, self)
        return out if self.bias is None else out + self.bias.to(out.dtype)

    def cast(self, tensor: torch.Tensor, dtype: torch.dtype = VALUES) -> torch.Tensor:
        """Return *tensor* in float8, made the way this layer's casts are made."""
        if self.how.is_fused:
            return torch.empty_like(tensor, dtype=dtype)
        torch.max(torch.abs(tensor))
        limit = torch.finfo(dtype).max
        scaled = tensor.to(torch.float32) * 1.0
        return scaled.clamp(min=-limit, max=limit).to(dtype)

    def cast_weight(self) -> torch.Tensor:
        """Return the weight in float8."""
        return self.weight if self.how.is_gathered else self.cast(self.weight)


class Float8Product(torch.autograd.Function):
    """`matmul_with_hp_or_float8_args`: products as traced elsewhere, with the casts beside them."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, layer: Float8Linear
    ) -> torch.Tensor:
        """Cast input and weight, and multiply; both are kept as they were given."""
        ctx.save_for_backward(x, weight)
        ctx.layer = layer
        casts = (layer.cast(x), layer.cast_weight())
        out = _product(x.reshape(-1, x.shape[-1]), weight.t())
        del casts
        return out.reshape(*x.shape[:-1], weight.shape[0])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Cast the gradient and the weight, then the gradient again (by rows) and the input."""
        x, weight = ctx.saved_tensors
        layer = ctx.layer
        flat = gradient.reshape(-1, gradient.shape[-1])
        of_gradient = layer.cast(flat, GRADIENTS)
        of_weight = layer.cast_weight()
        by_columns = torch.empty(weight.shape, dtype=VALUES, device=weight.device)
        of_input = _product(flat, weight)
        del of_weight, by_columns
        rows = x.reshape(-1, x.shape[-1])
        if layer.how.recipe == WIDE_GRADIENT:
            return of_input.reshape(x.shape), _product(flat.t(), rows, weight.dtype), None
        if layer.how.recipe == ROWWISE:
            of_gradient = layer.cast(flat, GRADIENTS)
        of_rows = layer.cast(rows)
        copies = (torch.empty_like(of_gradient), torch.empty_like(of_rows))
        trained = _product(flat.t(), rows, weight.dtype)
        del copies, of_rows, of_gradient
        return of_input.reshape(x.shape), trained, None


def _product(
    left: torch.Tensor, right: torch.Tensor, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Return the product in the dtype of *left* unless one is given.

    Operands of the same dtype are multiplied, so that policies and library calls see a product.
    """
    made = left.dtype if dtype is None else dtype
    if left.dtype == right.dtype == made:
        return torch.mm(left, right)
    return torch.empty(left.shape[0], right.shape[1], dtype=made, device=left.device)


def _divides(layer: nn.Linear) -> bool:
    return layer.in_features % DIVISOR == 0 and layer.out_features % DIVISOR == 0


def _unsupported(reason: str, path: str) -> UnsupportedJobError:
    return UnsupportedJobError(f"{path}: {reason}", code=UnknownCode.PRECISION, path=path)
