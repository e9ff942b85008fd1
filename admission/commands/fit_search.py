"""What would make a job fit a card: each answer estimated whole, as the webhook would.

    JobSpec, Device, Estimator -> Found

The largest batch and the first knobs are the search behind the hints (`estimator.fit`); the longest
sequence, further knobs and other cards are asked one estimate at a time.
Not known: prices. The cheapest card is taken to be the one with the least memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from admission.capacity.named import declared_class
from admission.codes import Verdict
from admission.commands.fit_cards import cards_by_memory
from admission.decision import class_verdict
from estimator.catalog import known_model
from estimator.device import Device
from estimator.errors import EstimatorError, SpecError, UnsupportedJobError
from estimator.result import Estimate, Fit, Knob
from estimator.spec import JobSpec, parse_spec
from estimator.spec.vocabulary import Attention
from estimator.workers.api import Estimator

LENGTH = "input.sequenceLength"
BATCH = "input.batchSize"
MAX_LENGTH = 1 << 17
"""Tokens tried at most where the model's own limit is not known."""
CARDS_AT_ONCE = 6
"""A trace serves all cards of its kind, and a card is one replay more."""
_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions", "seq_length")
"""Keys of Hub configurations that bound the positions of a model."""
_BEHIND_PADDING = frozenset(
    {
        *("camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke"),
        *("markuplm", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl"),
        "xmod",
    }
)
"""Model types whose positions begin behind the index of padding, which is 1 unless they say.

Source: transformers 5.24.0 `models/roberta/modeling_roberta.py`,
`create_position_ids_from_input_ids`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """The longest sequence that fits."""

    current: int
    """What the job has today; assumed where it states none."""
    largest: int | None
    """None: not even the shortest tried."""
    step: int
    """The next longer one that was tried, and does not fit, is at most this much longer."""
    limit: int | None
    """What the model has positions for; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the searches found for one card."""

    estimate: Estimate
    verdict: Verdict
    """Of the job as it is."""
    fit: Fit
    length: Length | None
    """None for a job without sequences."""
    knobs: tuple[Knob, ...]
    """Single changes that make it fit; none are looked for where it fits."""
    searched: tuple[str, ...]
    cheapest: Estimate | None
    """On the card with the least memory that holds the job as it is; None: no listed one does."""
    failures: tuple[str, ...] = ()
    """Why tries ended without an estimate, if it was not the job: they count as not fitting."""

    @property
    def has_way(self) -> bool:
        """Return whether the job fits, or one change makes it fit."""
        return self.verdict is Verdict.FITS or bool(self.knobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The searches for one job on one card."""

    spec: JobSpec
    device: Device
    estimator: Estimator
    failures: list[str] = field(default_factory=list)
    """Why tries failed that were not the job's fault; filled while it searches."""

    async def found(self) -> Found:
        """Return what would fit.

        Raises:
            EstimatorError: if the job itself cannot be estimated.
        """
        (estimate,) = await self.estimator.estimate(self.spec, (self.device,))
        verdict = verdict_of(estimate, self.device)
        (fit,), length, more, cheapest = await asyncio.gather(
            self.estimator.fit(self.spec, (self.device,)),
            self.length(estimate),
            self.more_knobs(verdict),
            self.cheapest(estimate),
        )
        tried = tuple(path for path, _, _ in _more(self.spec))
        is_held = verdict is Verdict.FITS
        return Found(
            estimate=estimate,
            verdict=verdict,
            fit=fit,
            length=length,
            knobs=() if is_held else (*_sizes(self.spec, fit, length), *fit.knobs, *more),
            searched=(
                *fit.searched,
                *((LENGTH,) if length else ()),
                *(() if is_held else tried),
            ),
            cheapest=cheapest,
            failures=tuple(dict.fromkeys(self.failures)),
        )

    async def fits(self, spec: JobSpec) -> bool:
        """Return whether *spec* fits the card; what cannot be estimated does not."""
        estimate = await self._estimate(spec, self.device)
        return estimate is not None and verdict_of(estimate, self.device) is Verdict.FITS

    async def length(self, estimate: Estimate) -> Length | None:
        """Return the longest sequence that fits: doubling or halving, then bisection."""
        current = length_of(self.spec, estimate)
        if current is None:
            return None
        limit = positions_of(self.spec)
        most = limit or MAX_LENGTH
        unit = max(1, min(64, most // 16))
        low, high = await self._bracket(current, most=most, unit=unit)
        while low and high - low > (step := max(unit, low // 128)):
            middle = (low + high) // 2 // unit * unit
            if middle <= low:
                break
            if await self._holds(middle):
                low = middle
            else:
                high = middle
        step = max(unit, low // 128)
        return Length(current=current, largest=low or None, step=step, limit=limit)

    async def _bracket(self, current: int, *, most: int, unit: int) -> tuple[int, int]:
        """Return a length that fits, or 0, and a longer one that does not or is too long."""
        start = min(current, most)
        if await self._holds(start):
            low = start
            while low < most:
                longer = min(2 * low, most)
                if not await self._holds(longer):
                    return low, longer
                low = longer
            return low, low
        high = start
        while high > unit:
            shorter = max(unit, high // 2)
            if await self._holds(shorter):
                return shorter, high
            high = shorter
        return 0, high

    async def _holds(self, length: int) -> bool:
        return await self.fits(changed(self.spec, LENGTH, length))

    async def more_knobs(self, verdict: Verdict) -> tuple[Knob, ...]:
        """Return the further single changes that make the job fit, if it does not."""
        if verdict is Verdict.FITS:
            return ()
        knobs = [
            Knob(path=path, value=value, text=text)
            for path, value, text in _more(self.spec)
            if await self.fits(changed(self.spec, path, value))
        ]
        return tuple(knobs)

    async def cheapest(self, estimate: Estimate) -> Estimate | None:
        """Return the estimate on the card with the least memory that holds the job as it is."""
        cards = cards_by_memory(self.spec.framework_version)
        # Half of what this card needs: no other needs as little, whatever its libraries take.
        floor = estimate.least.reserved_bytes // 2
        cards = tuple(card for card in cards if (card.budget_bytes or 0) >= floor)
        for start in range(0, len(cards), CARDS_AT_ONCE):
            asked = cards[start : start + CARDS_AT_ONCE]
            for card, found in zip(asked, await self._on(asked), strict=True):
                if found is not None and verdict_of(found, card) is Verdict.FITS:
                    return found
        return None

    async def _on(self, cards: Sequence[Device]) -> Sequence[Estimate | None]:
        try:
            return await self.estimator.estimate(self.spec, cards)
        except EstimatorError:
            # One card that cannot be told must not hide the others.
            return [await self._estimate(self.spec, card) for card in cards]

    async def _estimate(self, spec: JobSpec, card: Device) -> Estimate | None:
        """Return the estimate, None without one; what failed through no fault of *spec* is kept."""
        try:
            (found,) = await self.estimator.estimate(spec, (card,))
        except (SpecError, UnsupportedJobError):
            return None
        except EstimatorError as error:
            self.failures.append(error.message)
            return None
        return found


def verdict_of(estimate: Estimate, device: Device) -> Verdict:
    """Return the webhook's verdict on a job that has *device* whole."""
    return class_verdict(declared_class(device), estimate).verdict


def length_of(spec: JobSpec, estimate: Estimate) -> int | None:
    """Return the tokens of a sample, stated or assumed; None for a job without sequences."""
    if spec.input.sequence_length is not None:
        return spec.input.sequence_length
    assumed = (note.value for note in estimate.assumptions if note.path == LENGTH)
    return next((int(value) for value in assumed if value.isdecimal()), None)


def positions_of(spec: JobSpec) -> int | None:
    """Return how many positions the model has, by its configuration; None if that is not known.

    Read from an inline configuration or the catalog's, as the tracing does.
    """
    known = known_model(spec.model.name)
    config = spec.model.config or (known.config if known else {})
    text = config.get("text_config")
    for part in (text if isinstance(text, Mapping) else {}, config):
        found = [part[key] for key in _POSITIONS if isinstance(part.get(key), int)]
        if found and found[0] > 0:
            return _of_text(part, int(found[0]))
    return None


def _of_text(config: Mapping[str, Any], positions: int) -> int:
    """Return how many of *positions* are left for a text."""
    if config.get("model_type") not in _BEHIND_PADDING:
        return positions
    padding = config.get("pad_token_id")
    return max(1, positions - 1 - (padding if isinstance(padding, int) else 1))


def changed(spec: JobSpec, path: str, value: object) -> JobSpec:
    """Return *spec* with the value at *path* replaced."""
    document = spec.document()
    part: dict[str, Any] = document
    *parents, last = path.split(".")
    for parent in parents:
        child = part.get(parent)
        part[parent] = dict(child) if isinstance(child, Mapping) else {}
        part = part[parent]
    part[last] = value
    return parse_spec(document)


def _sizes(spec: JobSpec, fit: Fit, length: Length | None) -> Iterator[Knob]:
    """Yield a smaller batch and a shorter sequence, where one alone is enough."""
    batch = fit.largest_batch
    if batch is not None and batch < spec.input.batch_size:
        yield Knob(path=BATCH, value=batch, text=f"batch size {batch}")
    if length and length.largest and length.largest < length.current:
        yield Knob(path=LENGTH, value=length.largest, text=f"sequence length {length.largest}")


def _more(spec: JobSpec) -> Iterator[tuple[str, object, str]]:
    """Yield single changes that the search behind the hints does not try."""
    if spec.model.attention is Attention.EAGER:
        yield "model.attention", "sdpa", "attention sdpa instead of eager"
