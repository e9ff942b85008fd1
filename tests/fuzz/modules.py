"""Steps in files that nobody exported: StableHLO as text and bytecode, and `jax.export` files.

    name -> bytes; valid bytes, seed -> the same with a few changed

Each is meant for XLA's own parser and compiler, so only ever given to a worker.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

MAIN = (
    "func.func public @main(%arg0: {kind}) -> {kind} {{\n{body}\n  return {result} : {kind}\n}}\n"
)
F32 = "tensor<8x8xf32>"


def _main(body: str, result: str = "%0", kind: str = F32) -> bytes:
    return f"module @m {{\n{MAIN.format(kind=kind, body=body, result=result)}}}\n".encode()


def texts() -> Iterator[tuple[str, bytes]]:
    """Yield modules in text, each hostile in its own way."""
    add = "  %{n} = stablehlo.add %{a}, %{a} : " + F32
    yield "small", _main(add.format(n=0, a="arg0"))
    lines = [add.format(n=0, a="arg0")]
    lines += [add.format(n=n, a=str(n - 1)) for n in range(1, 60_000)]
    yield "60,000 operators in a row", _main("\n".join(lines), "%59999")
    yield "brackets without end", b"module {" + b"(" * 200_000
    nested = "tuple<" * 50_000 + F32 + ">" * 50_000
    yield "a type nested 50,000 deep", _main("  %0 = stablehlo.tuple %arg0 : " + nested)
    deep = "".join('"a.b"() ({\n' for _ in range(30_000)) + "}) : () -> ()\n" * 30_000
    yield "regions nested 30,000 deep", f"module {{\n{deep}}}".encode()
    attribute = "[" * 100_000 + "]" * 100_000
    yield "an attribute nested deep", f"module attributes {{a.b = {attribute}}} {{}}".encode()
    large = "tensor<1000000x1000000xf32>"
    yield "a tensor of 4 TB", _main(f"  %0 = stablehlo.add %arg0, %arg0 : {large}", kind=large)
    sizes = "tensor<" + "9223372036854775807x" * 4 + "f32>"
    yield "sizes beyond 64 bits", _main(f"  %0 = stablehlo.add %arg0, %arg0 : {sizes}", kind=sizes)
    many = "tensor<" + "2x" * 5_000 + "f32>"
    yield "5,000 dimensions", _main(f"  %0 = stablehlo.add %arg0, %arg0 : {many}", kind=many)
    folded = "tensor<30000000xi32>"
    yield (
        "a constant to be sorted",
        _main(
            f"  %c = stablehlo.iota dim = 0 : {folded}\n"
            f"  %r = stablehlo.multiply %c, %c : {folded}\n"
            f"  %s = stablehlo.reverse %r, dims = [0] : {folded}\n"
            f"  %0 = stablehlo.add %s, %arg0 : {folded}",
            kind=folded,
        ),
    )
    splat = "tensor<100000x100000xf32>"
    yield (
        "a constant of 40 GB",
        _main(
            f"  %c = stablehlo.constant dense<1.5> : {splat}\n"
            f"  %t = stablehlo.transpose %c, dims = [1, 0] : ({splat}) -> {splat}\n"
            f"  %0 = stablehlo.add %t, %arg0 : {splat}",
            kind=splat,
        ),
    )
    yield "a function that calls itself", _main(f"  %0 = func.call @main(%arg0) : ({F32}) -> {F32}")
    levels = [f"func.func private @f0(%a: {F32}) -> {F32} {{ return %a : {F32} }}"]
    for n in range(1, 40):
        call = f"func.call @f{n - 1}"
        levels.append(
            f"func.func private @f{n}(%a: {F32}) -> {F32} {{\n"
            f"%b = {call}(%a) : ({F32}) -> {F32}\n%c = {call}(%b) : ({F32}) -> {F32}\n"
            f"return %c : {F32} }}"
        )
    body = f"  %0 = func.call @f39(%arg0) : ({F32}) -> {F32}"
    main = MAIN.format(kind=F32, body=body, result="%0")
    yield "2^39 calls", ("module @m {\n" + "\n".join(levels) + main + "}").encode()
    for target in ("xla_python_cpu_callback", "/lib/x86_64-linux-gnu/libc.so.6", "no\\00ne"):
        yield (
            f"a call of {target}",
            _main(
                f'  %0 = stablehlo.custom_call @"{target}"(%arg0) '
                f'{{backend_config = "/etc/passwd", has_side_effect = true}} : ({F32}) -> {F32}'
            ),
        )
    partitions = "mhlo.num_partitions = 1000000 : i32, mhlo.num_replicas = 1000000 : i32"
    yield (
        "a million partitions",
        (
            f"module @m attributes {{{partitions}}} {{\n"
            + MAIN.format(kind=F32, body=add.format(n=0, a="arg0"), result="%0")
            + "}\n"
        ).encode(),
    )
    blob = '{-# dialect_resources: { builtin: { a: "0x08000000FFFF" } } #-}'
    yield (
        "a resource that is cut off",
        (_main(f"  %0 = stablehlo.constant dense_resource<a> : {F32}").decode() + blob).encode(),
    )
    yield "a splat of a string", _main(f'  %0 = stablehlo.constant dense<"0x00"> : {F32}')
    yield "no text at all", bytes(range(256)) * 100
    yield "zeros", bytes(100_000)
    yield "endless comment", b"// " + b"a" * 3_000_000
    loop = (
        "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %n = stablehlo.constant dense<2147483647> : tensor<i32>\n"
        "  %i = stablehlo.constant dense<1> : tensor<i32>\n"
        "  %w = stablehlo.while(%k = %c) : tensor<i32>\n"
        "    cond { %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "      stablehlo.return %p : tensor<i1> }\n"
        "    do { %q = stablehlo.add %k, %i : tensor<i32>\n"
        "      stablehlo.return %q : tensor<i32> }\n"
        f"  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : ({F32}) -> {F32}"
    )
    yield "a loop of constants", _main(loop)


def mutated_bytes(content: bytes, seed: int) -> bytes:
    """Return *content* with a few of its bytes, lengths or parts changed."""
    chosen = random.Random(seed)
    whole = bytearray(content)
    for _ in range(chosen.randint(1, 6)):
        at = chosen.randrange(len(whole))
        match chosen.randrange(6):
            case 0 | 1:
                whole[at] = chosen.randrange(256)
            case 2:
                whole[at : at + 4] = struct.pack("<I", chosen.choice((0, 1 << 31, 0xFFFFFFFF, 9)))
            case 3:
                del whole[at : at + chosen.randrange(1, 16)]
            case 4:
                start = chosen.randrange(len(whole))
                whole[at:at] = whole[start : start + chosen.randrange(1, 64)]
            case _:
                start = chosen.randrange(len(whole))
                part = whole[start : start + chosen.choice((4, 8, 16))]
                whole[at : at + len(part)] = part
    return bytes(whole)
