"""What operators do to buffers: aliases, forwarding, host memory.

    operator name -> rule

Forwarding is a permission: whether an input's buffer becomes the output is decided when the
operator runs, by its reference count. Nothing here says how large anything is.

Recalled: tensorflow/core/kernels/ (`forward_input_or_allocate_output` of each kernel, `HostMemory`
of its GPU registration). `test_tensorflow_real.py` runs some of them in TensorFlow 2.21 itself.
"""

from __future__ import annotations

ALIASES = frozenset(
    {
        "CheckNumerics",
        "CheckNumericsV2",
        "EnsureShape",
        "ExpandDims",
        "Identity",
        "PreventGradient",
        "Reshape",
        "Snapshot",
        "Squeeze",
        "StopGradient",
        "Bitcast",
    }
)
"""The output is the first input's buffer."""

UNARY = frozenset(
    {
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Digamma",
        "Elu", "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "Floor", "Inv", "Invert", "IsFinite",
        "IsInf", "IsNan", "LeakyRelu", "Lgamma", "Log", "Log1p", "LogSoftmax", "LogicalNot", "Neg",
        "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin",
        "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Square", "Tan", "Tanh",
    }
)  # fmt: skip
"""May write over the first input."""

BINARY = frozenset(
    {
        "Add", "AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "DivNoNan",
        "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "InvGrad", "LeftShift", "Less",
        "LessEqual", "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan",
        "NextAfter", "NotEqual", "Pow", "RealDiv", "ReciprocalGrad", "RightShift", "RsqrtGrad",
        "SigmoidGrad", "SqrtGrad", "SquaredDifference", "Sub", "TanhGrad", "TruncateDiv",
        "TruncateMod", "Xdivy", "Xlog1py", "Xlogy",
    }
)  # fmt: skip
"""May write over either input of the output's size."""

FORWARDED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(UNARY, (0,)),
    **dict.fromkeys(BINARY, (0, 1)),
    "BiasAdd": (0,),
    "BiasAddV1": (0,),
    "Cast": (0,),
    "ClipByValue": (0,),
    "EluGrad": (0, 1),
    "LeakyReluGrad": (0,),
    "Relu6Grad": (0,),
    "ReluGrad": (0,),
    "Select": (1, 2),
    "SelectV2": (1, 2),
    "SeluGrad": (0, 1),
    "SoftplusGrad": (0,),
    "SoftsignGrad": (0,),
    "TensorScatterAdd": (0,),
    "TensorScatterUpdate": (0,),
    "_FusedMulSubOp": (0, 1, 2),
}
"""Operator -> inputs its first output may be written over, in the order tried."""
ADD_N = "AddN"
"""May write over any of its inputs."""
CROSS_ENTROPY = frozenset({"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"})
"""Write the gradient over the logits, and take the loss as new."""

HOST = frozenset(
    {
        "Assert", "BroadcastArgs", "BroadcastGradientArgs", "ConcatOffset", "InvertPermutation",
        "NoOp", "ParallelInterleave", "Placeholder", "Rank", "Shape", "ShapeN", "Size",
        "StringFormat", "VarHandleOp", "VarIsInitializedOp", "VariableShape", "_Arg",
    }
)  # fmt: skip
"""No device memory for any output."""
MOST_HOST_BYTES = 256
"""Integers of 32 bits up to this are shapes, sizes and counters, which kernels keep on the host."""

UPDATES = frozenset({"AssignAddVariableOp", "AssignSubVariableOp"})
SCATTERS = frozenset(
    {
        "ResourceScatterAdd",
        "ResourceScatterMax",
        "ResourceScatterMin",
        "ResourceScatterMul",
        "ResourceScatterNdAdd",
        "ResourceScatterNdUpdate",
        "ResourceScatterSub",
        "ResourceScatterUpdate",
    }
)
LOOPS = frozenset({"While", "StatelessWhile"})
BRANCHES = frozenset({"If", "StatelessIf"})
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
LISTS = frozenset(
    {
        "EmptyTensorList",
        "TensorListConcatV2",
        "TensorListElementShape",
        "TensorListFromTensor",
        "TensorListGather",
        "TensorListGetItem",
        "TensorListLength",
        "TensorListPopBack",
        "TensorListPushBack",
        "TensorListReserve",
        "TensorListResize",
        "TensorListSetItem",
        "TensorListSplit",
        "TensorListStack",
    }
)

PLAIN = frozenset(
    {
        "All", "Any", "ArgMax", "ArgMin", "AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad",
        "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BatchToSpaceND", "BiasAddGrad",
        "BroadcastTo", "Concat", "ConcatV2", "Const", "Conv2D", "Conv2DBackpropFilter",
        "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2",
        "CropAndResize", "Cross", "CudnnRNNBackpropV3", "CudnnRNNV3", "CumProd", "Cumprod",
        "Cumsum", "DepthToSpace", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
        "DepthwiseConv2dNativeBackpropInput", "Diag", "DiagPart", "Einsum", "Fill",
        "FusedBatchNormGradV3", "FusedBatchNormV3", "Gather", "GatherNd", "GatherV2", "IdentityN",
        "L2Loss", "LRN", "LRNGrad", "LinSpace", "MatMul", "MatrixBandPart", "MatrixDiagPartV3",
        "MatrixDiagV3", "MatrixSetDiagV3", "Max", "MaxPool", "MaxPool3D", "MaxPool3DGrad",
        "MaxPoolGrad", "Mean", "Min", "MirrorPad", "MirrorPadGrad", "OneHot", "OnesLike", "Pack",
        "Pad", "PadV2", "Prod", "RandomShuffle", "RandomStandardNormal", "RandomUniform",
        "RandomUniformInt", "Range", "ReadVariableOp", "ResizeBilinear", "ResizeBilinearGrad",
        "ResizeNearestNeighbor", "ResizeNearestNeighborGrad", "ResourceGather", "ReverseSequence",
        "ReverseV2", "Roll", "ScatterNd", "Slice", "SpaceToBatchND", "SpaceToDepth", "Split",
        "SplitV", "StatefulStandardNormalV2", "StatefulUniform", "StatelessRandomGetAlg",
        "StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg",
        "StatelessRandomNormal", "StatelessRandomNormalV2", "StatelessRandomUniform",
        "StatelessRandomUniformFullIntV2", "StatelessRandomUniformIntV2",
        "StatelessRandomUniformV2", "StatelessTruncatedNormalV2", "StridedSlice",
        "StridedSliceGrad", "Sum", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub",
        "Tile", "Transpose", "TruncatedNormal", "Unpack", "UnsortedSegmentMax",
        "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "Where",
    }
)  # fmt: skip
"""Take their outputs anew. What convolutions and recurrent layers take beside is a rule apart."""

KNOWN = (
    PLAIN
    | HOST
    | ALIASES
    | CROSS_ENTROPY
    | UPDATES
    | SCATTERS
    | LOOPS
    | BRANCHES
    | CALLS
    | LISTS
    | frozenset(FORWARDED)
    | frozenset({ADD_N, "AssignVariableOp", "ZerosLike"})
)
"""Operators whose use of memory is known; scratch of a few hundred bytes is left out."""
