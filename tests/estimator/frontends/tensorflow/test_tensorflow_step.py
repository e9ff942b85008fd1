"""How a step is traced: what is left out for speed changes nothing of the graph."""

from __future__ import annotations

import pytest

from tests.estimator.frontends.jax_server import InChild
from tests.estimator.frontends.tensorflow import step_children
from tests.estimator.frontends.tensorflow.jobs import convolutions, job, mixed, recurrent
from tests.sweeping import spread

pytestmark = pytest.mark.tensorflow


def test_weights_of_one_shape_are_variables_of_their_own(in_tensorflow_child: InChild) -> None:
    """Their handles share a name, and a kernel, and nothing else."""
    assert in_tensorflow_child(step_children.values_of_two_weights) == (1.0, 2.0)


def test_operations_of_a_step_remember_no_lines(in_tensorflow_child: InChild) -> None:
    """Those made afterwards do again."""
    assert in_tensorflow_child(step_children.tracebacks) == (False, True)


@pytest.mark.parametrize(
    "model",
    spread(
        ["MobileNet", "convolutions", "mixed", "recurrent"],
        of=["convolutions", "mixed", "recurrent"],
    ),
)
def test_the_pass_over_shapes_changes_no_node(in_tensorflow_child: InChild, model: str) -> None:
    """Grappler's pass in MLIR sorts nodes and states shapes: both are done here."""
    documents = {"convolutions": convolutions(), "mixed": mixed(), "recurrent": recurrent()}
    document = job(documents.get(model, model), 8)

    without, with_pass = in_tensorflow_child(step_children.folded_both, document)

    assert without == with_pass
    assert len(without) > 100
