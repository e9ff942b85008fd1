"""What the controller and the agents of the nodes show over the week.

Jobs -> Series of the two controllers, of which one leads, and of an agent for each node

A node's jobs do not wait for one another: where more of them run at once than it has cards for, a
card is full.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from admission.agent.exposition import ENDED, RATIOS
from admission.agent.exposition import Exposition as OfAgent
from admission.agent.reading import Card
from admission.agent.sampling import View
from admission.controller.acts import Cause
from admission.controller.duties import NAMES
from admission.controller.exposition import Exposition as OfController
from admission.controller.predicted import predicted_of
from tests.e2e.prometheus.week.cluster import (
    CARDS,
    FRAMEWORKS,
    MINUTES,
    NAMESPACES,
    VERDICTS,
    Jobs,
    Kind,
    activity,
    classes,
)
from tests.e2e.prometheus.week.series import Key, Series, Values, counted, held, key, of_target

NUM_CONTROLLERS = 2
RESERVED = 600 << 20
Changes = dict[Key, Values]


def controllers(jobs: Jobs, seed: int) -> Iterator[Series]:
    """Yield the series of every controller: those of the one at work change."""
    for number in range(NUM_CONTROLLERS):
        exposition = OfController(duties=NAMES, queued=lambda: 0)
        exposition.show(lambda: predicted_of((), classes()))
        target = {
            "job": "vramgate-controller",
            "namespace": "vramgate-system",
            "pod": f"vramgate-controller-{number}",
            "instance": f"10.0.1.{number + 1}:8080",
        }
        changes = _at_work(jobs, np.random.default_rng(seed + 2)) if number == 0 else {}
        yield from of_target(exposition.text().decode(), changes, target)


def _runs(jobs: Jobs) -> NDArray[np.bool_]:
    """Return which jobs run with an estimate."""
    return np.asarray(~jobs.is_denied & (jobs.verdict != VERDICTS.index("unknown")))


def _at_work(jobs: Jobs, draw: np.random.Generator) -> Changes:
    found: Changes = {
        key("vramgate_controller_leads"): np.ones(MINUTES, dtype=np.int64),
        key("vramgate_controller_queue"): draw.poisson(0.3 * activity()),
    }
    runs = _runs(jobs)
    for at, card in enumerate(CARDS):
        chosen = runs & (jobs.card == at)
        amounts = (jobs.peak * jobs.gpus)[chosen]
        for state, since, until in (
            ("waiting", jobs.at, jobs.begins),
            ("running", jobs.begins, jobs.ends),
        ):
            found[key("vramgate_class_predicted_bytes", product=card.product, state=state)] = held(
                since[chosen], until[chosen], amounts
            )
    dead = runs & jobs.dies
    said = np.where(jobs.verdict == VERDICTS.index("fits"), "false", "true")
    for at, framework in enumerate(FRAMEWORKS):
        for predicted in ("true", "false"):
            chosen = dead & (jobs.framework == at) & (said == predicted)
            found[key("vramgate_oom_total", framework=framework, predicted=predicted)] = counted(
                jobs.ends[chosen]
            )
    causes = draw.choice(len(Cause), size=len(jobs))
    moved = dead & (draw.random(len(jobs)) < 0.5)
    for at, cause in enumerate(Cause):
        found[key("vramgate_rescheduled_total", reason=cause.value)] = counted(
            jobs.ends[moved & (causes == at)]
        )
    for state, chosen in (("running", dead & ~moved), ("pending", moved)):
        found[key("vramgate_wrong_card_total", state=state)] = counted(jobs.begins[chosen])
    return found | _acts(jobs, draw, {"deaths": dead, "moves": moved, "wrong-card": dead})


def _acts(jobs: Jobs, draw: np.random.Generator, of: dict[str, NDArray[np.bool_]]) -> Changes:
    again = draw.random(len(jobs)) < 0.05
    return {
        key("vramgate_controller_acts_total", duty=duty, outcome=outcome): counted(
            jobs.ends[chosen & (again == (outcome == "again"))]
        )
        for duty, chosen in of.items()
        for outcome in ("done", "again")
    }


def agents(jobs: Jobs) -> Iterator[Series]:
    """Yield the series of the agent of every node, and those of the pods while they run."""
    for at, kind in enumerate(CARDS):
        for node in range(kind.nodes):
            target = {
                "job": "vramgate-agent",
                "namespace": "vramgate-system",
                "pod": f"vramgate-agent-{kind.product.lower()}-{node}",
                "instance": f"10.1.{at}.{node + 1}:8080",
            }
            yield from _agent(jobs, jobs_of(jobs, at, node), kind, node, target)


def jobs_of(jobs: Jobs, card: int, node: int) -> NDArray[np.int64]:
    """Return the jobs that run on one node of a kind of card; their n-th is on card n modulo."""
    return np.flatnonzero(_runs(jobs) & (jobs.card == card) & (jobs.node == node))


def cards_of(kind: Kind, node: int) -> tuple[Card, ...]:
    """Return the cards of one node."""
    return tuple(
        Card(
            gpu=f"GPU-{kind.product.lower()}-{node}-{index}",
            index=str(index),
            product=kind.product,
            total=kind.usable + RESERVED,
            used=0,
            reserved=RESERVED,
        )
        for index in range(kind.gpus)
    )


def used_of(jobs: Jobs, ours: NDArray[np.int64], kind: Kind, index: int) -> Values:
    """Return what is used of the card *index* of the node that *ours* run on."""
    on_it = ours[np.arange(len(ours)) % kind.gpus == index]
    used = held(jobs.begins[on_it], jobs.ends[on_it], jobs.measured[on_it])
    return np.asarray(np.minimum(used, kind.usable))


def _agent(
    jobs: Jobs, ours: NDArray[np.int64], kind: Kind, node: int, target: dict[str, str]
) -> Iterator[Series]:
    cards = cards_of(kind, node)
    text = OfAgent(lambda: View(cards=cards)).text().decode()
    changes: Changes = {
        key("vramgate_agent_samples_total"): 60 * np.arange(MINUTES),
        **_endings(jobs, ours),
    }
    for number, card in enumerate(cards):
        labels = {"gpu": card.gpu, "index": card.index, "instance": "", "product": card.product}
        used = used_of(jobs, ours, kind, number)
        changes[key("vramgate_gpu_memory_used_bytes", labels)] = used
    yield from of_target(text, changes, target)
    for number, job in enumerate(ours.tolist()):
        begins, ends = int(jobs.begins[job]), min(int(jobs.ends[job]), MINUTES)
        pod = {
            "namespace": NAMESPACES[jobs.namespace[job]],
            "pod": f"train-{job}",
            "container": "train",
            "gpu": cards[number % kind.gpus].gpu,
        }
        yield Series(
            name="vramgate_pod_gpu_memory_peak_bytes",
            labels={**target, **pod},
            values=np.full(max(0, ends - begins), jobs.measured[job]),
            begins=begins,
        )


def _endings(jobs: Jobs, ours: NDArray[np.int64]) -> Changes:
    found: Changes = {}
    name = "vramgate_estimate_error_ratio"
    ratio = jobs.measured / jobs.peak
    for ended in ENDED:
        chosen = ours[jobs.dies[ours] == (ended == "failed")]
        for bound in (*RATIOS, np.inf):
            below = chosen[ratio[chosen] <= bound]
            text = "+Inf" if np.isinf(bound) else str(bound)
            found[key(f"{name}_bucket", ended=ended, le=text)] = counted(jobs.ends[below])
        found[key(f"{name}_count", ended=ended)] = counted(jobs.ends[chosen])
        in_thousandths = (1000 * ratio[chosen]).astype(np.int64)
        found[key(f"{name}_sum", ended=ended)] = counted(jobs.ends[chosen], in_thousandths) / 1000
    return found
