"""Write symbols for the operators with rules. Runs in the oracle's environment.

-> a JSON list of {name, symbol, shapes, types} on standard output
"""

import json
from typing import Any

import mxnet as mx
from mxnet import gluon, sym
from mxnet.gluon import nn, rnn

BATCH = "batch"
"""Stands for the batch in shapes, so that a case can be asked at any."""
CASES: list[dict[str, Any]] = []
x = sym.Variable("x")
y = sym.Variable("y")


def case(
    name: str, symbol: Any, shapes: dict[str, list[Any]], types: dict[str, str] | None = None
) -> None:
    """Note one symbol."""
    CASES.append({"name": name, "symbol": symbol.tojson(), "shapes": shapes, "types": types or {}})


def ended(symbol: Any) -> Any:
    """Return a loss over *symbol* that reads its values."""
    return sym.MakeLoss(sym.sum(sym.square(symbol)))


UNARY = [
    "relu",
    "sigmoid",
    "tanh",
    "softsign",
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "cbrt",
    "rcbrt",
    "square",
    "abs",
    "sign",
    "round",
    "rint",
    "ceil",
    "floor",
    "trunc",
    "fix",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "degrees",
    "radians",
    "reciprocal",
    "erf",
    "erfinv",
    "gamma",
    "gammaln",
    "negative",
    "hard_sigmoid",
    "identity",
    "BlockGrad",
    "softmax",
    "log_softmax",
    "softmin",
    "smooth_l1",
    "zeros_like",
    "ones_like",
    "SoftmaxActivation",
]
SCALARS = [
    "_plus_scalar",
    "_minus_scalar",
    "_rminus_scalar",
    "_mul_scalar",
    "_div_scalar",
    "_rdiv_scalar",
    "_power_scalar",
    "_rpower_scalar",
    "_maximum_scalar",
    "_minimum_scalar",
    "_mod_scalar",
    "_rmod_scalar",
    "_equal_scalar",
    "_greater_scalar",
    "_lesser_equal_scalar",
]
BINARY = "elemwise_add elemwise_sub elemwise_mul elemwise_div _maximum _minimum _power _hypot"
BROADCAST = (
    "broadcast_add broadcast_sub broadcast_mul broadcast_div broadcast_mod broadcast_power "
    "broadcast_maximum broadcast_minimum broadcast_hypot broadcast_equal broadcast_greater"
)


def elementwise() -> None:
    """Note operators that work element by element."""
    small = {"x": [BATCH, 8]}
    weight = sym.Variable("w", shape=(1, 8))
    data = sym.broadcast_mul(x, weight)
    for name in UNARY:
        case(name, ended(getattr(sym, name)(data)), small)
    for name in SCALARS:
        case(name, ended(getattr(sym._internal, name)(data, scalar=2.0)), small)
    other = sym.tanh(sym.broadcast_add(x, sym.Variable("v", shape=(1, 8))))
    for name in BINARY.split():
        found = getattr(sym, name, None) or getattr(sym._internal, name)
        case(name, ended(found(data, other)), small)
    narrow = sym.tanh(sym.Variable("n", shape=(1, 8)))
    for name in BROADCAST.split():
        case(name, ended(getattr(sym, name)(data, narrow)), small)
        case(name + "_both", ended(getattr(sym, name)(narrow, data)), small)
    case("cast", ended(sym.cast(sym.cast(data, "float16"), "float32")), small)
    case("add_n", ended(sym.add_n(data, other, data * 2)), small)
    case("shared", ended(data + data * data + sym.tanh(data)), small)
    uses = [sym.cos(data * float(index + 1)) for index in range(12)]
    case("twelve uses", ended(sym.add_n(*uses)), small)
    case("common", ended(sym.tanh(data) * sym.exp(sym.tanh(data))), small)
    case("clip", ended(sym.clip(data, -1, 1)), small)
    for kind in ("leaky", "elu", "selu", "gelu", "prelu"):
        case("LeakyReLU " + kind, ended(sym.LeakyReLU(data, act_type=kind)), small)
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        case("Activation " + kind, ended(sym.Activation(data, act_type=kind)), small)
    case("where", ended(sym.where(x, data, other)), small)
    case("group", sym.Group([ended(data), sym.BlockGrad(other)]), small)
    case("no loss", sym.tanh(data), small)


