"""A system without threads for us: reviews are answered, by their uid."""

from __future__ import annotations

import orjson

from admission.handler import FAULT_WARNING
from admission.reader import SMALL_BODY
from tests.admission.test_handler import Bench, job, review_of
from tests.faults.limits import no_more_threads


async def test_large_review_without_a_thread_passes_with_a_warning() -> None:
    """Neither to be parsed nor to be read in; the next one is judged as ever."""
    bench = Bench()
    large = job(annotations={"note": "x" * (SMALL_BODY + 1)})

    with no_more_threads():
        passed = await bench.answer(review_of(large, uid="large"))
    judged = await bench.answer(review_of(large, uid="next"))

    first, second = (orjson.loads(each.body)["response"] for each in (passed, judged))
    assert (first["uid"], first["allowed"]) == ("large", True)
    assert any(FAULT_WARNING in warning for warning in first["warnings"])
    assert second["uid"] == "next"
    assert FAULT_WARNING not in str(second.get("warnings"))
