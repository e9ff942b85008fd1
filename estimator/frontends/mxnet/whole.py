"""An executor that is bound whole: `Module`, `simple_bind`.

    Bound -> events

Everything is allocated at bind: arguments, gradients, and the plan's storages, the largest first.
Steps then only call libraries. Source: apache/mxnet@1.9.1 `src/executor/graph_executor.cc`
(`InitArguments`, `InitDataEntryMemory`), `python/mxnet/module/executor_group.py`.
"""

from __future__ import annotations

from estimator.frontends.mxnet.bound import Bound
from estimator.frontends.mxnet.events import Recorder
from estimator.frontends.mxnet.gradient import HEAD_GRADIENT
from estimator.frontends.mxnet.graph import Key
from estimator.frontends.mxnet.planner import references_of
from estimator.trace import Phase, Role


def allocate_plan(recorder: Recorder, bound: Bound) -> None:
    """Record the storages of the plan, and head gradients that come from outside.

    The fact `plannedBytes` is what MXNet prints as `Total … MB allocated`.
    """
    for node in bound.backward:
        if node.is_variable and node.name.startswith(HEAD_GRADIENT):
            recorder.at("", node.name)
            recorder.alloc(node.outputs()[0].nbytes, Role.GRADIENT)
    plan = bound.whole_plan()
    recorder.builder.facts["plannedBytes"] = str(plan.total)
    for storage in sorted(plan.storages, key=lambda each: each.nbytes, reverse=True):
        role = Role.TEMPORARY if storage.first.is_backward else Role.ACTIVATION
        recorder.at(storage.first.operator, storage.first.name)
        recorder.alloc(storage.nbytes, role)


def run_step(recorder: Recorder, bound: Bound, used: dict[Key, int], *, step: int) -> None:
    """Record the library calls of one step."""
    for phase, nodes in ((Phase.FORWARD, bound.forward), (Phase.BACKWARD, bound.backward)):
        recorder.enter(phase, step=step)
        for node in nodes:
            if not node.is_variable:
                recorder.at(node.operator, node.name)
                recorder.call(node, used)


def used_of(bound: Bound) -> dict[Key, int]:
    """Return the entries that somebody reads."""
    return references_of(bound.order, [*bound.heads, *bound.gradients])
