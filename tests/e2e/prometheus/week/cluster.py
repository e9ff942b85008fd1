"""The cluster whose week is made up: its cards, its teams, and the jobs they submit.

    a seed -> Jobs, in the order of their submission

Times are minutes of the week, which begins on a Monday at midnight. Figures are made to look like a
cluster's, not measured on one: a working day with a dip at noon, quiet nights, quieter week-ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from admission.values import NodeClass
from estimator.units import GIB
from tests.builders import node_class

MINUTES = 7 * 24 * 60
SEED = 10
JOBS_A_DAY = 900
LONGEST = 2 * 24 * 60

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of card, and how many nodes have it."""

    product: str
    usable: int
    """Bytes of one card."""
    nodes: int
    gpus: int
    """Of one node."""


CARDS = (
    Kind(product="Tesla-T4", usable=15 * GIB, nodes=6, gpus=4),
    Kind(product="NVIDIA-A10G", usable=22 * GIB, nodes=6, gpus=4),
    Kind(product="NVIDIA-A100-SXM4-40GB", usable=39 * GIB, nodes=3, gpus=8),
    Kind(product="NVIDIA-A100-SXM4-80GB", usable=79 * GIB, nodes=3, gpus=8),
    Kind(product="NVIDIA-H100-80GB-HBM3", usable=79 * GIB, nodes=2, gpus=8),
)
NAMESPACES = ("vision", "language", "speech", "ranking", "research", "default")
SHARES: Mapping[str, tuple[float, ...]] = {
    "namespace": (0.22, 0.26, 0.10, 0.17, 0.17, 0.08),
    "card": (0.30, 0.25, 0.17, 0.17, 0.11),
    "kind": (0.62, 0.16, 0.12, 0.10),
    "framework": (0.80, 0.09, 0.08, 0.03),
    "gpus": (0.72, 0.12, 0.10, 0.06),
    "verdict": (0.74, 0.07, 0.08, 0.11),
    "replica": (0.5, 0.5),
}
KINDS = ("Job", "PyTorchJob", "RayJob", "Pod")
FRAMEWORKS = ("pytorch", "tensorflow", "jax", "mxnet")
GPUS = (1, 2, 4, 8)
VERDICTS = ("fits", "tight", "oom", "unknown")
ENFORCED = ("vision", "language", "speech")
"""Their namespaces deny; the others warn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Every job of the week, one entry each: places in the tables above, bytes, minutes."""

    at: Ints
    """The minute of its submission."""
    namespace: Ints
    card: Ints
    kind: Ints
    framework: Ints
    gpus: Ints
    verdict: Ints
    replica: Ints
    node: Ints
    """Of its card's nodes."""
    begins: Ints
    ends: Ints
    """After the week for one that still runs."""
    peak: Ints
    """Predicted, of one GPU."""
    measured: Ints
    dies: NDArray[np.bool_]
    """It runs out of memory."""
    is_denied: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.at)


def classes() -> tuple[NodeClass, ...]:
    """Return the cards as the webhook finds them."""
    return tuple(
        node_class(each.product, budget=each.usable, gpus=each.gpus, num_nodes=each.nodes)
        for each in CARDS
    )


def activity() -> NDArray[np.float64]:
    """Return how much is submitted in each minute of the week, 1 on average."""
    minute = np.arange(MINUTES)
    hour, day = minute / 60 % 24, minute // (24 * 60)
    working = np.exp(-(((hour - 10.5) / 2.2) ** 2)) + np.exp(-(((hour - 15.5) / 2.6) ** 2))
    busy = 0.15 + np.where(day < 5, working, 0.2 * working)
    return np.asarray(busy / busy.mean(), dtype=np.float64)


def jobs(seed: int = SEED) -> Jobs:
    """Return the jobs of the week of *seed*: the same seed, the same jobs."""
    draw = np.random.default_rng(seed)
    at = np.repeat(np.arange(MINUTES), draw.poisson(JOBS_A_DAY / (24 * 60) * activity()))
    number = len(at)
    drawn = {
        name: draw.choice(len(shares), size=number, p=shares) for name, shares in SHARES.items()
    }
    verdict, card = drawn["verdict"], drawn["card"]
    usable = np.array([each.usable for each in CARDS])[card]
    part = np.select(
        [verdict == VERDICTS.index("tight"), verdict == VERDICTS.index("oom")],
        [draw.uniform(0.92, 1.0, number), draw.uniform(1.05, 2.5, number)],
        draw.beta(3, 3, number) * 0.9,
    )
    peak = (usable * part).astype(np.int64)
    wanted = peak * draw.normal(0.97, 0.05, number).clip(0.6, 1.3)
    enforced = np.isin(drawn["namespace"], [NAMESPACES.index(name) for name in ENFORCED])
    begins = at + draw.exponential(12, number).astype(np.int64)
    dies = wanted > usable
    lasts = draw.lognormal(4.2, 1.3, number).clip(2, LONGEST).astype(np.int64)
    return Jobs(
        at=at,
        namespace=drawn["namespace"],
        card=card,
        kind=drawn["kind"],
        framework=drawn["framework"],
        gpus=np.array(GPUS)[drawn["gpus"]],
        verdict=verdict,
        replica=drawn["replica"],
        node=draw.integers(0, [CARDS[each].nodes for each in card]),
        begins=begins,
        ends=begins + np.where(dies, 1 + lasts // 20, lasts),
        peak=peak,
        measured=np.minimum(wanted, usable).astype(np.int64),
        dies=dies,
        is_denied=enforced & (verdict == VERDICTS.index("oom")),
    )
