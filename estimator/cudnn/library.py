"""A cuDNN library, asked about cards that are not there.

    properties of a card, Question -> Answer

A device-property descriptor stands in for a handle: no driver, no context, no card. Plans that do
not finalize are left out; which of the others is taken is decided elsewhere. Only in the cuDNN
process: for some cards and convolutions a library may crash or hang.

Order of the calls: NVIDIA's cudnn-frontend, as PyTorch's aten/src/ATen/native/cudnn/Conv_v8.cpp
uses it (rbarfinezhadfeli0/pytorch@0edb9997 mirror).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from estimator.cudnn import names
from estimator.cudnn.backend import Backend, Descriptor, LibraryError
from estimator.cudnn.graph import graph_of
from estimator.cudnn.questions import Answer, Plan, Question
from estimator.cudnn.support import Release

MAX_CARDS = 64
"""Descriptors of cards that are kept."""


class Library:
    """A loaded library. Not for two threads."""

    def __init__(self, folder: Path) -> None:
        """Load the library in *folder*.

        Raises:
            LibraryError: if there is none, or one that cannot be asked without a card.
        """
        self._backend = Backend(folder)
        self.release = Release(version=self._backend.version, cuda=self._backend.cuda)
        self._cards: dict[bytes, Descriptor] = {}

    def answer(self, properties: bytes, question: Question) -> Answer:
        """Return the plans for *question* on the card of these *properties* (JSON).

        Raises:
            LibraryError: if cuDNN does not take the card or the convolution.
        """
        card = self._card(properties)
        with ExitStack() as stack:
            graph = graph_of(question, self._backend, stack)
            return Answer(
                version=self.release.version,
                instant=tuple(self._plans(graph, card, names.HEUR_MODE_INSTANT)),
                fallback=tuple(self._plans(graph, card, names.HEUR_MODE_FALLBACK)),
            )

    def _card(self, properties: bytes) -> Descriptor:
        known = self._cards.get(properties)
        if known is not None:
            return known
        while len(self._cards) >= MAX_CARDS:
            self._cards.pop(next(iter(self._cards))).destroy()
        card = Descriptor(self._backend, names.DEVICEPROP_DESCRIPTOR)
        try:
            card.set_text(names.DEVICEPROP_JSON_REPRESENTATION, properties)
            card.finalize()
        except LibraryError:
            card.destroy()
            raise
        self._cards[properties] = card
        return card

    def _plans(self, graph: Descriptor, card: Descriptor, mode: int) -> Iterator[Plan]:
        """Yield the plans of *mode* that finalize; a mode that knows none has none."""
        with ExitStack() as stack:
            heuristic = self._backend.new(names.ENGINEHEUR_DESCRIPTOR, stack)
            heuristic.set_descriptor(names.ENGINEHEUR_OPERATION_GRAPH, graph)
            heuristic.set_enum(names.ENGINEHEUR_MODE, names.TYPE_HEUR_MODE, mode)
            heuristic.set_descriptor(names.ENGINEHEUR_DEVICEPROP, card)
            try:
                heuristic.finalize()
                count = heuristic.count(names.ENGINEHEUR_RESULTS)
            except LibraryError:
                return
            kind = names.ENGINECFG_DESCRIPTOR
            configs = [self._backend.new(kind, stack) for _ in range(count)]
            found = heuristic.get_descriptors(names.ENGINEHEUR_RESULTS, configs)
            for config in configs[:found]:
                if (plan := self._plan(config, card)) is not None:
                    yield plan

    def _plan(self, config: Descriptor, card: Descriptor) -> Plan | None:
        """Return *config* as a plan for *card*, None if it does not finalize."""
        with ExitStack() as stack:
            plan = self._backend.new(names.EXECUTION_PLAN_DESCRIPTOR, stack)
            try:
                plan.set_descriptor(names.EXECUTION_PLAN_ENGINE_CONFIG, config)
                plan.set_descriptor(names.EXECUTION_PLAN_DEVICEPROP, card)
                plan.finalize()
            except LibraryError:
                return None
            engine = self._backend.new(names.ENGINE_DESCRIPTOR, stack)
            config.get_descriptors(names.ENGINECFG_ENGINE, [engine])
            return Plan(
                engine=engine.get_integer(names.ENGINE_GLOBAL_INDEX),
                notes=engine.get_notes(names.ENGINE_NUMERICAL_NOTE),
                workspace=plan.get_integer(names.EXECUTION_PLAN_WORKSPACE_SIZE),
            )
