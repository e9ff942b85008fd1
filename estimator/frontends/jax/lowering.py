"""From a step to the module that XLA compiles.

    Step, Mesh -> StableHLO, which arguments it kept

The module is for cards; nothing of it runs. Cards are abstract: their number and how they are
arranged is all that is said of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
from jax.sharding import NamedSharding

from estimator.compilers.xla import bytecode_of
from estimator.frontends.jax.mesh import Layout
from estimator.frontends.jax.step import Argument, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A module, and what of it belongs to which argument."""

    module: bytes
    """Bytecode of StableHLO."""
    arguments: tuple[Argument, ...] = ()
    """All of the step's, in order; none if only the module is known."""
    nbytes: tuple[int, ...] = ()
    """Of each argument on one card."""
    kept: tuple[int, ...] = ()
    """Which of them the module has: what a step does not read is not passed to it."""
    parameters: int = 0
    """Elements of all weights, if they are known."""
    recurrent: str = ""
    """Names of layers that a card runs otherwise (`Step.recurrent`)."""
    hlo: Callable[[], str] | None = None
    """The module as text of HLO, before it is cut for several cards; None if only that is had."""


def lowered(step: Step, layout: Layout) -> Lowered:
    """Return *step* as a module for the cards of *layout*."""
    tree = (step.state, step.batch)
    arguments, structure = jax.tree.flatten(tree, is_leaf=lambda each: isinstance(each, Argument))
    shardings = [layout.sharding(each) for each in arguments]
    structs = [each.struct(sharding) for each, sharding in zip(arguments, shardings, strict=True)]
    state, batch = structure.unflatten(structs)
    donated = (0,) if step.is_donated else ()
    compiled_later = jax.jit(
        step.function, donate_argnums=donated, out_shardings=layout.results(step, shardings)
    )
    lowering = compiled_later.trace(state, batch).lower(lowering_platforms=("cuda",))
    module = lowering.compiler_ir("stablehlo")
    kept = sorted(lowering._lowering.compile_args["kept_var_idx"])
    return Lowered(
        module=bytecode_of(module),
        arguments=tuple(arguments),
        nbytes=tuple(
            _nbytes(each, sharding) for each, sharding in zip(arguments, shardings, strict=True)
        ),
        kept=tuple(kept),
        parameters=step.parameters,
        recurrent=step.recurrent,
        hlo=lambda: str(lowering.compiler_ir("hlo").as_hlo_text()),
    )


def _nbytes(argument: Argument, sharding: NamedSharding) -> int:
    """Return the bytes of one card's shard of *argument*."""
    shape = sharding.shard_shape(argument.shape)
    itemsize = int(jax.dtypes.canonicalize_dtype(argument.dtype).itemsize)
    return math.prod(int(size) for size in shape) * itemsize
