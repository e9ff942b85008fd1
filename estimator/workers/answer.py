"""What the forks of a real template run: the one place where workers meet the pipeline.

    framework name -> handler; request -> estimate(), fit(), … -> Reply

Imported by the template, so that a fork imports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from estimator import compilers
from estimator.cudnn import Edition, PlanSource
from estimator.cudnn.layered import Layers
from estimator.cudnn.shipped import shipped_editions
from estimator.errors import EstimatorError, Problem, SpecError
from estimator.fit import fit
from estimator.frontends import Frontend, load
from estimator.frontends.recorded import Recorded
from estimator.grid import at_batch, grid
from estimator.pipeline import estimate, trace_all
from estimator.report.drawn import job_drawing
from estimator.report.job import job_accounts
from estimator.result import Estimate, Fit
from estimator.sisters import KEEPING, Sisters, sisters_of
from estimator.spec import Framework
from estimator.tracefile import read_recording
from estimator.workers.fork import Handler, Reply
from estimator.workers.wire import NO_FRAMEWORK, Ask, Operation, decode_ask, encode_answers

COMPILED = frozenset({Framework.JAX.value, Framework.TENSORFLOW.value})
"""Frameworks whose steps XLA compiles, or may."""

AT_BATCHES = frozenset({Operation.ESTIMATE, Operation.FIT, Operation.GRID})
"""What is asked of one job at several batches, in one request or one after another."""


def prepare(framework: str) -> Handler:
    """Import *framework*, unless it is none, and return what a fork answers with.

    Raises:
        UnsupportedJobError: if it has no frontend or is not installed.
    """
    if framework != NO_FRAMEWORK:
        load(framework)
    return Compiling() if framework in COMPILED else answer


class Compiling:
    """`answer` in a fork that has a compiler beside it."""

    def start(self) -> None:
        """Start the compiler."""
        compilers.ready()

    def __call__(self, payload: bytes, live: Edition | None) -> Reply:
        """Return what `answer` does."""
        return answer(payload, live)


def answer(payload: bytes, live: Edition | None) -> Reply:
    """Return the reply to the request in *payload*, with what the cuDNN *live* says.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    ask = decode_ask(payload)
    plans = plans_of(live)
    if ask.content is None:
        if ask.spec.framework in KEEPING and ask.operation in AT_BATCHES:
            return _reply_at_batches(ask, sisters_of(load(ask.spec.framework), ask.kept), plans)
        return Reply(answer=_answer(ask, None, plans))
    recording = replace(read_recording(ask.content), spec=ask.spec)
    try:
        return Reply(answer=_answer(ask, Recorded(recording=recording), plans))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Kernels of a file are people's input: what a rule stumbles over was not written by us.
        message = f"no library is called like this ({type(error).__name__})"
        raise SpecError([Problem(path="trace.kernels", message=message)]) from error


def _answer(ask: Ask, frontend: Frontend | None, plans: PlanSource) -> bytes:
    match ask.operation:
        case Operation.ESTIMATE:
            return encode_answers(estimate(ask.spec, ask.devices, plans, frontend=frontend))
        case Operation.FIT:
            return encode_answers(fit(ask.spec, ask.devices, plans))
        case Operation.GRID:
            return encode_answers(grid(ask.spec, ask.batches, ask.devices, plans))
        case Operation.ACCOUNT:
            return encode_answers(job_accounts(ask.spec, ask.devices, plans, frontend=frontend))
        case Operation.DRAW:
            return encode_answers([job_drawing(ask.spec, ask.devices, plans, frontend=frontend)])


def _reply_at_batches(ask: Ask, sisters: Sisters, plans: PlanSource) -> Reply:
    """Return the reply to *ask*, with what was traced for it by *sisters*."""
    answers: Sequence[Estimate | Fit]
    match ask.operation:
        case Operation.FIT:
            answers = fit(ask.spec, ask.devices, plans, frontend=sisters)
        case Operation.GRID:
            answers = grid(ask.spec, ask.batches, ask.devices, plans, frontend=sisters)
        case _:
            answers = estimate(ask.spec, ask.devices, plans, frontend=sisters)
    kept = tuple(sisters.made())
    is_one = ask.operation is Operation.ESTIMATE
    missing = sisters.missing(ask.spec) if is_one else ()
    return Reply(
        answer=encode_answers(answers, kept=kept, may_go_on=bool(missing)),
        later=_traced(ask, sisters, missing) if missing else None,
    )


def _traced(ask: Ask, sisters: Sisters, batches: Sequence[int]) -> Iterator[bytes]:
    """Yield what may be kept of the job's traces at *batches*, each as soon as it is made."""
    for batch in batches:
        try:
            trace_all(at_batch(ask.spec, batch), ask.devices, frontend=sisters)
        except EstimatorError:
            return  # the job itself could be traced: it is told so if it is ever asked for
        yield from sisters.made()


def plans_of(live: Edition | None) -> PlanSource:
    """Return whom to ask about convolutions: *live* if it is there, and what comes with us."""
    editions = () if live is None else (live,)
    return Layers((*editions, *shipped_editions()))