def reductions() -> None:
    """Note reductions, broadcasts and choices."""
    cube = {"x": [BATCH, 6, 8]}
    data = sym.broadcast_mul(x, sym.Variable("w", shape=(1, 1, 8)))
    for name in ("sum", "mean", "prod", "max", "min", "nansum", "norm"):
        found = getattr(sym, name)
        case(name + " all", ended(found(data)), cube)
        case(name + " axis", ended(found(data, axis=1)), cube)
        case(name + " keep", ended(found(data, axis=(2,), keepdims=True)), cube)
    case("sum exclude", ended(sym.sum(data, axis=0, exclude=True)), cube)
    case("argmax", ended(sym.broadcast_mul(data, sym.sum(sym.argmax(data, axis=2)))), cube)
    case(
        "broadcast_to",
        ended(sym.broadcast_to(sym.sum(data, axis=1, keepdims=True), (0, 6, 8))),
        cube,
    )
    case(
        "broadcast_like",
        ended(sym.broadcast_like(sym.sum(data, axis=1, keepdims=True), data)),
        cube,
    )
    case(
        "broadcast_axis",
        ended(sym.broadcast_axis(sym.sum(data, axis=1, keepdims=True), axis=1, size=6)),
        cube,
    )
    case("pick", ended(sym.pick(data, y, axis=-1)), {"x": [BATCH, 6, 8], "y": [BATCH, 6]})
    case("topk", ended(sym.topk(data, k=3, ret_typ="value")), cube)
    case("sort", ended(sym.sort(data, axis=1)), cube)
    case("softmax axis", ended(sym.softmax(data, axis=1)), cube)
    case("softmax dtype", ended(sym.softmax(data, dtype="float32")), cube)
    case(
        "softmax length",
        ended(sym.softmax(data, y, axis=1, use_length=True)),
        {"x": [BATCH, 6, 8], "y": [BATCH, 8]},
        {"y": "int32"},
    )
    case("moments", ended(sym.add_n(*sym.moments(data, axes=(1,)))), cube)


def shaping() -> None:
    """Note operators that move or cut."""
    cube = {"x": [BATCH, 6, 8]}
    data = sym.broadcast_mul(x, sym.Variable("w", shape=(1, 1, 8)))
    case("reshape", ended(sym.reshape(data, (0, -1))), cube)
    case("reshape join", ended(sym.reshape(data, (-3, 0))), cube)
    case("reshape split", ended(sym.reshape(data, (0, -4, 2, -1, 0))), cube)
    case("reshape rest", ended(sym.reshape(data, (0, -2))), cube)
    case("reshape reverse", ended(sym.reshape(data, (-1, 0), reverse=True)), cube)
    case("reshape_like", ended(sym.reshape_like(data, sym.BlockGrad(data))), cube)
    case("flatten", ended(sym.flatten(data)), cube)
    case("expand_dims", ended(sym.expand_dims(data, 1)), cube)
    case("squeeze", ended(sym.squeeze(sym.expand_dims(data, 1))), cube)
    case("transpose", ended(sym.transpose(data)), cube)
    case("transpose axes", ended(sym.transpose(data, (1, 0, 2))), cube)
    case("swapaxes", ended(sym.swapaxes(data, 0, 2)), cube)
    case("concat", ended(sym.concat(data, sym.tanh(data), dim=2)), cube)
    case("stack", ended(sym.stack(data, sym.tanh(data), axis=1)), cube)
    case("split", ended(sym.add_n(*sym.split(data, 3, axis=1))), cube)
    case("split squeeze", ended(sym.add_n(*sym.split(data, 6, axis=1, squeeze_axis=True))), cube)
    case("split unused", ended(sym.split(data, 3, axis=1)[1]), cube)
    case("split_v2", ended(sym.split_v2(data, 2, axis=1)[0]), cube)
    case("slice", ended(sym.slice(data, (1, None, 0), (None, 4, 8), (None, 2, 1))), cube)
    case("slice_axis", ended(sym.slice_axis(data, axis=1, begin=1, end=-1)), cube)
    case("slice_like", ended(sym.slice_like(data, y)), {"x": [BATCH, 6, 8], "y": [BATCH, 3, 4]})
    case("tile", ended(sym.tile(data, (2, 1, 3))), cube)
    case("repeat", ended(sym.repeat(data, 2, axis=1)), cube)
    case("reverse", ended(sym.reverse(data, axis=1)), cube)
    case(
        "pad",
        ended(sym.pad(sym.expand_dims(data, 0), mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 2, 2))),
        cube,
    )
    case("depth_to_space", ended(sym.depth_to_space(sym.reshape(data, (0, 8, 2, 3)), 2)), cube)


