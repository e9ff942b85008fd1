"""What several cards keep beside one card's training.

    parameters, cards -> events

One process with several contexts (`dp`) sums gradients in a key-value store on the cards: each
parameter belongs to one card, which holds the sum, a copy of every other card's gradient, the
weights that are updated, and the optimizer's states. Source: apache/mxnet@1.9.1
`src/kvstore/comm.h` (`CommDevice::Reduce`, `InitMergeBuffer`), `python/mxnet/gluon/trainer.py`.
Horovod (`ddp`) packs gradients into a fusion buffer (`estimator.frontends.horovod`).
Not modelled: `kvstore='local'`, `nccl`, `dist_*`, gradient compression.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.events import Recorder
from estimator.frontends.mxnet.graph import Entry
from estimator.trace import Role


def share_of(parameters: Sequence[Entry], num_cards: int) -> list[Entry]:
    """Return the parameters that belong to the card with the most: it gets the first.

    The largest go first, each to the card that has least.
    """
    held = [0] * num_cards
    mine: list[Entry] = []
    for entry in sorted(parameters, key=lambda each: each.elements, reverse=True):
        card = held.index(min(held))
        held[card] += entry.elements
        if card == 0:
            mine.append(entry)
    return mine


def open_store(recorder: Recorder, owned: Sequence[Entry], num_cards: int) -> None:
    """Record what a card keeps for the parameters that belong to it."""
    for entry in owned:
        recorder.at("kvstore", entry.node.name)
        recorder.alloc(entry.nbytes, Role.PARAMETER)
        for _ in range(num_cards):
            recorder.alloc(entry.nbytes, Role.COMMUNICATION)


def open_fusion_buffer(recorder: Recorder, nbytes: int) -> None:
    """Record Horovod's buffer of *nbytes*."""
    recorder.at("horovod", "")
    recorder.alloc(nbytes, Role.COMMUNICATION)
