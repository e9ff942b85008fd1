"""What a card computes in 32 bits although it is written in 16.

operator -> whether its value in bf16 is one in f32 that is rounded
"""

from __future__ import annotations

NARROW = "bf16["
"""How the shape of such a value begins. Values in f16 are computed as they are written."""
WIDE = frozenset(
    {
        "add",
        "atan2",
        "cbrt",
        "ceil",
        "clamp",
        "cosine",
        "divide",
        "erf",
        "exponential-minus-one",
        "floor",
        "log-plus-one",
        "logistic",
        "multiply",
        "power",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "rsqrt",
        "sign",
        "sine",
        "sqrt",
        "subtract",
        "tan",
        "tanh",
    }
)
"""Operators that cards of 8.0 compute in 32 bits where they are written in bf16.

Source: openxla/xla@0edf2026 xla/service/gpu/gpu_float_support.cc. Cards of 9.0 add, subtract and
multiply in bf16.
"""