def products() -> None:
    """Note products and attention."""
    case("dot", ended(sym.dot(x, sym.Variable("w", shape=(8, 5)))), {"x": [BATCH, 8]})
    case(
        "dot b",
        ended(sym.dot(x, sym.Variable("w", shape=(5, 8)), transpose_b=True)),
        {"x": [BATCH, 8]},
    )
    left = sym.broadcast_mul(x, sym.Variable("w", shape=(1, 1, 8)))
    right = sym.tanh(left)
    for a in (False, True):
        for b in (False, True):
            first = sym.transpose(left, (0, 2, 1)) if a else left
            second = right if b else sym.transpose(right, (0, 2, 1))
            case(
                f"batch_dot {a:d} {b:d}",
                ended(sym.batch_dot(first, second, transpose_a=a, transpose_b=b)),
                {"x": [BATCH, 6, 8]},
            )
    projected = sym.FullyConnected(x, num_hidden=96, flatten=False)
    scores = sym.contrib.interleaved_matmul_selfatt_qk(projected, heads=4)
    scores = sym.Dropout(sym.softmax(scores), p=0.1)
    values = sym.contrib.interleaved_matmul_selfatt_valatt(projected, scores, heads=4)
    case("self attention", ended(sym.LayerNorm(values + x)), {"x": [10, BATCH, 32]})
    queries = sym.contrib.div_sqrt_dim(sym.FullyConnected(x, num_hidden=32, flatten=False))
    keys = sym.FullyConnected(y, num_hidden=64, flatten=False)
    scores = sym.softmax(sym.contrib.interleaved_matmul_encdec_qk(queries, keys, heads=4))
    values = sym.contrib.interleaved_matmul_encdec_valatt(keys, scores, heads=4)
    case("cross attention", ended(values), {"x": [10, BATCH, 32], "y": [7, BATCH, 32]})


