"""The ConfigMap `vramgate-learned`, which anybody with the right may fill with anything."""

from __future__ import annotations

from typing import Any

import pytest

from admission.controller.acting import outcome_of
from admission.controller.learning import Learning
from admission.errors import ClusterError
from admission.learning import residuals_text
from admission.learning.deaths import KEY, MAX_SIZE, read_deaths
from admission.learning.measured import Measured
from tests.admission.controller.cluster import Cluster
from tests.upgrade.samples import DEATH, GROUP, SAMPLE

NAMESPACE = "vramgate-system"
LEARNED = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vramgate-learned"
GARBAGE = ("\x00\xff", "{", "[[[[", '{"deaths": 7}', '{"version": 1, "deaths": [7, {}, []]}')


def learned(text: str) -> tuple[Any, Learning]:
    """Return a cluster whose ConfigMap says *text* in both keys, and who writes there."""
    cluster: Any = Cluster()
    data = {KEY: text, residuals_text.KEY: text}
    cluster.put(LEARNED, {"metadata": {"name": "vramgate-learned"}, "data": data})
    return cluster, Learning(cluster, namespace=NAMESPACE, now=lambda: cluster.now)


@pytest.mark.parametrize("text", [*GARBAGE, "x" * (4 * MAX_SIZE + 1)])
def test_garbage_is_nothing_and_is_written_over(text: str) -> None:
    """Neither a review nor a duty stumbles over it."""
    cluster, learning = learned(text)
    assert read_deaths(text) == ()
    assert residuals_text.read(text) == {}

    learning.learn(DEATH)
    learning.remember(Measured(group=GROUP, sample=SAMPLE))

    data = cluster.read(LEARNED).document["data"]
    assert residuals_text.read(data[residuals_text.KEY]) == {GROUP: (SAMPLE,)}
    assert [each.names for each in read_deaths(data[KEY])] == [DEATH.names]


@pytest.mark.parametrize("status", [413, 422])
def test_config_map_that_is_full_is_refused_and_not_tried_for_ever(status: int) -> None:
    """Other keys took the room: the act is refused, which a metric counts and an alert tells."""
    cluster, learning = learned("")
    cluster.refused["patch", LEARNED] = status

    with pytest.raises(ClusterError) as caught:
        learning.learn(DEATH)

    assert outcome_of(caught.value).value == "refused"
