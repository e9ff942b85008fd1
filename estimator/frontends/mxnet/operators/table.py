"""Every operator the planner has rules for, by any of its names.

    name in a symbol -> Operator; unknown -> UnsupportedJobError

Source of the names: `add_alias` in apache/mxnet@1.9.1 `src/operator`.
"""

from __future__ import annotations

from estimator.errors import UnsupportedJobError
from estimator.frontends.mxnet.errors import unsupported
from estimator.frontends.mxnet.operators import (
    elementwise,
    losses,
    neural,
    normalisation,
    numpy_like,
    products,
    reductions,
    sequences,
    shaping,
)
from estimator.frontends.mxnet.operators.base import Operator
from estimator.notes import UnknownCode

OPERATORS: dict[str, Operator] = {
    **elementwise.OPERATORS,
    **neural.OPERATORS,
    **normalisation.OPERATORS,
    **reductions.OPERATORS,
    **shaping.OPERATORS,
    **products.OPERATORS,
    **sequences.OPERATORS,
    **losses.OPERATORS,
    **numpy_like.OPERATORS,
    "Pooling_plain": neural.POOLING_PLAIN,
    "Concat_plain": shaping.CONCAT_PLAIN,
}

PLAIN = {"Pooling": "Pooling_plain", "Concat": "Concat_plain"}
"""Operators of builds without oneDNN, where they keep less."""

ALIASES = {
    "_plus": "elemwise_add",
    "_Plus": "elemwise_add",
    "_add": "elemwise_add",
    "_minus": "elemwise_sub",
    "_Minus": "elemwise_sub",
    "_sub": "elemwise_sub",
    "_mul": "elemwise_mul",
    "_Mul": "elemwise_mul",
    "_div": "elemwise_div",
    "_Div": "elemwise_div",
    "_Maximum": "_maximum",
    "_Minimum": "_minimum",
    "_Power": "_power",
    "_Mod": "_mod",
    "_Equal": "_equal",
    "_Not_Equal": "_not_equal",
    "_Greater": "_greater",
    "_Greater_Equal": "_greater_equal",
    "_Lesser": "_lesser",
    "_Lesser_Equal": "_lesser_equal",
    "_PlusScalar": "_plus_scalar",
    "_MinusScalar": "_minus_scalar",
    "_RMinusScalar": "_rminus_scalar",
    "_MulScalar": "_mul_scalar",
    "_DivScalar": "_div_scalar",
    "_RDivScalar": "_rdiv_scalar",
    "_PowerScalar": "_power_scalar",
    "_RPowerScalar": "_rpower_scalar",
    "_MaximumScalar": "_maximum_scalar",
    "_MinimumScalar": "_minimum_scalar",
    "_npi_maximum_scalar": "_maximum_scalar",
    "_npi_minimum_scalar": "_minimum_scalar",
    "_npi_maximum": "broadcast_maximum",
    "_npi_minimum": "broadcast_minimum",
    "identity": "_copy",
    "stop_gradient": "BlockGrad",
    "cast": "Cast",
    "_npi_cast": "Cast",
    "_npx_cast": "Cast",
    "flatten": "Flatten",
    "_npx_batch_flatten": "Flatten",
    "reshape": "Reshape",
    "_npi_reshape": "_npx_reshape",
    "_npx_reshape_like": "reshape_like",
    "_npi_expand_dims": "expand_dims",
    "swapaxes": "SwapAxis",
    "_npi_swapaxes": "SwapAxis",
    "concat": "Concat",
    "split": "SliceChannel",
    "_npi_split": "_split_v2",
    "_npi_rnn_param_concat": "_rnn_param_concat",
    "crop": "slice",
    "_npi_slice": "slice",
    "_npx_slice": "slice",
    "pad": "Pad",
    "_npi_tile": "tile",
    "_np_repeat": "repeat",
    "flip": "reverse",
    "ElementWiseSum": "add_n",
    "elemwise_sum": "add_n",
    "sum_axis": "sum",
    "max_axis": "max",
    "min_axis": "min",
    "_np_amax": "_np_max",
    "_np_amin": "_np_min",
    "_np_product": "_np_prod",
    "broadcast_plus": "broadcast_add",
    "broadcast_minus": "broadcast_sub",
    "broadcast_axes": "broadcast_axis",
    "choose_element_0index": "pick",
    "_npx_pick": "pick",
    "_npx_topk": "topk",
    "_npi_sort": "sort",
    "_npi_argsort": "argsort",
    "_npx_softmax": "softmax",
    "_npx_log_softmax": "log_softmax",
    "_npx_activation": "Activation",
    "_npx_leaky_relu": "LeakyReLU",
    "_npx_batch_norm": "BatchNorm",
    "_npx_layer_norm": "LayerNorm",
    "_npx_fully_connected": "FullyConnected",
    "_npx_convolution": "Convolution",
    "_npx_deconvolution": "Deconvolution",
    "_npx_pooling": "Pooling",
    "_npx_dropout": "Dropout",
    "_npx_embedding": "Embedding",
    "_npx_rnn": "RNN",
    "_npx_one_hot": "one_hot",
    "_npx_gather_nd": "gather_nd",
    "_npi_gather_nd": "gather_nd",
    "_npi_take": "take",
    "_npx_batch_dot": "batch_dot",
    "_npx_sequence_mask": "SequenceMask",
    "_npx_arange_like": "_contrib_arange_like",
    "_npx_shape_array": "shape_array",
    "_npx_smooth_l1": "smooth_l1",
    "_npx_erf": "erf",
    "_npx_erfinv": "erfinv",
    "_npx_gamma": "gamma",
    "_npx_gammaln": "gammaln",
    "_npi_abs": "_npi_absolute",
    "_npi_clip": "clip",
    "_npi_full": "_full",
    "Softmax": "SoftmaxOutput",
    "ctc_loss": "CTCLoss",
    "_contrib_CTCLoss": "CTCLoss",
    "_contrib_ctc_loss": "CTCLoss",
    "uniform": "_random_uniform",
    "random_uniform": "_random_uniform",
    "normal": "_random_normal",
    "random_normal": "_random_normal",
    "BatchNorm_v1": "BatchNorm",
    "CuDNNBatchNorm": "BatchNorm",
    "Convolution_v1": "Convolution",
    "Pooling_v1": "Pooling",
}
"""Another name of an operator -> the one it is kept under.

The four last were operators of their own, which MXNet 1.9.1 still reads; they are planned as
those that replaced them. Not modelled: that the old pooling rounds up only with its own attribute.
"""


def canonical(name: str) -> str:
    """Return the name an operator is kept under."""
    return ALIASES.get(name, name)


def operator_named(name: str, node: str = "") -> Operator:
    """Return the rules for an operator.

    Raises:
        UnsupportedJobError: naming it, if there are none.
    """
    operator = OPERATORS.get(name)
    if operator is None:
        raise unknown_operator(name, node)
    return operator


def unknown_operator(name: str, node: str = "") -> UnsupportedJobError:
    """Return the refusal of an operator without rules."""
    place = f" (node '{node[:128]}')" if node else ""
    return unsupported(f"operator '{name[:128]}'{place} is not modelled", code=UnknownCode.OPERATOR)