def layers() -> None:
    """Note layers and losses."""
    picture = {"x": [BATCH, 6, 14, 12]}
    conv = sym.Convolution(x, num_filter=8, kernel=(3, 3), pad=(1, 1), stride=(2, 1), name="c")
    case("convolution", ended(conv), picture)
    case(
        "grouped",
        ended(
            sym.Convolution(
                x, num_filter=6, num_group=3, kernel=(3, 3), dilate=(2, 2), no_bias=True
            )
        ),
        picture,
    )
    case("conv1d", ended(sym.Convolution(x, num_filter=6, kernel=(3,))), {"x": [BATCH, 6, 14]})
    case(
        "conv3d",
        ended(sym.Convolution(x, num_filter=6, kernel=(3, 3, 3))),
        {"x": [BATCH, 6, 7, 7, 7]},
    )
    case(
        "deconvolution",
        ended(sym.Deconvolution(conv, num_filter=4, kernel=(4, 4), stride=(2, 2), pad=(1, 1))),
        picture,
    )
    for kind in ("max", "avg", "sum"):
        case(
            "pool " + kind,
            ended(sym.Pooling(conv, kernel=(3, 3), stride=(2, 2), pool_type=kind)),
            picture,
        )
    case(
        "pool full",
        ended(sym.Pooling(conv, kernel=(3, 3), stride=(2, 2), pooling_convention="full")),
        picture,
    )
    case("pool global", ended(sym.Pooling(conv, global_pool=True, kernel=(3, 3))), picture)
    case("pool global avg", ended(sym.Pooling(conv, global_pool=True, pool_type="avg")), picture)
    case("batch norm", ended(sym.BatchNorm(conv, fix_gamma=False)), picture)
    case(
        "batch norm half",
        ended(sym.cast(sym.BatchNorm(conv, fix_gamma=False), "float32")),
        picture,
        {"x": "float16"},
    )
    case("layer norm", ended(sym.LayerNorm(conv)), picture)
    case("group norm", ended(sym.GroupNorm(conv, num_groups=2)), picture)
    case("instance norm", ended(sym.InstanceNorm(conv)), picture)
    case("l2", ended(sym.L2Normalization(conv)), picture)
    case("lrn", ended(sym.LRN(conv, nsize=5)), picture)
    case("dropout", ended(sym.Dropout(conv, p=0.5)), picture)
    case("dropout axes", ended(sym.Dropout(conv, p=0.5, axes=(2, 3))), picture)
    case("upsampling", ended(sym.UpSampling(conv, scale=2, sample_type="nearest")), picture)
    case("resize", ended(sym.contrib.BilinearResize2D(conv, height=20, width=30)), picture)
    case("adaptive", ended(sym.contrib.AdaptiveAvgPooling2D(conv, output_size=(2, 3))), picture)
    flat = sym.FullyConnected(conv, num_hidden=10)
    label = sym.Variable("label")
    case("softmax output", sym.SoftmaxOutput(flat, label), {**picture, "label": [BATCH]})
    case("linear", sym.LinearRegressionOutput(flat, label), {**picture, "label": [BATCH, 10]})
    case("logistic", sym.LogisticRegressionOutput(flat, label), {**picture, "label": [BATCH, 10]})
    case("mae", sym.MAERegressionOutput(flat, label), {**picture, "label": [BATCH, 10]})
    case("svm", sym.SVMOutput(flat, label), {**picture, "label": [BATCH]})
    case(
        "cross entropy",
        sym.MakeLoss(sym.softmax_cross_entropy(flat, label)),
        {**picture, "label": [BATCH]},
    )
    case("make_loss", sym.make_loss(sym.sum(flat)), picture)
    wide = sym.SoftmaxOutput(
        sym.Convolution(x, num_filter=5, kernel=(1, 1)), label, multi_output=True
    )
    case("segmentation", wide, {**picture, "label": [BATCH, 14, 12]})


