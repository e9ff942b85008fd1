"""XLA:GPU compiles for a card that is not there, and its account is read as it counts itself."""

from __future__ import annotations

import pytest

from tests.estimator.compilers import jax_children as children
from tests.estimator.frontends.jax_server import InChild

pytestmark = pytest.mark.jax

WEIGHTS = 4 * 1024 * 1024 * 4
BATCH = 256 * 1024 * 4


def test_loading_the_compiler_starts_no_thread(in_jax_child: InChild) -> None:
    """A template forks after it."""
    assert in_jax_child(children.threads) == 1


def test_the_account_is_xlas_own(in_jax_child: InChild) -> None:
    """A compile that runs to its end has the same statistics, to the byte."""
    ours, stats = in_jax_child(children.own_figures)

    assert ours.argument_bytes == stats["argument"] == WEIGHTS + BATCH
    assert ours.alias_bytes == stats["alias"] == WEIGHTS
    assert ours.outputs + ours.alias_bytes == stats["output"]
    assert ours.temporary == stats["temp"]


def test_a_state_that_is_not_donated_is_there_twice(in_jax_child: InChild) -> None:
    """Its new values are results of their own."""
    memory = in_jax_child(_undonated)

    assert memory.alias_bytes == 0
    assert memory.outputs >= WEIGHTS


def test_a_protocol_buffer_of_hlo_gives_the_same(in_jax_child: InChild) -> None:
    """TensorFlow hands its steps over in that form."""
    stablehlo, hlo = in_jax_child(children.as_hlo)

    assert (hlo.arguments, hlo.aliased, hlo.outputs, hlo.temporary) == (
        stablehlo.arguments,
        stablehlo.aliased,
        stablehlo.outputs,
        stablehlo.temporary,
    )


def test_a_jailed_process_compiles(in_jax_child: InChild) -> None:
    """No socket, no file, no other program: a worker has none of them."""
    assert in_jax_child(children.in_a_jail) == in_jax_child(children.perceptron).total


def test_the_largest_buffers_are_named(in_jax_child: InChild) -> None:
    """With the operators of the program they stem from."""
    memory = in_jax_child(children.perceptron)

    sizes = [buffer.nbytes for buffer in memory.largest]
    assert sizes == sorted(sizes, reverse=True)
    assert any(buffer.operator.startswith("jit(step)/") for buffer in memory.largest)


def test_a_module_that_is_none_is_refused(in_jax_child: InChild) -> None:
    """What MLIR does not parse is the file's fault, not ours."""
    kind, words = in_jax_child(children.problem, b"module { func.func @main( }")

    assert kind == "unsupported"
    assert "does not compile" in words
    assert "\n" not in words


def test_a_module_that_is_too_large_is_not_even_sent(in_jax_child: InChild) -> None:
    """200 MB are refused with their size, before a compile that has no time at all is late."""
    kind, words = in_jax_child(children.problem, bytes(200_000_000), 1e-6)

    assert kind == "unsupported"
    assert "190 MiB" in words


def test_a_late_compile_is_ended_and_the_next_one_works(in_jax_child: InChild) -> None:
    """One fork is lost, not the compiler."""
    kind, total = in_jax_child(children.after_a_late_one)

    assert kind == "timeout"
    assert total == in_jax_child(children.perceptron).total


def _undonated() -> object:
    return children.perceptron(donate=False)
