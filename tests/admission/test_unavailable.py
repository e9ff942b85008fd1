"""A job that no process of the estimator could be asked about: let through, told, counted."""

from __future__ import annotations

import io
from collections.abc import Iterator

import orjson
import pytest
import structlog

from admission.codes import Action, Mode
from admission.config import LogFormat, LogLevel
from admission.logs import configure_logs
from admission.policy_settings import PolicySettings
from estimator.errors import EstimatorUnavailableError
from tests.admission.test_handler import TOO_LARGE, Bench, job, review_of

WHY = "the pytorch estimator process keeps ending"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Return what is logged."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)
    yield stream
    structlog.reset_defaults()


async def test_operator_sees_that_the_estimator_could_not_be_asked(logged: io.StringIO) -> None:
    """A reason of its own in metrics and log; the job passes though unknown ones are denied."""
    bench = Bench(PolicySettings(mode=Mode.ENFORCE, on_unknown=Action.DENY))
    bench.workers.failure = EstimatorUnavailableError(WHY)

    answer = await bench.answer(review_of(job(batch_size=TOO_LARGE)))

    response = orjson.loads(answer.body)["response"]
    line = orjson.loads(logged.getvalue().splitlines()[0])
    assert response["allowed"] is True
    assert any("the estimator could not be asked" in text for text in response["warnings"])
    assert WHY.encode() not in answer.body
    assert (line["event"], line["reason"]) == ("reviewed", "estimator-unavailable")
    assert bench.series("vramgate_unknown_total") == {'{code="estimator-unavailable"}': 1}
    assert list(bench.series("vramgate_estimates_total")) == [
        '{framework="pytorch",method="none",outcome="unavailable"}'
    ]