def sequences() -> None:
    """Note recurrent layers, embeddings and masks."""
    tokens = {"x": [7, BATCH]}
    embedded = sym.Embedding(x, input_dim=50, output_dim=16, name="e")
    case("embedding", ended(embedded), tokens)
    case("take", ended(sym.take(sym.Variable("w", shape=(50, 16), dtype="float32"), x)), tokens)
    case(
        "gather_nd",
        ended(sym.gather_nd(sym.tanh(sym.Variable("w", shape=(5, 6, 7), dtype="float32")), y)),
        {"y": [2, BATCH]},
    )
    case(
        "one_hot",
        ended(sym.dot(sym.one_hot(x, 50), sym.Variable("w", shape=(50, 4)))),
        {"x": [BATCH]},
    )
    case(
        "sequence mask",
        ended(sym.SequenceMask(embedded, y, use_sequence_length=True)),
        {**tokens, "y": [BATCH]},
    )
    case(
        "sequence last",
        ended(sym.SequenceLast(embedded, y, use_sequence_length=True)),
        {**tokens, "y": [BATCH]},
    )
    case(
        "sequence reverse",
        ended(sym.SequenceReverse(embedded, y, use_sequence_length=True)),
        {**tokens, "y": [BATCH]},
    )
    for kind, layer in (("lstm", rnn.LSTM), ("gru", rnn.GRU), ("rnn", rnn.RNN)):
        for both in (False, True):
            block = layer(20, 2, dropout=0.2, bidirectional=both, input_size=16)
            case(f"{kind} {both:d}", ended(block(embedded)), tokens)
    for kind, cell in (("lstm", rnn.LSTMCell), ("gru", rnn.GRUCell), ("rnn", rnn.RNNCell)):
        out, _ = cell(20, input_size=16).unroll(7, embedded, layout="TNC", merge_outputs=True)
        case("unrolled " + kind, ended(out), tokens)
    fused = mx.rnn.FusedRNNCell(20, num_layers=2, mode="lstm", prefix="f_")
    out, _ = fused.unroll(7, embedded, layout="TNC", merge_outputs=True)
    case("module lstm", ended(out), tokens)
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(20, prefix="l0_"))
    stack.add(mx.rnn.GRUCell(20, prefix="l1_"))
    out, _ = stack.unroll(5, embedded, layout="TNC", merge_outputs=True)
    case("module cells", ended(out), {"x": [5, BATCH]})


def numpy_like() -> None:
    """Note the numpy-like operators."""
    mx.util.set_np()
    try:
        a = sym.var("x").as_np_ndarray()
        b = sym.var("w", shape=(1, 8)).as_np_ndarray()
        data = a * b
        other = sym.np.tanh(data)
        found = {
            "np add": data + other,
            "np subtract": data - other,
            "np multiply": data * other,
            "np divide": data / (other + 2),
            "np power": data**2 + sym.np.power(data, other),
            "np exp": sym.np.exp(data),
            "np log": sym.np.log(data),
            "np sqrt": sym.np.sqrt(data),
            "np mean": sym.np.mean(data, axis=1, keepdims=True),
            "np max": sym.np.max(data, axis=1),
            "np transpose": sym.np.transpose(data),
            "np reshape": sym.npx.reshape(data, (-2, 2, -1)),
            "np concatenate": sym.np.concatenate([data, other], axis=1),
            "np stack": sym.np.stack([data, other], axis=1),
            "np matmul": sym.np.matmul(sym.np.transpose(data), other),
            "np dot": sym.np.dot(data, sym.var("v", shape=(8, 5)).as_np_ndarray()),
            "np where": sym.np.where(data > 0, data, other),
            "np relu": sym.npx.relu(data),
            "np softmax": sym.npx.softmax(data),
            "np expand": sym.np.expand_dims(data, 1),
            "np maximum": sym.np.maximum(data, other),
        }
        for name, symbol in found.items():
            case(name, sym.np.sum(sym.np.square(symbol)), {"x": [BATCH, 8]})
        dense = nn.HybridSequential()
        dense.add(nn.Dense(20, activation="relu"), nn.BatchNorm(), nn.Dense(3))
        case("np dense", sym.np.sum(sym.np.square(dense(a))), {"x": [BATCH, 8]})
    finally:
        mx.util.reset_np()


def blocks() -> None:
    """Note Gluon blocks with their losses."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(8, 3),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(),
        nn.Flatten(),
        nn.Dense(10),
    )
    out = net(sym.var("x"))
    loss = gluon.loss.SoftmaxCrossEntropyLoss()(out, sym.var("y"))
    case("gluon loss", loss, {"x": [BATCH, 3, 16, 16], "y": [BATCH]})
    loss = gluon.loss.L2Loss()(out, sym.var("y"))
    case("gluon l2", loss, {"x": [BATCH, 3, 16, 16], "y": [BATCH, 10]})


for group in (elementwise, reductions, shaping, products, layers, sequences, numpy_like, blocks):
    group()
print(json.dumps(CASES))
