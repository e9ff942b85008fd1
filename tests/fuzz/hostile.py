"""Values that break readers: of another type, too large, or made to look like something else."""

from __future__ import annotations

from typing import Any

TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1e999",
    "NaN",
    "Infinity",
    "0x10",
    "1_000",
    "٣",
    "9" * 400,
    "9" * 5000,
    "true",
    "null",
    "~",
    "a" * 300,
    "é" * 3000,
    "line\nanother line",
    'x\r\nlevel=error event="denied"',
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x00nul",
    "\x7f\x08\x08",
    "a\u202egnp.exe",
    "\u2066isolated\u2069",
    "zero\u200bwidth\u2060\ufeff",
    "line\u2028paragraph\u2029",
    "\U000e0041tag",
    "\ue000private",
    "a\u0301\u0301\u0301" * 40,
    "../../../etc/passwd",
    "a/b/c",
    "a~1b~0c",
    "${A}${B}",
    "$(A)",
    "{{.Values.x}}",
    "<gpus>",
    "%s%n%x",
    "');--",
    "*",
    "[a-",
    "nvidia.com/gpu",
    "configmap/other/key",
    "hf://org/model@main",
    "https://169.254.169.254/latest",
    "!!python/object/apply:os.system [id]",
    "{",
    "[" * 150,
    '{"a":' * 150,
    "&a [*a]",
    "2026-13-45T99:99:99Z",
    "9999999999999999999Gi",
    "1e99Ei",
    "0.1m",
    "+5",
    "5Zi",
)

NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    255,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 53) + 1,
    (1 << 63) - 1,
    -(1 << 63),
    (1 << 64) - 1,
    0.5,
    -0.0,
    1e-300,
    1e308,
    -1e308,
)
"""Those that JSON may bring: integers of 64 bits, and other numbers as they are read."""


def _nested(depth: int) -> Any:
    value: Any = []
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


SHAPES: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": None},
    {"name": None},
    [1, "a", None, {}],
    {"a\nb": "c\x1b[1m"},
    _nested(60),
    ["x"] * 300,
    {str(number): number for number in range(300)},
)

VALUES: tuple[Any, ...] = (*SHAPES, *NUMBERS, *TEXTS)
