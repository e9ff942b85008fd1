"""What Prometheus can read: every label on its line, whatever is in it."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from admission.agent.exposition import _Seen
from admission.agent.sampling import View
from tests.fuzz.target import Broken

_TOLD = ("vramgate_gpu_", "vramgate_pod_", "vramgate_node_", "vramgate_class_")


def check_shown(view: View) -> None:
    """Hold what an agent shows of *view* to it.

    Raises: Broken.
    """
    _shown.view = view
    check_series(generate_latest(_agent()))


class _Shown:
    """What the exposition below is of."""

    view = View()


_shown = _Shown()


@cache
def _agent() -> CollectorRegistry:
    """Return what has a view's series alone: the agent's counters are not made of it."""
    registry = CollectorRegistry()
    registry.register(_Seen(lambda: _shown.view))
    return registry


def check_series(text: bytes) -> None:
    """Hold an exposition to lines that begin as they should, and to what Prometheus can read.

    Of the series those are read that have labels of cards and pods: the others are ours alone.

    Raises: Broken.
    """
    told: list[str] = []
    for line in text.decode().split("\n"):
        if line and not line.startswith(("# HELP ", "# TYPE ", "vramgate_")):
            raise Broken("a line of the metrics begins with something else")
        if line.startswith(_TOLD):
            told.append(line)
    read = [family.samples for family in text_string_to_metric_families("\n".join(told) + "\n")]
    if sum(map(len, read)) != len(told):
        raise Broken("a line of the metrics is not one series")
