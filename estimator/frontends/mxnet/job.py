"""What a spec trains: a graph with every shape known, its loss, and how it is run.

JobSpec -> Job
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from estimator.frontends.mxnet.errors import unsupported
from estimator.frontends.mxnet.graph import VARIABLE, Entry, Node
from estimator.frontends.mxnet.inference import infer
from estimator.frontends.mxnet.net import net_of
from estimator.frontends.mxnet.operators.losses import LOSSES
from estimator.frontends.mxnet.symbol import call
from estimator.frontends.mxnet.versions import Release
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec

LABEL = "softmax_label"
MATRIX = 2
WORDS = {"module": "whole", "default": "whole", "static": "static", "hybridize": "hybrid"}


class Execution(Enum):
    """How a graph is run."""

    WHOLE = "whole"
    """Module or `simple_bind`: one plan for forward and backward."""
    STATIC = "static"
    """`hybridize(static_alloc=True)`: a plan each, kept."""
    HYBRID = "hybrid"
    """`hybridize()`: a plan each, made anew every step."""
    IMPERATIVE = "imperative"
    """Operator by operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A graph ready to be bound."""

    heads: list[Entry]
    inputs: frozenset[str]
    """Names of what is fed: data and labels."""
    execution: Execution
    takes_loss: bool
    """Whether the loop computes a loss of what the graph computes."""


def job_of(spec: JobSpec, release: Release, notebook: Notebook) -> Job:
    """Return the job of *spec*.

    Raises:
        SpecError: if the model or its shapes are not valid.
        UnsupportedJobError: if an operator or a part of the job is not modelled.
    """
    net = net_of(spec, release)
    heads, inputs = list(net.heads), net.inputs
    execution = execution_of(spec, notebook)
    is_trained = spec.phase is JobPhase.TRAIN
    has_loss = all(head.node.operator in LOSSES for head in heads)
    takes_loss = is_trained and not has_loss and len(heads) == 1 and len(heads[0].shape) > 1
    if takes_loss and execution is Execution.WHOLE and len(heads[0].shape) == MATRIX:
        heads, takes_loss, inputs = [_with_loss(heads[0])], False, inputs | {LABEL}
    return Job(
        heads=heads,
        inputs=inputs,
        execution=execution,
        takes_loss=takes_loss and execution is not Execution.WHOLE,
    )


def execution_of(spec: JobSpec, notebook: Notebook) -> Execution:
    """Return how the job runs its graph: imperatively unless `training.compile` says otherwise.

    Raises:
        UnsupportedJobError: for a mode that is not MXNet's.
    """
    compile_ = spec.training.compile
    if not compile_.enabled:
        if "compile" not in spec.training.model_fields_set:
            notebook.assume(
                AssumptionCode.COMPILE,
                "training.compile",
                "false",
                "absent: Gluon, operator by operator; `hybridize()` and Module need less",
            )
        return Execution.IMPERATIVE
    word = WORDS.get(compile_.mode)
    if word is None:
        raise unsupported(
            f"'{compile_.mode}' is not a way MXNet runs a graph; known: {', '.join(WORDS)}",
            code=UnknownCode.FEATURE,
            path="training.compile.mode",
        )
    return Execution(word)


def _with_loss(head: Entry) -> Entry:
    """Return a softmax over a head of two dimensions, as `Module` examples add it.

    A symbol with several heads, or with more dimensions, keeps its own: its gradients then come
    from outside.
    """
    label = Node(VARIABLE, LABEL)
    softmax = call("SoftmaxOutput", "softmax", {}, [head, Entry(label, 0)])
    infer([label, softmax], {}, {})
    return Entry(softmax, 0)
