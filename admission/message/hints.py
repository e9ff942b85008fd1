"""The smallest changes that would make a job fit.

    UnitJudgement -> phrases that complete `it fits …`

Every one was estimated; nothing is advised by rule of thumb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from admission.codes import Verdict
from admission.decision import budget_of
from admission.values import UnitJudgement

if TYPE_CHECKING:
    from estimator.result import Fit

MAX_KNOBS = 2
BATCH_PATH = "input.batchSize"
_NAMED_VOWELS = "AEFHILMNORSX"
"""Letters whose names begin with a vowel sound: an NVIDIA, an RTX, a Tesla, a GB200."""


def fitting_changes(judged: UnitJudgement) -> tuple[tuple[str, ...], str | None]:
    """Return the changes that fit, and a word of advice if the search found none."""
    changes: list[str] = []
    for fit in judged.fits[:1]:
        changes += _of_spec(judged, fit)
    changes += _elsewhere(judged)
    searched = any(fit.searched for fit in judged.fits)
    if changes or not searched:
        return tuple(changes), None
    return (), "no single change that was tried makes it fit; spread it over more GPUs"


def _of_spec(judged: UnitJudgement, fit: Fit) -> Iterator[str]:
    spec = judged.reading.spec
    batch = fit.largest_batch
    if batch is not None and (spec is None or batch < spec.input.batch_size):
        is_shared = spec is not None and spec.parallelism.data_parallel > 1
        yield f"with batch size {batch}{' per GPU' if is_shared else ''}"
    knobs = [knob for knob in fit.knobs if knob.path != BATCH_PATH]
    yield from (f"with {knob.text}" for knob in knobs[:MAX_KNOBS])


def _elsewhere(judged: UnitJudgement) -> Iterator[str]:
    """Yield the smallest card that holds the job as it is, where the pod may not go today."""
    fitting = [found.node_class for found in judged.elsewhere if found.verdict is Verdict.FITS]
    if not fitting:
        return
    name = min(fitting, key=lambda node_class: budget_of(node_class) or 0).name
    count = sum(node_class.count for node_class in fitting if node_class.name == name)
    nodes = "node" if count == 1 else f"{count} nodes"
    yield f"on the {nodes} with {article(name)} {name}"


def article(name: str) -> str:
    """Return `a` or `an`, as the name of a card is spoken."""
    word = re.split(r"[^A-Za-z0-9]", name, maxsplit=1)[0]
    is_spelled = word.isupper()
    vowels = _NAMED_VOWELS if is_spelled else "AEIOU"
    return "an" if word[:1].upper() in tuple(vowels) else "a"
