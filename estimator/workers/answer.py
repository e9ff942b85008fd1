"""What the forks of a real template run: the one place where workers meet the pipeline.

    framework name -> handler; request -> estimate() or fit() -> answer

Imported by the template, so that a fork imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from estimator.fit import fit
from estimator.frontends import load
from estimator.pipeline import estimate
from estimator.workers.wire import Operation, decode_ask, encode_answers


def prepare(framework: str) -> Callable[[bytes], bytes]:
    """Import *framework* and return what a fork answers with.

    Raises:
        UnsupportedJobError: if it has no frontend or is not installed.
    """
    load(framework)
    return answer


def answer(payload: bytes) -> bytes:
    """Return the answer to the request in *payload*.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    ask = decode_ask(payload)
    match ask.operation:
        case Operation.ESTIMATE:
            return encode_answers(estimate(ask.spec, ask.devices))
        case Operation.FIT:
            return encode_answers(fit(ask.spec, ask.devices))
