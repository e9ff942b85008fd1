"""What the forks of a real template run: the one place where workers meet the pipeline.

    framework name -> handler; request -> estimate(), fit(), … -> answer

Imported by the template, so that a fork imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from estimator.cudnn import Edition, PlanSource
from estimator.cudnn.layered import Layers
from estimator.cudnn.shipped import shipped_editions
from estimator.errors import Problem, SpecError
from estimator.fit import fit
from estimator.frontends import Frontend, load
from estimator.frontends.recorded import Recorded
from estimator.grid import grid
from estimator.pipeline import estimate
from estimator.report.drawn import job_drawing
from estimator.report.job import job_accounts
from estimator.result import Estimate, Fit
from estimator.sisters import KEEPING, Sisters, sisters_of
from estimator.tracefile import read_recording
from estimator.workers.wire import NO_FRAMEWORK, Ask, Operation, decode_ask, encode_answers

AT_BATCHES = frozenset({Operation.ESTIMATE, Operation.FIT, Operation.GRID})
"""What is asked of one job at several batches, in one request or one after another."""


def prepare(framework: str) -> Callable[[bytes, Edition | None], bytes]:
    """Import *framework*, unless it is none, and return what a fork answers with.

    Raises:
        UnsupportedJobError: if it has no frontend or is not installed.
    """
    if framework != NO_FRAMEWORK:
        load(framework)
    return answer


def answer(payload: bytes, live: Edition | None) -> bytes:
    """Return the answer to the request in *payload*, with what the cuDNN *live* says.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    ask = decode_ask(payload)
    if ask.content is None:
        return _answer(ask, None, live)
    recording = replace(read_recording(ask.content), spec=ask.spec)
    try:
        return _answer(ask, Recorded(recording=recording), live)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Kernels of a file are people's input: what a rule stumbles over was not written by us.
        message = f"no library is called like this ({type(error).__name__})"
        raise SpecError([Problem(path="trace.kernels", message=message)]) from error


def _answer(ask: Ask, frontend: Frontend | None, live: Edition | None) -> bytes:
    plans = plans_of(live)
    if frontend is None and ask.spec.framework in KEEPING and ask.operation in AT_BATCHES:
        return _answer_at_batches(ask, sisters_of(load(ask.spec.framework), ask.kept), plans)
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


def _answer_at_batches(ask: Ask, sisters: Sisters, plans: PlanSource) -> bytes:
    """Return the answer to *ask*, with what was traced for it by *sisters*."""
    answers: Sequence[Estimate | Fit]
    match ask.operation:
        case Operation.FIT:
            answers = fit(ask.spec, ask.devices, plans, frontend=sisters)
        case Operation.GRID:
            answers = grid(ask.spec, ask.batches, ask.devices, plans, frontend=sisters)
        case _:
            answers = estimate(ask.spec, ask.devices, plans, frontend=sisters)
    return encode_answers(answers, kept=sisters.made())


def plans_of(live: Edition | None) -> PlanSource:
    """Return whom to ask about convolutions: *live* if it is there, and what comes with us."""
    editions = () if live is None else (live,)
    return Layers((*editions, *shipped_editions()))
