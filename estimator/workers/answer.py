"""What the forks of a real template run: the one place where workers meet the pipeline.

    framework name -> handler; request -> estimate(), fit() or job_accounts() -> answer

Imported by the template, so that a fork imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from estimator.cudnn import Edition, PlanSource
from estimator.cudnn.layered import Layers
from estimator.cudnn.shipped import shipped_editions
from estimator.fit import fit
from estimator.frontends import load
from estimator.pipeline import estimate
from estimator.report.job import job_accounts
from estimator.workers.wire import Operation, decode_ask, encode_answers


def prepare(framework: str) -> Callable[[bytes, Edition | None], bytes]:
    """Import *framework* and return what a fork answers with.

    Raises:
        UnsupportedJobError: if it has no frontend or is not installed.
    """
    load(framework)
    return answer


def answer(payload: bytes, live: Edition | None) -> bytes:
    """Return the answer to the request in *payload*, with what the cuDNN *live* says.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    ask = decode_ask(payload)
    plans = plans_of(live)
    match ask.operation:
        case Operation.ESTIMATE:
            return encode_answers(estimate(ask.spec, ask.devices, plans))
        case Operation.FIT:
            return encode_answers(fit(ask.spec, ask.devices, plans))
        case Operation.ACCOUNT:
            return encode_answers(job_accounts(ask.spec, ask.devices, plans))


def plans_of(live: Edition | None) -> PlanSource:
    """Return whom to ask about convolutions: *live* if it is there, and what comes with us."""
    editions = () if live is None else (live,)
    return Layers((*editions, *shipped_editions()))
